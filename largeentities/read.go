package largeentities

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/tables"
)

// rereads is the maximum number of times that a read reopens a broken connection.
const rereads = 3

// errIncomplete means that a response was cut off in transit. The blob itself may be correct.
var errIncomplete = errors.New("the response was cut off")

// reader reads a blob, or a range of it, and checks it against its pointer.
type reader struct {
	op   string
	ptr  *pointer
	body io.ReadCloser
	left int64
	sum  hash.Hash // nil for a range
	err  error     // the error that every further Read returns
	span *telemetry.Operation
}

// open starts to read a range within the length. Requests: 1, none for an empty range of a blob that is not empty.
func (b *blobs) open(ctx context.Context, op string, p *pointer, offset, n int64) (*reader, error) {
	r := &reader{op: op, ptr: p, left: n}
	if n == p.length {
		r.sum = sha256.New()
	} else if n == 0 {
		r.body = io.NopCloser(strings.NewReader(""))
		return r, nil
	}
	ctx, r.span = b.begin(ctx, "Download")
	body, _, err := b.get(ctx, op, p, offset, n, "")
	if err != nil {
		r.span.End(err)
		return nil, err
	}
	r.body = body
	return r, nil
}

// opened returns the results of open with an interface type that is nil if r is nil.
func opened(r *reader, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// get requests a range, under the ETag if there is one, and returns the ETag that the response has. The whole
// body comes from that version of the blob: a broken connection is reopened under its ETag.
func (b *blobs) get(ctx context.Context, op string, p *pointer, offset, n int64, etag azcore.ETag) (io.ReadCloser, azcore.ETag, error) {
	owner := b.ownerOf(p.of)
	if err := owner.CheckName(p.name); err != nil {
		return nil, "", garbled(op, p.name, "%w", err)
	}
	options := &blob.DownloadStreamOptions{AccessConditions: ifMatch(etag)}
	ranged := n != p.length
	if ranged {
		options.Range = blob.HTTPRange{Offset: offset, Count: n}
	}
	answer, err := b.container.NewBlobClient(p.name).DownloadStream(ctx, options)
	switch {
	case blobio.IsGone(err), isRefused(err):
		return nil, "", gone(op, p.name)
	case err != nil:
		return nil, "", failure(op, p.name, err)
	}
	whole := int64(-1)
	switch {
	case ranged && answer.ContentRange != nil:
		if _, total, ok := strings.Cut(*answer.ContentRange, "/"); ok {
			if parsed, err := strconv.ParseInt(total, 10, 64); err == nil {
				whole = parsed
			}
		}
	case !ranged && answer.ContentLength != nil:
		whole = *answer.ContentLength
	}
	if whole < 0 {
		_ = answer.Body.Close()
		return nil, "", garbled(op, p.name, "%w: it has no header with the blob's length; repeat the operation", errIncomplete)
	}
	if err := owner.CheckLabels(p.name, answer.Metadata); err != nil {
		_ = answer.Body.Close()
		return nil, "", garbled(op, p.name, "%w", err)
	}
	// For the whole value, check the hash. For a range, check only that the blob was stored with the pointer's hash.
	stored := blobowner.Label(answer.Metadata, metaHash)
	if whole != p.length || stored != p.hash() && (ranged || stored != "") || answer.ETag == nil {
		_ = answer.Body.Close()
		return nil, "", garbled(op, p.name, "the blob has %d bytes and metadata %s %q, and the entity's pointer says %d bytes and %s; restore the blob, or remove the value with Discard", whole, metaHash, stored, p.length, p.hash())
	}
	return answer.NewRetryReader(ctx, &blob.RetryReaderOptions{MaxRetries: rereads, EarlyCloseAsError: true}), *answer.ETag, nil
}

// Read implements io.Reader. It returns the last bytes only if all of them are right.
func (r *reader) Read(p []byte) (n int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	defer func() {
		switch {
		case errors.Is(r.err, io.EOF):
			r.span.End(nil)
		case r.err != nil:
			r.span.End(r.err)
		}
	}()
	if r.left == 0 {
		r.err = r.verify()
		return 0, r.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err = r.body.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if r.sum != nil {
		r.sum.Write(p[:n])
	}
	switch {
	case r.left == 0:
		if r.err = r.verify(); !errors.Is(r.err, io.EOF) {
			return 0, r.err
		}
		return n, nil
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		r.err = garbled(r.op, r.ptr.name, "%w: %d bytes are missing; repeat the operation", errIncomplete, r.left)
	case err != nil:
		r.err = readFailure(r.op, r.ptr.name, err)
	}
	return n, r.err
}

// verify checks the complete content and returns io.EOF if it is right.
func (r *reader) verify() error {
	if r.sum != nil && [sha256.Size]byte(r.sum.Sum(nil)) != r.ptr.sha256 {
		return garbled(r.op, r.ptr.name, "the blob's content does not have the SHA-256 hash in the entity's pointer; restore the blob, or remove the value with Discard")
	}
	return io.EOF
}

// Close ends the reader; it may be called at any time.
func (r *reader) Close() error {
	if r.err == nil {
		r.err = net.ErrClosed
	}
	r.span.End(nil)
	return r.body.Close()
}

// readFailure is the error of a body that cannot be read further, for example because the blob was deleted or changed
// meanwhile.
func readFailure(op, name string, err error) error {
	if blobio.IsGone(err) || isRefused(err) {
		return gone(op, name)
	}
	return failure(op, name, err)
}

// load reads a whole value into memory. Requests: 1.
func (b *blobs) load(ctx context.Context, p *pointer) ([]byte, error) {
	r, err := b.open(ctx, "Load", p, 0, p.length)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, p.length)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		return nil, err
	}
	return data, nil
}

var _ io.ReadCloser = (*reader)(nil)

// isReplaced reports whether an error means that the blob was replaced or deleted.
func isReplaced(err error) bool { return errors.Is(err, tables.ErrConflict) }
