package encryption

import (
	"context"
	"io"

	"github.com/tablepatterns/tablepatterns/tables"
)

// RangeFetcher reads a range of a sealed stream, such as a range of a blob. It is called only with ranges within the
// stream.
type RangeFetcher = func(ctx context.Context, offset, length int64) (io.ReadCloser, error)

// OpenRange returns a reader of a range of the plaintext, given the size of the sealed stream. It truncates the range
// to the stream: a range that begins after the end is empty. It checks each chunk, and its position, like Open. Only a
// range that reaches the end shows that nothing was cut off there. Requests: 2 fetches.
func (s Stream) OpenRange(ctx context.Context, binding []byte, sealed, offset, length int64, fetch RangeFetcher) (io.ReadCloser, error) {
	size, err := s.PlainSize(sealed)
	if err != nil {
		return nil, err
	}
	if offset < 0 || length < 0 {
		return nil, tables.Invalidf("OpenRange", "a range of %d bytes at offset %d; neither may be negative", length, offset)
	}
	offset = min(offset, size)
	length = min(length, size-offset)
	first, last := offset/chunkSize, max(0, offset+length-1)/chunkSize
	if length == 0 {
		first = last // for an empty range, check one chunk
	}
	beginning, err := fetchHeader(ctx, fetch)
	if err != nil {
		return nil, err
	}
	c, err := s.openChunks(ctx, binding, beginning)
	if err != nil {
		return nil, err
	}
	from := headerSize + first*sealedSize
	to := min(sealed, headerSize+(last+1)*sealedSize)
	body, err := fetch(ctx, from, to-from)
	if err != nil {
		return nil, err
	}
	total := max(1, (size+chunkSize-1)/chunkSize)
	return &rangeReader{body: body, cipher: c, number: first, last: last, total: total, skip: offset - first*chunkSize, left: length, sealed: sealed}, nil
}

func fetchHeader(ctx context.Context, fetch RangeFetcher) ([]byte, error) {
	body, err := fetch(ctx, 0, headerSize)
	if err != nil {
		return nil, err
	}
	beginning := make([]byte, headerSize)
	n, _, err := fill(body, beginning)
	if closing := body.Close(); err == nil {
		err = closing
	}
	if err == nil && n < headerSize {
		err = ErrNotAuthentic
	}
	return beginning, err
}

// rangeReader reads the chunks from number to last, drops skip bytes of them, and returns the next left bytes.
type rangeReader struct {
	body                io.ReadCloser
	cipher              chunks
	number, last, total int64
	sealed              int64
	skip, left          int64

	in, out, ready []byte
	err            error
}

// Read implements io.Reader.
func (r *rangeReader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 && r.err == nil && len(p) > 0 {
		if r.number > r.last {
			r.err = io.EOF
			break
		}
		r.err = r.next()
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	if n > 0 {
		return n, nil
	}
	return 0, r.err
}

func (r *rangeReader) next() error {
	if r.in == nil {
		r.in = make([]byte, sealedSize)
	}
	size := min(sealedSize, r.sealed-headerSize-r.number*sealedSize)
	n, _, err := fill(r.body, r.in[:size])
	if err != nil {
		return err
	}
	if int64(n) < size {
		return ErrNotAuthentic
	}
	out, err := r.cipher.open(r.out[:0], r.in[:size], uint32(r.number), r.number == r.total-1)
	if err != nil {
		return err
	}
	r.out, r.ready = out, out[min(r.skip, int64(len(out))):]
	r.ready = r.ready[:min(r.left, int64(len(r.ready)))]
	r.left -= int64(len(r.ready))
	r.skip = 0
	r.number++
	return nil
}

// Close closes the fetched body.
func (r *rangeReader) Close() error { return r.body.Close() }
