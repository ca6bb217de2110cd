package archive

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Files is a store of your program to which ToFiles moves entities, such as another vendor's object store.
// Each file has a version, which every Put of the file changes and never repeats. Methods may be called
// concurrently. Send no request after ctx has ended, and no request that takes longer than a sixth of the
// queue's visibility timeout: a late request may overwrite the file of the next worker.
//
// Put and Delete must return an error of kind tables.ErrConflict if the file has another version; then they
// have changed nothing. They must return an error of kind tables.ErrUnknownOutcome if the request may have
// been applied, or may still be applied. After any other error the mover assumes that nothing was changed.
type Files interface {
	// Put stores a file in place of the one that has version base; with base "", only if there is none. It returns the new version.
	Put(ctx context.Context, name string, f File, base string) (version string, err error)
	// Stat describes a file without its content. It returns nil if there is none.
	Stat(ctx context.Context, name string) (*StoredFile, error)
	// Delete deletes a file if it has the version.
	Delete(ctx context.Context, name, version string) error
}

// File is what Files.Put stores.
type File struct {
	// Content is the JSON of an entity, which Decode reads. It is empty while the file is pending, before the entity is moved.
	Content []byte
	// Metadata belong to the file and are stored with it. The names consist of lower-case letters and digits.
	Metadata map[string]string
}

// StoredFile describes a file, without its content, as Files.Stat returns it.
type StoredFile struct {
	Version  string
	Metadata map[string]string // as File.Metadata; metadata that others have added count as a change of the file
	MD5      [16]byte          // MD5 of the current content
}

// ToFiles moves each entity into a file of a store that you write. It uses the protocol, the content and the
// metadata of ToContainer, with the same rules for name, and New refuses the same sources. After a request
// that returned ErrUnknownOutcome, the message waits for its visibility timeout.
func ToFiles[T any](files Files, name func(*T) string) Destination[T] {
	codec, err := tables.NewCodec[T]()
	return toContainer[T]{name: name, codec: codec, codecErr: err, files: files, toFiles: true}
}

// Decode returns the entity in the content of a file that a Mover has written. Its Meta is empty, so you can
// insert it into a repository again. It returns tables.ErrGarbled if no Mover wrote the content, or if a
// later version of this library wrote it.
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

// putFile does the work of put with the Files of the program.
func (d toContainer[T]) putFile(ctx context.Context, name string, body []byte, metadata map[string]*string, base azcore.ETag) (azcore.ETag, error) {
	const op = "Move"
	if err := stillHeld(ctx); err != nil {
		return "", err
	}
	f := File{Content: body, Metadata: make(map[string]string, len(metadata))}
	for key, value := range metadata {
		f.Metadata[key] = *value
	}
	version, err := d.files.Put(ctx, name, f, string(base))
	switch {
	case err == nil:
		return azcore.ETag(version), nil
	case !errors.Is(err, tables.ErrUnknownOutcome):
		return "", fileFailure(op, name, err)
	}
	there, statErr := d.statFile(ctx, name)
	if statErr == nil && there != nil && there.write == *metadata[metaWrite] {
		return there.etag, nil
	}
	return "", fileFailure(op, name, err)
}

// statFile does the work of stat with the Files of the program.
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

// removeFile does the work of remove with the Files of the program.
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

// stillHeld returns an error if the worker's lease has ended; the account's policies do not see the requests of the program's store.
func stillHeld(ctx context.Context) error {
	if l := lease.From(ctx); l != nil {
		return l.Check()
	}
	return ctx.Err()
}

// fileFailure converts an error of the program's store and keeps its kind.
func fileFailure(op, name string, err error) error {
	return &tables.Error{Op: op, Table: name, Kind: tables.KindOf(err), Err: err}
}

// describe reads the metadata into the blob, given the MD5 of the current content.
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
