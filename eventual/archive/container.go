package archive

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ToContainer moves each entity into a blob of its own, which Read reads. Create the container before the first move.
//
// A blob holds the JSON of its entity: its key in the source, and its properties in the JSON of the table service, which names the
// types that do not follow from the values:
//
//	{"v":1,"partition":"Sales","row":"empid_000223","properties":{"Age":34,"Salary@odata.type":"Edm.Int64","Salary":"91000"}}
//
// The blob's metadata are
//
//	tpmove         the name of the move (see the package comment)
//	tpincarnation  the incarnation of the copy
//	tpwrite        the id of the write, which is also in the record; after a lost response it shows whether the write was applied
//	tpmd5          the MD5 of the content in hexadecimal; if it differs from the blob's Content-MD5, a user has changed the blob
//	tppending      "1" on a pending blob, which has no content and no tpmd5
//
// The blob holds the properties as the program sees them, before patterns transform them. New therefore
// refuses a source with a pattern that encrypts, because the blob would hold the values in plaintext. It also
// refuses a source that stores values in other blobs, such as a largeentities.Stream: the move deletes those
// blobs with the entity, and the archived blob would refer to them.
//
// name returns the name of an entity's blob. It must depend only on the entity's key or on properties that
// never change, and return different names for different entities. Use a client of Account.Container: this
// client sends no request after the worker's lease has ended, and tells the mover which requests got no
// response. With another client, each request without a response makes the message wait for its visibility
// timeout.
func ToContainer[T any](c *container.Client, name func(*T) string) Destination[T] {
	codec, err := tables.NewCodec[T]()
	return toContainer[T]{container: c, name: name, codec: codec, codecErr: err}
}

type toContainer[T any] struct {
	container *container.Client
	name      func(*T) string
	codec     *tables.Codec[T]
	codecErr  error

	toFiles bool // made by ToFiles
	files   Files
}

const (
	// The names of the metadata; the service knows no case in them.
	metaMove        = "tpmove"
	metaIncarnation = "tpincarnation"
	metaWrite       = "tpwrite"
	metaMD5         = "tpmd5"
	metaPending     = "tppending"

	maxBlobName = 1024 // the service's limit, in characters
)

func (d toContainer[T]) check(source driver.Host[T]) error {
	switch {
	case d.toFiles && fields.IsNil(d.files):
		return errors.New("the Files are nil; give a store")
	case !d.toFiles && d.container == nil:
		return errors.New("the container is nil; give one of Account.Container, which needs an account with a blob endpoint")
	case d.name == nil:
		return errors.New("the function that names the blobs is nil; give one")
	case d.codecErr != nil:
		return d.codecErr
	}
	for _, p := range source.Patterns() {
		if streams(p) {
			return fmt.Errorf("pattern %q keeps content in blobs that are deleted with the entity, so the archive would hold a dangling reference; use ToRepository", p.Name)
		}
		if encrypts(p) {
			return fmt.Errorf("pattern %q encrypts properties, but a blob would hold them in plaintext; use ToRepository", p.Name)
		}
	}
	return nil
}

func (d toContainer[T]) place(source driver.Host[T], entity *T) ([]string, error) {
	name := d.name(entity)
	if n := len([]rune(name)); n == 0 || n > maxBlobName {
		return nil, &tables.Error{Op: "Move", Table: source.Table().Name(), Key: source.MetaOf(entity).Key(), Kind: tables.ErrInvalid,
			Err: fmt.Errorf("the name function returned a blob name of %d characters; it must have 1 to %d", n, maxBlobName)}
	}
	return []string{name}, nil
}

// archiveBlob is the state, at one read, of the blob of an entity, or of another blob that has its name.
type archiveBlob struct {
	etag               azcore.ETag
	move, write        string
	pending, unchanged bool // unchanged: the blob has the content and the metadata that a mover wrote
}

