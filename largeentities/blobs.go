package largeentities

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// blobs are the blobs of one property.
type blobs struct {
	container   *container.Client
	blockSize   int
	concurrency int
	sealing     *sealing // nil for none
}

const errForeignClient = "the container's client is none of Account.Container, whose requests alone are held to the lease of an intent"

// commit stores a blob by a request that makes all of it visible at once. Names are used once: a blob of the same
// length and hash that is there when the answer is lost, or the condition refuses a repetition, is the one that was sent.
func (b *blobs) commit(ctx context.Context, p *pointer, send func(ctx context.Context) error) error {
	const op = "Store"
	var ex wire.Exchange
	err := send(wire.With(ctx, &ex))
	switch {
	case err == nil && ex.Header == nil:
		return fault(op, p.name, patterns.ErrInvalid, errForeignClient)
	case err == nil:
		return nil
	case !ex.Lost() && !ex.EarlierUnknown() && !isRefused(err):
		return failure(op, p.name, err)
	}
	there, lookErr := b.container.NewBlobClient(p.name).GetProperties(ctx, nil)
	if lookErr != nil || there.ContentLength == nil || *there.ContentLength != p.length || metaOf(there.Metadata, metaHash) != p.hash() {
		return failure(op, p.name, err)
	}
	return nil
}

// touch makes a blob younger: its Last-Modified is the time of the request.
func (b *blobs) touch(ctx context.Context, s *stored) error {
	_, err := b.container.NewBlobClient(s.name).SetMetadata(ctx, s.meta, nil)
	return failure("Store", s.name, err)
}

// remove deletes a blob; one that is not there is deleted. With an ETag, one that has changed is ErrConflict. Requests: 1.
func (b *blobs) remove(ctx context.Context, op, name string, etag azcore.ETag) error {
	var ex wire.Exchange
	snapshots := blob.DeleteSnapshotsOptionTypeInclude
	_, err := b.container.NewBlobClient(name).Delete(wire.With(ctx, &ex), &blob.DeleteOptions{DeleteSnapshots: &snapshots, AccessConditions: ifMatch(etag)})
	switch {
	case (err == nil || isGone(err)) && ex.Header == nil:
		return fault(op, name, patterns.ErrInvalid, errForeignClient)
	case err == nil, isGone(err):
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

func ifAbsent() *blob.AccessConditions {
	absent := azcore.ETagAny
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &absent}}
}

// metaOf finds an entry of a blob's metadata, whose names come back in any case.
func metaOf(meta map[string]*string, name string) string {
	for key, value := range meta {
		if value != nil && strings.EqualFold(key, name) {
			return *value
		}
	}
	return ""
}

// labels are a blob's metadata: whose it is, and what it must hold.
type labels struct{ key, home string }

func (l labels) with(sum []byte) map[string]*string {
	hash := hex.EncodeToString(sum)
	return map[string]*string{metaKey: &l.key, metaHome: &l.home, metaHash: &hash}
}

// stored is a blob that was just stored.
type stored struct {
	pointer
	meta  map[string]*string
	since time.Time // before the request that made it visible was sent
}
