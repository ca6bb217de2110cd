package tables

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/tablepatterns/tablepatterns/internal/connection"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// SignBlob returns an address under which anybody can read one blob of the account, and nothing else, until
// expiry: a shared access signature. expiry is at most 7 days from now. The address is a secret: do not log
// it. It works over https only, unless the account's own endpoint is http. An account with a shared key signs
// with that key. An account with a token credential signs with a user delegation key; its credential needs
// the role Storage Blob Delegator. For an account that was made from a shared access signature SignBlob
// returns ErrWiring, since such an account cannot sign.
//
// Requests: 0; with a token credential 1.
func (a *Account) SignBlob(ctx context.Context, container, blob string, expiry time.Time) (string, error) {
	const op = "SignBlob"
	now := time.Now()
	switch {
	case a.blobs == nil:
		return "", Wiringf(op, "", "the account has no blob endpoint; give one in Endpoints")
	case a.signs == nil && !a.token:
		return "", Wiringf(op, "", "an account made from a %s cannot sign; use one with a shared key or a token credential", a.source)
	case container == "" || blob == "":
		return "", Invalidf(op, "the name of the container or of the blob is empty; both are needed")
	case !expiry.After(now) || expiry.After(now.Add(maxSigned)):
		return "", Invalidf(op, "the expiry is %v from now; it must be more than 0 and at most %v", expiry.Sub(now).Round(time.Second), maxSigned)
	}
	values := sas.BlobSignatureValues{ContainerName: container, BlobName: blob, ExpiryTime: expiry.UTC(),
		Permissions: (&sas.BlobPermissions{Read: true}).String()}
	if u, err := url.Parse(a.endpoints.Blob); err != nil || strings.EqualFold(u.Scheme, "https") {
		values.Protocol = sas.ProtocolHTTPS
	}
	sign := a.signs
	if sign == nil {
		var err error
		values.StartTime = now.Add(-clockSkew).UTC()
		if sign, err = connection.Delegated(ctx, a.blobs, values.StartTime, values.ExpiryTime); err != nil {
			return "", ServiceError(op, container, err)
		}
	}
	query, err := sign(values)
	if err != nil {
		return "", Invalid(op, wire.Redact(err))
	}
	return a.blobs.NewContainerClient(container).NewBlobClient(blob).URL() + "?" + query.Encode(), nil
}
