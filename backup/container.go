package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

type blobs struct {
	container *container.Client
	prefix    string
}

const maxPrefix = 256

// OpenContainer returns the vault in the blobs of an existing container whose names begin with prefix and a slash, or in the whole container for
// "". Requests: none.
func OpenContainer(c *container.Client, prefix string) (*Vault, error) {
	const op = "OpenContainer"
	if c == nil {
		return nil, errs.Wiringf(op, "", "the container is nil; give one of blobstorage.Container, which needs an account with a blob endpoint")
	}
	if len(prefix) > maxPrefix {
		return nil, errs.Wiringf(op, "", "the prefix has %d bytes; it must have at most %d", len(prefix), maxPrefix)
	}
	for part := range strings.SplitSeq(prefix, "/") {
		if prefix != "" && !legalName.MatchString(part) {
			return nil, errs.Wiringf(op, "", "each part between the slashes of the prefix must be 1 to 64 ASCII letters, digits, '-' and '_', and begin and end with a letter or digit")
		}
	}
	where := "container " + prefix
	if prefix != "" {
		prefix += "/"
	}
	return &Vault{objects: blobs{c, prefix}, where: where}, nil
}

func ofBlob(err error) error {
	switch {
	case err == nil:
		return nil
	case blobio.IsGone(err):
		return &tables.Error{Kind: tables.ErrNotFound, Err: wire.Redact(err)}
	case wire.HasCode(err, "BlobAlreadyExists", "ConditionNotMet"):
		return &tables.Error{Kind: tables.ErrExists, Err: wire.Redact(err)}
	}
	e := core.Failure(err)
	if errors.Is(e.Kind, tables.ErrGarbled) {
		e.Kind = tables.ErrUnavailable // ErrGarbled would say that the object is damaged
	}
	return e
}

func (b blobs) get(ctx context.Context, name string, limit int64) ([]byte, error) {
	answer, err := b.container.NewBlobClient(b.prefix+name).DownloadStream(ctx, nil)
	if err != nil {
		return nil, ofBlob(err)
	}
	body := answer.NewRetryReader(ctx, nil)
	defer body.Close()
	if answer.ContentLength != nil && *answer.ContentLength > limit {
		return nil, errTooLong
	}
	content, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, ofBlob(err)
	case int64(len(content)) > limit:
		return nil, errTooLong
	case answer.ContentLength != nil && *answer.ContentLength != int64(len(content)):
		return nil, &tables.Error{Kind: tables.ErrUnavailable, Err: fmt.Errorf("the response ended after %d bytes of %d; repeat the operation", len(content), *answer.ContentLength)}
	}
	return content, nil
}

func (b blobs) put(ctx context.Context, name string, content []byte, create bool) error {
	options := &blockblob.UploadOptions{}
	if create {
		options.AccessConditions = blobio.Unchanged("")
	}
	_, err := b.container.NewBlockBlobClient(b.prefix+name).Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), options)
	return ofBlob(err)
}

func (b blobs) list(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for item, err := range blobio.List(ctx, b.container, b.prefix+prefix, container.ListBlobsInclude{}) {
			if err != nil {
				yield("", ofBlob(err))
				return
			}
			if name := strings.TrimPrefix(*item.Name, b.prefix); !strings.Contains(strings.TrimPrefix(name, prefix), "/") && !yield(name, nil) {
				return
			}
		}
	}
}

func (b blobs) clear(ctx context.Context, prefix string) error {
	var names []string
	for name, err := range b.list(ctx, prefix) {
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	remove := func(ctx context.Context, i int) error {
		_, err := b.container.NewBlobClient(b.prefix+names[i]).Delete(ctx, nil)
		if blobio.IsGone(err) {
			return nil
		}
		return ofBlob(err)
	}
	// The last is the header of the journal, with which Unfinished finds the others after a crash.
	last := len(names) - 1
	if err := each(ctx, storers, last, remove); err != nil || last < 0 {
		return err
	}
	return remove(ctx, last)
}

func (b blobs) flush() {}

func (b blobs) close() error { return nil }
