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

// SignedURL returns a URL with which anybody can read the blob of the entity's value, and nothing else, until
// expiry, which is at most 7 days from now. Options.Account signs it by Account.SignBlob. The URL is a
// secret: do not log it. SignedURL returns tables.ErrNotFound if the entity has no value or holds it in its
// row. When the value is replaced, the URL stops working. Requests: 1; with a token credential 2.
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
		return "", tables.Wiringf(op, "", "the container belongs to another account than the one that signs; give the container's account as Options.Account")
	}
	ptr, found, err := x.probeRow(ctx, key)
	if err != nil {
		return "", err
	}
	if !found || ptr == nil {
		return "", &tables.Error{Op: op, Table: x.host.Table().Name(), Key: key, Pattern: x.name, Kind: tables.ErrNotFound,
			Err: errors.New("the value has no blob: it is missing or stored in the entity's row; read it with the Repository")}
	}
	if ptr.sealed {
		return "", tables.Wiringf(op, "", "the blob is sealed, so a URL would return ciphertext; read the value with the Property")
	}
	return account.SignBlob(ctx, parts.ContainerName, ptr.name, expiry)
}

// sameHost reports whether two addresses have the same host.
func sameHost(a, b string) bool {
	u, err := url.Parse(a)
	if err != nil {
		return false
	}
	v, err := url.Parse(b)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, v.Host)
}
