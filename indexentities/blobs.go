package indexentities

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	metaCount   = "tpcount" // lower case, since the service ignores case in names of metadata
	contentType = "text/plain; charset=utf-8"
)

// blobLists reads and writes the lists in blobs of a container.
type blobLists struct {
	container *container.Client
	owner     blobowner.Owner // the owner of all lists
}

// blobList is one list as read. If the ETag is empty, the blob does not exist.
type blobList struct {
	ids  []string
	etag azcore.ETag
}

// read reads a list. It returns tables.ErrGarbled for a blob that is not a list of the index. Requests: 1.
func (b blobLists) read(ctx context.Context, name string) (*blobList, error) {
	if err := b.owner.CheckName(name); err != nil {
		return nil, &tables.Error{Table: name, Kind: tables.ErrGarbled, Err: err}
	}
	content, err := blobio.Read(ctx, b.container, name)
	if err != nil {
		return nil, tables.ServiceError("", name, err)
	}
	l, meta := &blobList{etag: content.ETag}, blobowner.FromHeader(content.Header)
	if l.etag == "" {
		return l, nil
	}
	if err = b.owner.CheckLabels(name, meta); err == nil {
		l.ids, err = decodeLines(string(content.Text), blobowner.Label(meta, metaCount))
	}
	if err != nil {
		return nil, &tables.Error{Table: name, Kind: tables.ErrGarbled, Err: err}
	}
	return l, nil
}

// write replaces the ids of a list that was read, under its ETag. If ids is empty, it deletes the blob. Requests: 1.
func (b blobLists) write(ctx context.Context, name string, old *blobList, ids []string) error {
	condition := blobio.Unchanged(old.etag)
	var ex wire.Exchange
	var err error
	if len(ids) == 0 {
		_, err = b.container.NewBlobClient(name).Delete(wire.With(ctx, &ex), &blob.DeleteOptions{AccessConditions: condition})
	} else {
		kind, meta := contentType, b.owner.Metadata(map[string]string{metaCount: strconv.Itoa(len(ids))})
		_, err = b.container.NewBlockBlobClient(name).Upload(wire.With(ctx, &ex), streaming.NopCloser(bytes.NewReader(encodeLines(ids))), &blockblob.UploadOptions{
			HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &kind}, Metadata: meta, AccessConditions: condition})
	}
	return writeFailure(name, err, &ex)
}

// encodeLines writes a list: one id a line.
func encodeLines(ids []string) []byte {
	var text bytes.Buffer
	for _, id := range ids {
		text.WriteString(id)
		text.WriteString(idSeparator)
	}
	return text.Bytes()
}

// decodeLines reads a list. The count in the blob's metadata and the end of the last line distinguish a
// complete list from one that was cut off on its way or edited by hand: if a damaged list were accepted, the
// next change would write it back without the missing keys.
func decodeLines(text, count string) ([]string, error) {
	whole, ended := strings.CutSuffix(text, idSeparator)
	lines := strings.Split(whole, idSeparator)
	if !ended || strconv.Itoa(len(lines)) != count {
		return nil, fmt.Errorf("metadata %s of the list is %q, but the list has %d lines, the last of which may be cut off; delete the blob and run Repository.Rebuild", metaCount, count, len(lines))
	}
	return sortedIDs(lines), nil
}

// writeFailure converts the error of a write. If the service refuses the condition, the result is
// ErrConflict, even if an earlier attempt had an unknown outcome: the caller reads the list again, which
// shows the outcome.
func writeFailure(name string, err error, ex *wire.Exchange) error {
	if err == nil {
		return nil
	}
	e := tables.ServiceError("", name, err)
	if errors.Is(e.Kind, tables.ErrNotFound) {
		e.Kind = tables.ErrConflict // a concurrent writer has deleted the list
	}
	if ex.Lost() || ex.EarlierUnknown() && !errors.Is(e.Kind, tables.ErrConflict) {
		e.Kind = tables.ErrUnknownOutcome
	}
	return e
}
