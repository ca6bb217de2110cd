package tables

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

const (
	// maxSigned is the longest life of a signed address: that of a user delegation key. Nothing but a new account key revokes
	// an address that the account's key has signed.
	maxSigned = 7 * 24 * time.Hour

	// clockSkew is how much earlier than now a user delegation key is valid, for services whose clock is behind.
	clockSkew = 5 * time.Minute
)

// SignBlob returns an address under which anybody can read one blob of the account, and nothing else, until expiry: a shared
// access signature. expiry is at most 7 days from now. The address is the secret: it does not belong into logs. It can be used over
// https only, unless the account's own endpoint is http. It is signed with the account's shared key, or with a user delegation
// key where the account was made from a token credential, which needs the role Storage Blob Delegator. An account that was made
// from a shared access signature cannot sign: ErrInvalid.
//
// Requests: none; with a token credential 1.
func (a *Account) SignBlob(ctx context.Context, container, blob string, expiry time.Time) (string, error) {
	const op = "SignBlob"
	now := time.Now()
	switch {
	case a.blobs == nil:
		return "", Invalidf(op, "the account has no blob endpoint; give one in Endpoints")
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
	query, err := a.signBlob(ctx, op, values, now)
	if err != nil {
		return "", err
	}
	return a.blobs.NewContainerClient(container).NewBlobClient(blob).URL() + "?" + query.Encode(), nil
}

// signer signs with the account's shared key. It is a function, not the credential: package fmt prints what a field points to where a
// verb does not suit its type, and an Account that was copied has no methods of its own.
type signer func(sas.BlobSignatureValues) (sas.QueryParameters, error)

func signerOf(key *service.SharedKeyCredential) signer {
	return func(values sas.BlobSignatureValues) (sas.QueryParameters, error) {
		return values.SignWithSharedKey(key)
	}
}

func (a *Account) signBlob(ctx context.Context, op string, values sas.BlobSignatureValues, now time.Time) (sas.QueryParameters, error) {
	switch {
	case a.signs != nil:
		query, err := a.signs(values)
		if err != nil {
			return query, Invalid(op, wire.Redact(err))
		}
		return query, nil
	case !a.token:
		return sas.QueryParameters{}, Invalid(op, fmt.Errorf("an account made from a %s cannot sign; use one with a shared key or a token credential", a.source))
	}
	values.StartTime = now.Add(-clockSkew).UTC()
	start, end := values.StartTime.Format(sas.TimeFormat), values.ExpiryTime.Format(sas.TimeFormat)
	credential, err := a.blobs.GetUserDelegationCredential(ctx, service.KeyInfo{Start: &start, Expiry: &end}, nil)
	if err != nil {
		return sas.QueryParameters{}, ServiceError(op, values.ContainerName, err)
	}
	query, err := values.SignWithUserDelegation(credential)
	if err != nil {
		return query, Invalid(op, wire.Redact(err))
	}
	return query, nil
}
