package largeentities

import (
	"cmp"
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
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
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

// open starts to read n bytes from offset on. Requests: 1, none for an empty range of a blob that is not empty.
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

// opened returns the results of open as an interface, which is nil if r is nil.
func opened(r *reader, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// get requests a range, under the ETag if there is one, and returns the ETag of the response. If the connection
// breaks, the body requests the rest under that ETag, so all bytes are of one version of the blob.
func (b *blobs) get(ctx context.Context, op string, p *pointer, offset, n int64, etag azcore.ETag) (io.ReadCloser, azcore.ETag, error) {
	if err := b.ownerOf(p.of).CheckName(p.name); err != nil {
		return nil, "", garbled(op, p.name, "%w", err)
	}
	options := &blob.DownloadStreamOptions{AccessConditions: ifMatch(etag)}
	ranged := n != p.length
	if ranged {
		options.Range = blob.HTTPRange{Offset: offset, Count: n}
	}
	answer, err := b.container.NewBlobClient(p.name).DownloadStream(ctx, options)
	if err != nil {
		return nil, "", readFailure(op, p.name, err)
	}
	if err := b.checkResponse(op, p, ranged, &answer); err != nil {
		_ = answer.Body.Close()
		return nil, "", err
	}
	return answer.NewRetryReader(ctx, &blob.RetryReaderOptions{MaxRetries: rereads, EarlyCloseAsError: true}), *answer.ETag, nil
}

// checkResponse returns an error unless the header of a response is that of the blob to which the pointer refers.
func (b *blobs) checkResponse(op string, p *pointer, ranged bool, answer *blob.DownloadStreamResponse) error {
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
	if whole < 0 || answer.ETag == nil {
		return garbled(op, p.name, "%w: it has no header with the blob's length or ETag; repeat the operation", errIncomplete)
	}
	if err := b.ownerOf(p.of).CheckLabels(p.name, answer.Metadata); err != nil {
		return garbled(op, p.name, "%w", err)
	}
	// The reader of a whole value checks the hash of its bytes. The reader of a range cannot, so the metadata must
	// have the pointer's hash.
	stored := blobowner.Label(answer.Metadata, metaHash)
	if whole != p.length || stored != p.hash() && (ranged || stored != "") {
		return garbled(op, p.name, "the blob has %d bytes and metadata %s %q, and the entity's pointer says %d bytes and %s; restore the blob, or remove the value with Discard", whole, metaHash, stored, p.length, p.hash())
	}
	return nil
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
	if r.sum == nil {
		return io.EOF
	}
	return cmp.Or(checkHash(r.op, r.ptr, r.sum), io.EOF)
}

// checkHash returns an error if the hash of a blob's content is not the one in the pointer.
func checkHash(op string, p *pointer, sum hash.Hash) error {
	if [sha256.Size]byte(sum.Sum(nil)) == p.sha256 {
		return nil
	}
	return garbled(op, p.name, "the blob's content does not have the SHA-256 hash in the entity's pointer; restore the blob, or remove the value with Discard")
}

// Close ends the reader; it may be called at any time.
func (r *reader) Close() error {
	if r.err == nil {
		r.err = net.ErrClosed
	}
	r.span.End(nil)
	return r.body.Close()
}

// readFailure returns the error of a blob that cannot be read, or whose rest cannot, for example because the blob was deleted meanwhile.
func readFailure(op, name string, err error) error {
	switch {
	case blobio.IsGone(err), refusal.IsChanged(err):
		return gone(op, name)
	case wire.HasCode(err, "InvalidRange"):
		return garbled(op, name, "the blob is shorter than the entity's pointer says; restore the blob, or remove the value with Discard")
	}
	return failure(op, name, err)
}

var _ io.ReadCloser = (*reader)(nil)

// isReplaced reports whether an error means that the blob was replaced or deleted.
func isReplaced(err error) bool { return errors.Is(err, tables.ErrConflict) }

// copySize is the number of bytes read, hashed and written at once: small enough to stay in the processor's cache.
const copySize = 128 << 10

// toldWriter reports how many bytes it has written.
type toldWriter struct {
	w       io.Writer
	written int64
	report  func(int64)
}

// Write implements io.Writer.
func (t *toldWriter) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	t.written += int64(n)
	if t.report != nil && err == nil {
		t.report(t.written)
	}
	return n, err
}

// piece is a part of a blob. Several pieces are read while earlier ones are written.
type piece struct {
	offset, size int64
	data         []byte
	err          error
	ready        chan struct{}
}

// download reads a blob in pieces, up to atOnce of them concurrently, and writes them in order. All pieces are of the version of the blob
// that the first response has. Requests: 1 for each block.
func (b *blobs) download(ctx context.Context, op string, p *pointer, w io.Writer, atOnce int) (_ int64, err error) {
	ctx, span := b.begin(ctx, "Download")
	defer func() { span.End(err) }()
	ctx, cancel := context.WithCancel(ctx)
	buffers := make(chan []byte, atOnce)
	for range atOnce {
		buffers <- nil // allocated on first use
	}
	pieces := make(chan *piece, atOnce)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.fetch(ctx, op, p, buffers, pieces)
	}()
	defer func() { cancel(); <-done }()
	sum, written := sha256.New(), int64(0)
	for one := range pieces {
		<-one.ready
		if one.err != nil {
			return written, one.err
		}
		sum.Write(one.data)
		if last := one.offset+one.size == p.length; last {
			if err := checkHash(op, p, sum); err != nil {
				return written, err
			}
		}
		n, err := w.Write(one.data)
		if written += int64(n); err != nil {
			return written, err
		}
		if n != len(one.data) {
			return written, io.ErrShortWrite
		}
		buffers <- one.data[:cap(one.data)]
	}
	if ctx.Err() != nil && written < p.length {
		return written, context.Cause(ctx)
	}
	return written, nil
}

