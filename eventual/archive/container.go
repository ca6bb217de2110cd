package archive

import (
	"bytes"
	"context"
	"crypto/fips140"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ToContainer moves each entity into a blob of its own; archive.Read reads it. Create the container before the
// first move.
//
// A blob holds the JSON of its entity: the key that the entity had in the source, and its properties in the
// JSON of the table service, which names a property's type if it does not follow from the value:
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
// never change, and return different names for different entities. Use a client of blobstorage.Container: it sends
// no request after the worker's lease has ended, and tells the mover which requests got no response. With
// another client, after each failed request whose outcome is unknown, the message waits for its visibility
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
	// The names of the metadata. The service ignores their case.
	metaMove        = "tpmove"
	metaIncarnation = "tpincarnation"
	metaWrite       = "tpwrite"
	metaMD5         = "tpmd5"
	metaPending     = "tppending"

	// maxContent limits the JSON of an entity to 32 MiB, since Read holds it in memory whoever has written the blob.
	maxContent = 32 << 20
)

func (d toContainer[T]) check(source driver.Host) error {
	switch {
	case d.toFiles && fields.IsNil(d.files):
		return errors.New("the Files are nil; give a store")
	case !d.toFiles && d.container == nil:
		return errors.New("the container is nil; give one of blobstorage.Container, which needs an account with a blob endpoint")
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

func (d toContainer[T]) place(source driver.Host, entity *T) ([]string, error) {
	name := d.name(entity)
	err := blobio.CheckName(name)
	if name == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, &tables.Error{Op: "Move", Table: source.Table().Name(), Key: source.MetaOf(entity).Key(), Kind: tables.ErrInvalid,
			Err: fmt.Errorf("the name function returned a name that no blob can have: %w", err)}
	}
	key := source.MetaOf(entity).Key()
	body, err := d.encode(key, entity)
	if err == nil && len(body) > maxContent {
		err = &edm.SizeError{What: "the JSON of an archived entity", Size: len(body), Limit: maxContent, Unit: "bytes"}
	}
	if err != nil {
		refused := errs.Invalid("Move", err)
		refused.Table, refused.Key = source.Table().Name(), key
		return nil, refused
	}
	return []string{name}, nil
}

// md5Of returns the MD5 of a content, with which the blob service compares it. It protects nothing, so it may be computed where FIPS 140-3
// is enforced.
func md5Of(content []byte) (sum [md5.Size]byte) {
	fips140.WithoutEnforcement(func() { sum = md5.Sum(content) })
	return sum
}

// archiveBlob describes the blob that has the name of an entity's copy, as it was read.
type archiveBlob struct {
	etag               azcore.ETag
	move, write        string
	pending, unchanged bool // unchanged: the blob has the content and the metadata that a mover wrote
}

// put replaces the blob whose ETag is base; if base is "", it creates the blob. A random write ID in the
// metadata identifies the write if the response is lost. put returns the new ETag, or "" if it is unknown.
func (d toContainer[T]) put(ctx context.Context, name string, body []byte, metadata map[string]*string, base azcore.ETag) (azcore.ETag, error) {
	if d.files != nil {
		return d.putFile(ctx, name, body, metadata, base)
	}
	contentType, sum := "application/json", md5Of(body)
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
		return "", blobFailure(name, err)
	}
	there, statErr := d.stat(ctx, name)
	switch {
	case statErr == nil && there != nil && there.write == *metadata[metaWrite]:
		return there.etag, nil
	case isRefusal(err):
		// Even if an earlier attempt was applied, another writer has changed the blob since.
		return "", blobFailure(name, err)
	}
	return "", unknownBlob(name, err)
}

// putETag returns the blob's ETag after a put, or "" if the response does not have it. A client of blobstorage.Container records
// it in the exchange, and leaves the SDK's result empty.
func putETag(answer blockblob.UploadResponse, ex *wire.Exchange) azcore.ETag {
	if etag := ex.Header.Get("ETag"); wire.IsETag(etag) {
		return azcore.ETag(etag)
	}
	if answer.ETag != nil {
		return *answer.ETag
	}
	return ""
}

// certain reports whether a failed write was certainly not applied. It returns false for a client that does not
// record attempts: the service may have applied the first attempt, and refused only the SDK's retry.
func certain(ex *wire.Exchange) bool {
	return ex.Last != wire.OutcomeNone && !ex.Lost() && !ex.EarlierUnknown()
}

// isRefusal reports whether the service has refused a request because another writer has changed the blob.
func isRefusal(err error) bool { return refusal.IsChanged(err) || blobio.IsGone(err) }

// blobFailure returns the error for a write of a blob that was certainly not applied.
func blobFailure(name string, err error) error {
	e := core.ServiceError("Move", name, err)
	if isRefusal(err) {
		e.Kind = tables.ErrConflict
	}
	return e
}

func unknownBlob(name string, err error) error {
	e := core.ServiceError("Move", name, err)
	e.Kind = tables.ErrUnknownOutcome
	return e
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
		return nil, core.ServiceError("Read", name, err)
	}
	if answer.ETag == nil {
		return nil, &tables.Error{Op: "Read", Table: name, Kind: tables.ErrGarbled, Err: errors.New("the response has no ETag of the blob; repeat the operation")}
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
		return unlessRefused(blobFailure(name, err))
	}
	return false, unknownBlob(name, err)
}