// put replaces the blob whose ETag is base; if base is "", it creates the blob. A random write ID in the
// metadata identifies the write if the response is lost. put returns the new ETag, or "" if it is unknown.
func (d toContainer[T]) put(ctx context.Context, name string, body []byte, metadata map[string]*string, base azcore.ETag) (azcore.ETag, error) {
	const op = "Move"
	if d.files != nil {
		return d.putFile(ctx, name, body, metadata, base)
	}
	contentType, sum := "application/json", md5.Sum(body)
	var ex wire.Exchange
	answer, err := d.container.NewBlockBlobClient(name).Upload(wire.With(ctx, &ex), streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
		HTTPHeaders:      &blob.HTTPHeaders{BlobContentType: &contentType, BlobContentMD5: sum[:]},
		Metadata:         metadata,
		AccessConditions: blobio.Unchanged(base),
	})
	if err == nil {
		return putETag(answer, &ex), nil
	}
	if certain(&ex) {
		return "", blobFailure(op, name, err)
	}
	there, statErr := d.stat(ctx, name)
	switch {
	case statErr == nil && there != nil && there.write == *metadata[metaWrite]:
		return there.etag, nil
	case isRefusal(err):
		// An earlier attempt may have been applied, but in any case another writer has changed the blob
		// before the last attempt.
		return "", blobFailure(op, name, err)
	}
	return "", unknownBlob(op, name, err)
}

// putETag returns the ETag that a put has left, or "" if the response does not have it. If the client has the
// policies that record an exchange, these take the response, and the SDK's result is empty.
func putETag(answer blockblob.UploadResponse, ex *wire.Exchange) azcore.ETag {
	if etag := ex.Header.Get("ETag"); wire.IsETag(etag) {
		return azcore.ETag(etag)
	}
	if answer.ETag != nil {
		return *answer.ETag
	}
	return ""
}

// certain reports whether a failed write was certainly not applied. With a client that does not record attempts, a
// refusal may answer the retry of a write that was applied, so it is never certain.
func certain(ex *wire.Exchange) bool {
	if ex.Last == wire.OutcomeNone {
		return false
	}
	return !ex.Lost() && !ex.EarlierUnknown()
}

// isRefusal reports whether a condition of the request was not met.
func isRefusal(err error) bool {
	return wire.HasCode(err, "BlobAlreadyExists", "ConditionNotMet") || blobio.IsGone(err)
}

// blobFailure is failure for a conditional request about a blob.
func blobFailure(op, name string, err error) error {
	wrapped := failure(op, name, err)
	if e := (*tables.Error)(nil); isRefusal(err) && errors.As(wrapped, &e) {
		e.Kind = tables.ErrConflict
	}
	return wrapped
}

func unknownBlob(op, name string, err error) error {
	wrapped := failure(op, name, err)
	if e := (*tables.Error)(nil); errors.As(wrapped, &e) {
		e.Kind = tables.ErrUnknownOutcome
	}
	return wrapped
}

// stat reads the properties that identify a blob; nil if it does not exist.
func (d toContainer[T]) stat(ctx context.Context, name string) (*archiveBlob, error) {
	if d.files != nil {
		return d.statFile(ctx, name)
	}
	answer, err := d.container.NewBlobClient(name).GetProperties(ctx, nil)
	if blobio.IsGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, failure("Read", name, err)
	}
	if answer.ETag == nil {
		return nil, failure("Read", name, fmt.Errorf("%w: the response has no ETag of the blob; repeat the operation", tables.ErrGarbled))
	}
	b := &archiveBlob{etag: *answer.ETag}
	metadata := make(map[string]string, len(answer.Metadata))
	for key, value := range answer.Metadata {
		if value != nil {
			metadata[strings.ToLower(key)] = *value
		}
	}
	b.describe(metadata, answer.ContentMD5)
	return b, nil
}

// remove deletes a blob if it has not changed since b was read; otherwise done is false.
func (d toContainer[T]) remove(ctx context.Context, name string, b *archiveBlob) (done bool, err error) {
	if d.files != nil {
		return d.removeFile(ctx, name, b)
	}
	var ex wire.Exchange
	_, err = d.container.NewBlobClient(name).Delete(wire.With(ctx, &ex), &blob.DeleteOptions{AccessConditions: blobio.Unchanged(b.etag)})
	switch {
	case err == nil:
		return true, nil
	case certain(&ex), isRefusal(err):
		return unlessRefused(blobFailure("Move", name, err))
	}
	return false, unknownBlob("Move", name, err)
}
