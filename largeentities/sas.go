package largeentities

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// clockSkew is how much earlier than now a delegation key is valid, for services whose clock is behind.
const clockSkew = 5 * time.Minute

// SignedURL returns an address under which anybody can read the blob of the entity's value, and nothing else, until expiry:
// a shared access signature. The address is the secret: it does not belong into logs. It is signed with the account's
// shared key; where the account was made from a token credential, with a user delegation key, for which Options.Delegation
// is asked, and which lasts for 7 days at most. A value that is in the entity, or none, is patterns.ErrNotFound. After the value is
// replaced, the address leads nowhere. Requests: 1; with user delegation 2.
func (x *Property[T]) SignedURL(ctx context.Context, key patterns.Key, expiry time.Time) (string, error) {
	const op = "SignedURL"
	if x.repo == nil {
		return "", invalid(op, "the property belongs to no repository")
	}
	if !expiry.After(time.Now()) {
		return "", invalid(op, "the expiry is in the past")
	}
	ptr, found, err := x.lookAt(ctx, key)
	if err != nil {
		return "", err
	}
	if !found || ptr == nil {
		return "", &patterns.Error{Op: op, Table: x.repo.Table().Name(), Key: key, Index: -1, Pattern: x.name, Kind: patterns.ErrNotFound,
			Err: errors.New("the value is in no blob")}
	}
	if ptr.sealed {
		return "", invalid(op, "the blob is sealed: an address of it is of no use to anybody")
	}
	client := x.blobs.container.NewBlobClient(ptr.name)
	signed, err := client.GetSASURL(sas.BlobPermissions{Read: true}, expiry, nil)
	switch {
	case err == nil:
		return signed, nil
	case !errors.Is(err, bloberror.MissingSharedKeyCredential):
		return "", invalid(op, "%w", wire.Redact(err))
	case x.options.Delegation == nil:
		return "", invalid(op, "the account has no shared key; with a token credential, Options.Delegation signs, and with a shared access signature nothing can")
	}
	return delegated(ctx, x.options.Delegation, client.URL(), ptr.name, expiry)
}

// delegated signs with a key that the service gives to the token's owner.
func delegated(ctx context.Context, s *service.Client, address, name string, expiry time.Time) (string, error) {
	const op = "SignedURL"
	u, err := url.Parse(address)
	if err != nil || u.RawQuery != "" {
		return "", invalid(op, "the container's client has a signature of its own")
	}
	parts, err := sas.ParseURL(address)
	if err != nil {
		return "", invalid(op, "%w", wire.Redact(err))
	}
	begin := time.Now().Add(-clockSkew).UTC()
	start, end := begin.Format(sas.TimeFormat), expiry.UTC().Format(sas.TimeFormat)
	credential, err := s.GetUserDelegationCredential(ctx, service.KeyInfo{Start: &start, Expiry: &end}, nil)
	if err != nil {
		return "", failure(op, name, err)
	}
	values := sas.BlobSignatureValues{ContainerName: parts.ContainerName, BlobName: name, StartTime: begin, ExpiryTime: expiry.UTC(),
		Permissions: (&sas.BlobPermissions{Read: true}).String()}
	if strings.EqualFold(u.Scheme, "https") {
		values.Protocol = sas.ProtocolHTTPS
	}
	query, err := values.SignWithUserDelegation(credential)
	if err != nil {
		return "", invalid(op, "%w", wire.Redact(err))
	}
	return address + "?" + query.Encode(), nil
}
