package largeentities

import (
	"context"
	"crypto/sha256"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

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

// piece is a part of a blob that is read while earlier parts are written.
type piece struct {
	offset, size int64
	data         []byte
	err          error
	ready        chan struct{}
}

// download reads a blob in pieces, as many concurrently as there are buffers, and writes them in order. All
// pieces come from the version of the blob that the first response shows. Requests: 1 for each block.
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
		last := one.offset+one.size == p.length
		if last && [sha256.Size]byte(sum.Sum(nil)) != p.sha256 {
			return written, garbled(op, p.name, "the blob's content does not have the SHA-256 hash in the entity's pointer; restore the blob, or remove the value with Discard")
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
	if err := ctx.Err(); err != nil && written < p.length {
		return written, context.Cause(ctx)
	}
	return written, nil
}

// fetch reads the pieces into buffers as they become free, and returns when no request is under way. It requests the
// first piece alone, because all others must have its ETag.
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

// fetchOne reads one piece, from body if its request was already made.
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
