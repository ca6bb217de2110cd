package largeentities

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/tablepatterns/tablepatterns/tables"
)

// SignedURL returns an address under which anybody can read the blob of the entity's value, and nothing else, until expiry, which
// is at most 7 days from now: tables.Account.SignBlob of Options.Account. The address is the secret: it does not belong into
// logs. A value that is in the entity, or none, is tables.ErrNotFound. After the value is replaced, the address leads nowhere.
// Requests: 1; with a token credential 2.
func (p *Property[T]) SignedURL(ctx context.Context, key tables.Key, expiry time.Time) (string, error) {
	const op = "SignedURL"
	x, err := p.spill(op)
	if err != nil {
		return "", err
	}
	account := x.options.Account
	if account == nil {
		account = x.host.Table().Account()
	}
	parts, err := sas.ParseURL(x.blobs.container.URL())
	if err != nil || !sameHost(x.blobs.container.URL(), account.Endpoints().Blob) {
		return "", tables.Invalidf(op, "the container is not one of the account that signs; give the container's account as Options.Account")
	}
	ptr, found, err := x.lookAt(ctx, key)
	if err != nil {
		return "", err
	}
	if !found || ptr == nil {
		return "", &tables.Error{Op: op, Table: x.host.Table().Name(), Key: key, Pattern: x.name, Kind: tables.ErrNotFound,
			Err: errors.New("the value is in no blob")}
	}
	if ptr.sealed {
		return "", tables.Invalidf(op, "the blob is sealed: an address of it is of no use to anybody")
	}
	return account.SignBlob(ctx, parts.ContainerName, ptr.name, expiry)
}

// sameHost reports whether two addresses are of one service.
func sameHost(a, b string) bool {
	u, err := url.Parse(a)
	if err != nil {
		return false
	}
	v, err := url.Parse(b)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, v.Host)
}
