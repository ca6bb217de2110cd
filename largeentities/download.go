package largeentities

import (
	"context"
	"crypto/sha256"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// piece is a part of a blob that is read while those before it are written.
type piece struct {
	offset, size int64
	data         []byte
	err          error
	ready        chan struct{}
}

// download reads a blob in pieces, as many at once as there are buffers, and writes them in order. All come from the blob
// that answered first. Requests: 1 for each block; 1 for a blob of a block, or one piece at once.
func (b *blobs) download(ctx context.Context, op string, p *pointer, w io.Writer, o DownloadOptions) (int64, error) {
	if o.Concurrency < 0 || o.Concurrency > maxConcurrent {
		return 0, invalid(op, "a Concurrency of %d: it is 0 to %d", o.Concurrency, maxConcurrent)
	}
	if p.length <= int64(b.blockSize) || o.Concurrency <= 1 {
		return b.downloadWhole(ctx, op, p, w, o.Progress)
	}
	ctx, cancel := context.WithCancel(ctx)
	buffers := make(chan []byte, o.Concurrency)
	for range o.Concurrency {
		buffers <- nil // made when it is needed
	}
	pieces := make(chan *piece, o.Concurrency)
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
			return written, garbled(op, p.name, "the blob's content does not have the SHA-256 that the entity says")
		}
		n, err := w.Write(one.data)
		written += int64(n)
		if err != nil {
			return written, err
		}
		if o.Progress != nil {
			o.Progress(written)
		}
		buffers <- one.data[:cap(one.data)]
	}
	if err := ctx.Err(); err != nil && written < p.length {
		return written, context.Cause(ctx)
	}
	return written, nil
}

// downloadWhole is download with 1 request. While a chunk is hashed and written, the next ones are read.
func (b *blobs) downloadWhole(ctx context.Context, op string, p *pointer, w io.Writer, report func(int64)) (written int64, err error) {
	r, err := b.open(ctx, op, p, 0, p.length)
	if err != nil {
		return 0, err
	}
	r.sum = nil // it is hashed here
	ctx, cancel := context.WithCancel(ctx)
	free, full, done := make(chan []byte, chunks), make(chan chunk), make(chan struct{})
	for range chunks {
		free <- nil // made when it is needed
	}
	go func() {
		defer close(done)
		readChunks(ctx, r, free, full)
	}()
	defer func() { cancel(); r.body.Close(); <-done }()
	sum := sha256.New()
	for one := range full {
		sum.Write(one.data)
		if one.err == io.EOF && [sha256.Size]byte(sum.Sum(nil)) != p.sha256 {
			return written, garbled(op, p.name, "the blob's content does not have the SHA-256 that the entity says")
		}
		if one.err != nil && one.err != io.EOF {
			return written, one.err
		}
		n, err := w.Write(one.data)
		written += int64(n)
		if report != nil && err == nil {
			report(written)
		}
		if err != nil || one.err == io.EOF {
			return written, err
		}
		free <- one.data[:cap(one.data)]
	}
	return written, context.Cause(ctx)
}

const (
	chunkSize = 256 << 10
	chunks    = 4 // at once
)

// chunk is a part of an answer, in order. The last one has io.EOF, and nothing but it is known to be the last.
type chunk struct {
	data []byte
	err  error
}

// readChunks reads to the end, or to an error, which is handed over as well.
func readChunks(ctx context.Context, r *reader, free <-chan []byte, full chan<- chunk) {
	defer close(full)
	for left := r.left; ; {
		var data []byte
		select {
		case data = <-free:
		case <-ctx.Done():
			return
		}
		if data == nil {
			data = make([]byte, chunkSize)
		}
		n, err := io.ReadFull(r, data[:min(left, chunkSize)])
		if left -= int64(n); err == nil && left == 0 {
			err = io.EOF
		}
		select {
		case full <- chunk{data[:n], err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// fetch reads the pieces into buffers as these become free, and returns once no request is under way. The first piece is read
// alone, up to its ETag, which all others must have.
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
			under = under[1:] // written, or its buffer would not be free
		}
		pieces <- one // has room for as many as there are buffers
		if err != nil {
			return
		}
	}
}

// fetchOne reads one piece, from body where its request was made already.
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
