package largeentities

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// SignedURL returns a URL with which anybody can read the blob of the entity's value, and nothing else, until expiry,
// which is at most 7 days from now. Options.Account signs it by blobstorage.Sign. The URL is a secret: do not log it.
// SignedURL returns tables.ErrNotFound if the entity has no value or holds it in its row, tables.ErrConflict if the
// blob does not exist, and tables.ErrGarbled if the blob belongs to another entity. When the value is replaced, the
// URL stops working. Requests: 2; with a token credential 3.
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
	address, err := sas.ParseURL(x.blobs.container.URL())
	endpoint, endpointErr := url.Parse(account.Endpoints().Blob)
	if err != nil || endpointErr != nil || address.Host == "" || !strings.EqualFold(address.Host, endpoint.Host) {
		return "", errs.Wiringf(op, "", "the container belongs to another account than the one that signs; give the container's account as Options.Account")
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
		return "", errs.Wiringf(op, "", "the blob is sealed, so a URL would return ciphertext; read the value with the Property")
	}
	signed, err := blobstorage.Sign(ctx, account, address.ContainerName, ptr.name, expiry)
	if err != nil {
		return "", err
	}
	etag, err := x.blobs.check(ctx, op, key, ptr.name)
	switch {
	case err != nil:
		return "", err
	case etag == "":
		return "", fault(op, ptr.name, tables.ErrConflict, "the blob does not exist: the entity has been changed since, or the blob is lost; call SignedURL again")
	}
	return signed, nil
}

type resealKey struct{}

// Reseal stores the value of an entity in a new blob, as a new value would be stored: sealed under the
// Sealer's current key, or, with Options.AcceptPlaintext, sealed for the first time. It reads the entity and
// replaces it under its ETag. Before you remove a data key, reseal every entity that has a value under it.
// Requests: those of an Update with a new value.
func (p *Property[T]) Reseal(ctx context.Context, key tables.Key) error {
	const op = "Reseal"
	s, err := p.spill(op)
	if err != nil {
		return err
	}
	if s.blobs.sealing == nil {
		return errs.Wiringf(op, "", "property %s has no Options.Sealer; give it one", p.name)
	}
	_, err = s.host.Update(context.WithValue(ctx, resealKey{}, s), key, func(any) error { return nil })
	return err
}

// keeps reports whether a value that does not change stays in its blob. It is stored in a new blob if Reseal asks for
// that, or if it was stored before Options.Sealer was set.
func (x *spill) keeps(ctx context.Context, old *pointer) bool {
	return old != nil && ctx.Value(resealKey{}) != any(x) && old.sealed == (x.blobs.sealing != nil)
}

// Discard removes the large values of an entity that are lost or damaged for good, so that it can be read, changed
// and deleted again, and returns the names of their properties. A value counts as lost if in two reads its blob does
// not exist, has another length or hash than the pointer says, or does not belong to the entity; a sealed value only
// if its blob does not exist. If the service does not respond or refuses the request, for example because the blob is in
// the archive tier, or if a response is cut off, Discard removes nothing. It removes a Stream only if the row names a blob that cannot be the entity's: any other lost
// Stream does not prevent reading its entity. Discard deletes the damaged blobs whose metadata name the entity. If the
// keys of an index depend on a lost value, only Repository.Repair finds the old rows of that index. tables.ErrConflict
// means that the entity was changed meanwhile. Check the entity before you call Discard: if the property is configured
// with the wrong container, every value looks lost. Requests: 1, 1 or 2 for each []byte and string in a blob, and those
// of a Replace if a value was lost.
func Discard[T any](ctx context.Context, repo *patterns.Repository[T], key tables.Key) ([]string, error) {
	if repo == nil {
		return nil, errs.Wiringf("Discard", "", "the repository is nil; give one")
	}
	lost := &salvage{key: key}
	v, err := repo.Get(context.WithValue(ctx, salvageKey{}, lost), key)
	if err != nil || len(lost.properties) == 0 {
		return nil, err
	}
	if err := repo.Replace(context.WithValue(ctx, discardKey{}, true), v); err != nil {
		return nil, err
	}
	return lost.properties, nil
}

// discardKey marks the Replace of Discard. The blobs that this Replace deletes were not read, and may belong to
// another table.
type discardKey struct{}

func discards(ctx context.Context) bool { return ctx.Value(discardKey{}) != nil }

// salvage marks a read of an entity by Discard, which leaves out lost values, and collects their properties.
type salvage struct {
	key        tables.Key
	properties []string
}

type salvageKey struct{}

// leavesOut reports whether a value is lost, and notes its property. err is the error of the first attempt to read
// the value; the function read tries once more. A sealed blob that exists does not count as lost, because the program
// may have the wrong key. A value that a concurrent writer has just replaced can look lost, too. This does no harm:
// the entity then has a new ETag, so the write of Discard fails.
func (s *salvage) leavesOut(of driver.Reading, property string, sealed bool, err error, read func() error) bool {
	isLost := func(err error) bool {
		damaged := errors.Is(err, tables.ErrGarbled) && !errors.Is(err, errIncomplete) && !refusal.OfResponse(err) && !sealed
		return damaged || errors.Is(err, driver.ErrOutdated)
	}
	if of.Key != s.key || !isLost(err) || !isLost(read()) {
		return false
	}
	if !slices.Contains(s.properties, property) {
		s.properties = append(s.properties, property)
	}
	return true
}
