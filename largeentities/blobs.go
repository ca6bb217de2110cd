package largeentities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// blobs are the blobs of one property.
type blobs struct {
	container   *container.Client
	prefix      string // beginning of the blobs' names
	home        string // the table of the entities, as metadata
	blockSize   int
	concurrency int
	deadline    time.Duration // limits the time from the storing of a blob to the sending of the transaction that points at it
	sealing     *sealing      // nil for none
	signals     *telemetry.Telemetry
}

// begin begins an upload or a download, and names the operation by the container.
func (b *blobs) begin(ctx context.Context, verb string) (context.Context, *telemetry.Operation) {
	if !b.signals.On() {
		return ctx, nil
	}
	return b.signals.Begin(ctx, telemetry.Blobs, verb, b.containerName())
}

func (b *blobs) containerName() string {
	address, _, _ := strings.Cut(b.container.URL(), "?") // a signature may follow the question mark
	return path.Base(address)
}

const errForeignClient = "the container's client was not made by blobstorage.Container; use that, since only its requests stop when the lease of an intent ends"

// commit stores a blob with one request that makes all of it visible at once. If the response is lost, or the service refuses a retry
// because the blob exists, commit compares length and hash: since no name is used twice, an equal blob is the one that it has sent.
func (b *blobs) commit(ctx context.Context, p *pointer, send func(ctx context.Context) error) error {
	const op = "Store"
	var ex wire.Exchange
	err := send(wire.With(ctx, &ex))
	switch {
	case err == nil && ex.Header == nil:
		return fault(op, p.name, tables.ErrWiring, errForeignClient)
	case err == nil:
		return nil
	case !ex.Lost() && !ex.EarlierUnknown() && !refusal.IsChanged(err):
		return failure(op, p.name, err)
	}
	there, statErr := b.container.NewBlobClient(p.name).GetProperties(ctx, nil)
	if statErr != nil || there.ContentLength == nil || *there.ContentLength != p.length || blobowner.Label(there.Metadata, metaHash) != p.hash() {
		return failure(op, p.name, err)
	}
	return nil
}

// touch sets a blob's Last-Modified to the time of the request.
func (b *blobs) touch(ctx context.Context, s *stored) error {
	_, err := b.container.NewBlobClient(s.name).SetMetadata(ctx, s.meta, nil)
	return failure("Store", s.name, err)
}

// remove deletes a blob; a missing blob is not an error. With an ETag, it returns ErrConflict if the blob has changed. Requests: 1.
func (b *blobs) remove(ctx context.Context, op, name string, etag azcore.ETag) error {
	var ex wire.Exchange
	snapshots := blob.DeleteSnapshotsOptionTypeInclude
	_, err := b.container.NewBlobClient(name).Delete(wire.With(ctx, &ex), &blob.DeleteOptions{DeleteSnapshots: &snapshots, AccessConditions: ifMatch(etag)})
	switch {
	case (err == nil || blobio.IsGone(err)) && ex.Header == nil:
		return fault(op, name, tables.ErrWiring, errForeignClient)
	case err == nil, blobio.IsGone(err):
		return nil
	}
	return failure(op, name, err)
}

func ifMatch(etag azcore.ETag) *blob.AccessConditions {
	if etag == "" {
		return nil
	}
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}
}

// ownerOf returns the owner of an entity's blobs, which says how their names begin and which metadata they have.
func (b *blobs) ownerOf(key tables.Key) blobowner.Owner {
	return blobowner.Owner{What: "the entity", Prefix: entityPrefix(b.prefix, key), Labels: map[string]string{metaKey: encodeKey(key), blobowner.HomeLabel: b.home}}
}

// checkOwn returns an error for a name that no blob of the entity can have. Every name that was read from a row is checked
// before a request uses it.
func (b *blobs) checkOwn(op string, key tables.Key, name string) error {
	if err := b.ownerOf(key).CheckName(name); err != nil {
		return garbled(op, "", "%w", err)
	}
	return nil
}

// check reads the metadata of a blob, and returns ErrGarbled unless they say that it belongs to the entity. The name
// alone does not show that: if two tables share container and prefix, blobs of entities with equal keys have the same
// name prefix. The ETag is "" if the blob does not exist. Requests: 1.
func (b *blobs) check(ctx context.Context, op string, key tables.Key, name string) (azcore.ETag, error) {
	there, err := b.container.NewBlobClient(name).GetProperties(ctx, nil)
	switch {
	case blobio.IsGone(err):
		return "", nil
	case err != nil:
		return "", failure(op, name, err)
	case there.ETag == nil:
		return "", garbled(op, name, "the response has no ETag; repeat the operation")
	}
	if err := b.ownerOf(key).CheckLabels(name, there.Metadata); err != nil {
		return "", garbled(op, name, "%w", err)
	}
	return *there.ETag, nil
}

// removeUnread deletes a blob that no response has shown to be the entity's: only a row has named it, and whoever can write rows can choose
// the name. A missing blob is not an error. If the blob's metadata do not name the entity, removeUnread keeps the blob and writes a line to
// the log. Requests: 2.
func (b *blobs) removeUnread(ctx context.Context, op string, key tables.Key, name string) error {
	etag, err := b.check(ctx, op, key, name)
	switch {
	case errors.Is(err, blobowner.ErrForeign):
		b.signals.Log(ctx, telemetry.LineBlobKept, b.prefix, slog.String("prefix", b.prefix), b.signals.Error(err))
		return nil
	case err != nil || etag == "":
		return err
	}
	return b.remove(ctx, op, name, etag)
}

// stored is a blob that was just stored.
type stored struct {
	pointer
	meta  map[string]*string
	since time.Time // just before the request was sent that made the blob visible
}

// fault makes an error of this package. name is the blob's name, "" if there is none.
func fault(op, name string, kind error, format string, args ...any) *tables.Error {
	return &tables.Error{Op: op, Table: name, Kind: kind, Err: fmt.Errorf(format, args...)}
}

// failure makes the error of a request to the blob service. Such a request does not change the entity, so the error is never
// ErrUnknownOutcome.
func failure(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*tables.Error](err); ok {
		return err
	}
	e := core.ServiceError(op, name, err)
	if blobio.IsGone(err) {
		e.Kind = tables.ErrConflict
	}
	return e
}

// gone returns the error of a read whose blob was deleted or replaced.
func gone(op, name string) error {
	return fault(op, name, tables.ErrConflict, "the blob was deleted or replaced since the entity was read; read the entity again")
}

func garbled(op, name, format string, args ...any) error {
	return fault(op, name, tables.ErrGarbled, format, args...)
}