// Files is a store of your program to which ToFiles moves entities, such as another vendor's object store. Each
// file has a version, which every Put of the file changes and never repeats. Methods may be called
// concurrently. Send no request after ctx has ended, and let no request take longer than a sixth of the queue's
// visibility timeout: a late request may overwrite what the next worker has stored.
//
// Put and Delete must return an error of kind tables.ErrConflict if the file has another version; then they
// have changed nothing. They must return an error of kind tables.ErrUnknownOutcome if the request may have
// been applied, or may still be applied. After any other error the mover assumes that nothing was changed.
type Files interface {
	// Put replaces the file that has version base; if base is "", it stores the file only if none has this
	// name. It returns the new version.
	Put(ctx context.Context, name string, f File, base string) (version string, err error)
	// Stat describes a file without its content. It returns nil if there is none.
	Stat(ctx context.Context, name string) (*StoredFile, error)
	// Delete deletes a file if it has the version.
	Delete(ctx context.Context, name, version string) error
}

// File is what Files.Put stores.
type File struct {
	// Content is the JSON of an entity, which Decode reads. It is empty while the file is pending, before the
	// mover stores the content.
	Content []byte
	// Metadata belong to the file and are stored with it. The names consist of lower-case letters and digits.
	Metadata map[string]string
}

// StoredFile describes a file, without its content, as Files.Stat returns it.
type StoredFile struct {
	Version  string
	Metadata map[string]string // as File.Metadata; if others have added metadata, the mover treats the file as changed
	MD5      [16]byte          // MD5 of the current content
}

// ToFiles moves each entity into a file of a store that you write. It uses the protocol, the content and the
// metadata of ToContainer, with the same rules for name, and New refuses the same sources. After a request
// that returned ErrUnknownOutcome, the message waits for its visibility timeout.
func ToFiles[T any](files Files, name func(*T) string) Destination[T] {
	codec, err := tables.NewCodec[T]()
	return toContainer[T]{name: name, codec: codec, codecErr: err, files: files, toFiles: true}
}

// Decode returns the entity in the content of a file that a Mover has written. The entity's Meta is empty, so
// you can insert it into a repository again. Decode returns tables.ErrGarbled if no Mover wrote the content, or
// if a later version of this library wrote it.
func Decode[T any](content []byte) (*T, error) {
	codec, err := tables.NewCodec[T]()
	if err != nil {
		return nil, err
	}
	v, err := openArchive(codec, content)
	if err != nil {
		return nil, &tables.Error{Op: "archive.Decode", Kind: tables.ErrGarbled, Err: err}
	}
	return v, nil
}

// putFile is put for ToFiles.
func (d toContainer[T]) putFile(ctx context.Context, name string, body []byte, metadata map[string]*string, base azcore.ETag) (azcore.ETag, error) {
	if err := stillHeld(ctx); err != nil {
		return "", err
	}
	f := File{Content: body, Metadata: make(map[string]string, len(metadata))}
	for key, value := range metadata {
		f.Metadata[key] = *value
	}
	version, err := d.files.Put(ctx, name, f, string(base))
	if err == nil {
		return azcore.ETag(version), nil
	}
	if errors.Is(err, tables.ErrUnknownOutcome) {
		there, statErr := d.statFile(ctx, name)
		if statErr == nil && there != nil && there.write == *metadata[metaWrite] {
			return there.etag, nil
		}
	}
	return "", fileFailure("Move", name, err)
}

// statFile is stat for ToFiles.
func (d toContainer[T]) statFile(ctx context.Context, name string) (*archiveBlob, error) {
	if err := stillHeld(ctx); err != nil {
		return nil, err
	}
	there, err := d.files.Stat(ctx, name)
	switch {
	case err != nil:
		return nil, fileFailure("Read", name, err)
	case there == nil:
		return nil, nil
	case there.Version == "":
		return nil, fileFailure("Read", name, &tables.Error{Kind: tables.ErrGarbled, Err: errors.New("Files.Stat returned no version of the file; return the one that it has")})
	}
	b := &archiveBlob{etag: azcore.ETag(there.Version)}
	b.describe(there.Metadata, there.MD5[:])
	return b, nil
}

// removeFile is remove for ToFiles.
func (d toContainer[T]) removeFile(ctx context.Context, name string, b *archiveBlob) (done bool, err error) {
	if err := stillHeld(ctx); err != nil {
		return false, err
	}
	err = d.files.Delete(ctx, name, string(b.etag))
	if err != nil {
		err = fileFailure("Move", name, err)
	}
	return unlessRefused(err)
}

// stillHeld returns an error if the worker's lease has ended. For requests to the account, the account's client
// checks this. It does not see requests to the program's Files.
func stillHeld(ctx context.Context) error {
	if l := lease.From(ctx); l != nil {
		return l.Check()
	}
	return ctx.Err()
}

// fileFailure returns an error of the program's store as a tables.Error of the same kind.
func fileFailure(op, name string, err error) error {
	return &tables.Error{Op: op, Table: name, Kind: tables.KindOf(err), Err: err}
}

// describe sets the fields of b that follow from the blob's metadata. content is the MD5 of the current
// content.
func (b *archiveBlob) describe(metadata map[string]string, content []byte) {
	sum, others := "", 0
	for key, value := range metadata {
		switch key {
		case metaMove:
			b.move = value
		case metaWrite:
			b.write = value
		case metaMD5:
			sum = value
		case metaPending:
			b.pending = true
		case metaIncarnation:
		default:
			others++
		}
	}
	b.unchanged = others == 0 && sum != "" && sum == hex.EncodeToString(content)
}
