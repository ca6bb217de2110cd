package dataseries

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

const contentType = "application/json"

// blobs are documents in blobs of a container.
type blobs struct{ container *container.Client }

// stored is a document as it was read. If the ETag is empty, the blob does not exist.
type stored struct {
	document
	etag azcore.ETag
	now  time.Time // by the service's clock
}

// read reads a document. Requests: 1.
func (b blobs) read(ctx context.Context, name string) (*stored, error) {
	content, err := blobio.Read(ctx, b.container, name)
	if err != nil {
		return nil, tables.ServiceError("", name, err)
	}
	s := &stored{etag: content.ETag}
	if s.now, err = dateOf(content.Header); err != nil || s.etag == "" {
		return s, err
	}
	d, err := decodeDocument(content.Text)
	if err != nil {
		return nil, &tables.Error{Table: name, Kind: tables.ErrGarbled, Err: err}
	}
	s.document = *d
	return s, nil
}

// write writes the changed document under the ETag with which it was read. If the response is lost, the write ID in
// the blob may show the outcome. Requests: 1.
func (b blobs) write(ctx context.Context, name string, s *stored) error {
	s.document.write = rand.Text()
	kind := contentType
	var ex wire.Exchange
	_, err := b.container.NewBlockBlobClient(name).Upload(wire.With(ctx, &ex), streaming.NopCloser(bytes.NewReader(s.encode())),
		&blockblob.UploadOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &kind},
			AccessConditions: blobio.Unchanged(s.etag)})
	if err == nil {
		return nil
	}
	failed := tables.ServiceError("", name, err)
	if !ex.Lost() && !ex.EarlierUnknown() {
		return failed
	}
	now, readErr := b.read(ctx, name)
	if readErr == nil && now.document.write == s.document.write {
		return nil
	}
	failed.Kind, failed.Err = tables.ErrUnknownOutcome, errors.Join(failed.Err, readErr)
	return failed
}

// remove deletes a document without a check of its ETag. Requests: 1.
func (b blobs) remove(ctx context.Context, name string) error {
	var ex wire.Exchange
	_, err := b.container.NewBlobClient(name).Delete(wire.With(ctx, &ex), nil)
	if err == nil {
		return nil
	}
	failed := tables.ServiceError("", name, err)
	switch {
	case blobio.IsGone(err) && ex.EarlierUnknown():
		return nil // a missing blob means success, since Delete removes it
	case ex.Lost():
		failed.Kind = tables.ErrUnknownOutcome
	}
	return failed
}