// fetch reads the pieces into buffers as they become free, and returns when no request is under way. It requests the first piece alone,
// because all others are requested under the ETag of its response.
func (b *blobs) fetch(ctx context.Context, op string, p *pointer, buffers <-chan []byte, pieces chan<- *piece) {
	defer close(pieces)
	var pinned azcore.ETag
	var under []*piece
	defer func() {
		for _, one := range under {
			<-one.ready
		}
	}()
	for offset := int64(0); offset < p.length; {
		var buffer []byte
		select {
		case buffer = <-buffers:
		case <-ctx.Done():
			return
		}
		if buffer == nil {
			buffer = make([]byte, b.blockSize)
		}
		one := &piece{offset: offset, size: min(int64(b.blockSize), p.length-offset), ready: make(chan struct{})}
		one.data = buffer[:one.size]
		offset += one.size
		body, etag, err := io.ReadCloser(nil), pinned, error(nil)
		if pinned == "" {
			body, etag, err = b.get(ctx, op, p, one.offset, one.size, "")
			pinned = etag
		}
		if err != nil {
			one.err = err
			close(one.ready)
		} else {
			go b.fetchOne(ctx, op, p, one, body, etag)
		}
		if under = append(under, one); len(under) > cap(pieces) {
			under = under[1:] // the earlier pieces have been written, since otherwise no buffer would be free
		}
		pieces <- one // never blocks: the channel has room for as many pieces as there are buffers
		if err != nil {
			return
		}
	}
}

// fetchOne reads one piece. body is that of the first piece, for which fetch has made the request, and nil for the others.
func (b *blobs) fetchOne(ctx context.Context, op string, p *pointer, one *piece, body io.ReadCloser, etag azcore.ETag) {
	defer close(one.ready)
	if body == nil {
		if body, _, one.err = b.get(ctx, op, p, one.offset, one.size, etag); one.err != nil {
			return
		}
	}
	r := &reader{op: op, ptr: p, body: body, left: one.size}
	defer r.Close()
	_, one.err = io.ReadFull(r, one.data)
}
