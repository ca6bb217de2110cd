package encryption

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// A sealed stream is a header (kind 3) and chunks of AES-256-GCM, each of a nonce, 65,536 bytes of plaintext and a tag; the last has 1 to 65,536
// bytes, or none if the whole plaintext is empty. The associated data of a chunk are
//
//	SHA-256("tablepatterns/encryption/1/stream", scope, binding, header)
//
// where 4 bytes of length precede each of the first three, the chunk's number (4 bytes, big endian), and 1 for the last chunk, else 0. The random
// nonces of the at most 2^32 chunks under one key collide with a probability of at most 2^-32.
const (
	chunkSize  = 64 << 10
	sealedSize = chunkSize + overhead
	maxChunks  = math.MaxUint32
)

// Stream seals large values, such as those in blobs, in constant memory and with random access. Each is bound to a text of the caller, such as the
// name of its blob, its entity and property. It is safe for concurrent use.
type Stream struct {
	hidden
	registry *Registry
	scope    string
}

// StreamOptions are the options of a Stream; nil is the same as the zero value.
type StreamOptions struct {
	Scope string // as Options.Scope (default "")
}

// NewStream makes a Stream with the registry's data keys. Requests: none.
func NewStream(registry *Registry, options *StreamOptions) (Stream, error) {
	if registry == nil || registry.state == nil {
		return Stream{}, errs.Wiringf("NewStream", "", "the registry is nil; give a Registry")
	}
	if options == nil {
		options = &StreamOptions{}
	}
	return Stream{registry: registry, scope: options.Scope}, nil
}

// SealedSize returns the size of a sealed stream with n bytes of plaintext.
func (s Stream) SealedSize(n int64) int64 {
	return headerSize + n + overhead*max(1, (n+chunkSize-1)/chunkSize)
}

// PlainSize is the inverse of SealedSize. It returns ErrNotAuthentic for an impossible size. Until the last chunk has been read, the result is only
// as trustworthy as the size given.
func (s Stream) PlainSize(sealed int64) (int64, error) {
	body := sealed - headerSize
	chunks := (body + sealedSize - 1) / sealedSize
	n := body - overhead*chunks
	if body < overhead || n < 0 || s.SealedSize(n) != sealed {
		return 0, ErrNotAuthentic
	}
	return n, nil
}

// DataKey returns the id of a stream's data key, given at least its first 88 bytes. Keep the key as long as streams are sealed under it.
func (s Stream) DataKey(beginning []byte) (DataKeyID, error) {
	h, _, ok := parseHeader(beginning, kindStream)
	if !ok {
		return DataKeyID{}, ErrNotAuthentic
	}
	return h.key, nil
}

type chunks struct {
	keys *writeKeys
	data []byte
}

func (s Stream) chunks(keys *writeKeys, binding, header []byte) chunks {
	data := sha256.Sum256(append(appendFields(nil, domainStream, s.scope, string(binding)), header...))
	return chunks{keys: keys, data: data[:]}
}

func (c chunks) at(number uint32, last bool) []byte {
	data := binary.BigEndian.AppendUint32(bytes.Clone(c.data), number)
	if last {
		return append(data, 1)
	}
	return append(data, 0)
}

// Seal returns a reader of the sealed form of plaintext, which differs each time. An error of plaintext is returned unchanged; Open refuses the
// incomplete stream.
func (s Stream) Seal(ctx context.Context, binding []byte, plaintext io.Reader) (io.Reader, error) {
	if s.registry == nil {
		return nil, errs.Wiringf("Seal", "", "the Stream is the zero value; make it with NewStream")
	}
	id, key, err := s.registry.state.writeKey(ctx)
	if err != nil {
		return nil, err
	}
	o, keys, err := newWrite(key, domainStream, id)
	if err != nil {
		return nil, err
	}
	h := header{kind: kindStream, origin: o}
	beginning := h.append(nil)
	c := s.chunks(keys, binding, beginning)
	return &chunkReader{source: plaintext, size: chunkSize, buffered: buffered{ready: beginning}, turn: func(dst, in []byte, number uint32, last bool) ([]byte, error) {
		return c.keys.aead.Seal(dst, nil, in, c.at(number, last)), nil
	}}, nil
}

// Open returns a reader of the plaintext of a sealed stream, which returns each chunk only after it has checked it; only io.EOF shows that the
// stream is complete. ErrNotAuthentic means that the stream was changed, cut, extended, reordered or sealed for another binding. An error of
// ciphertext is returned unchanged.
func (s Stream) Open(ctx context.Context, binding []byte, ciphertext io.Reader) (io.Reader, error) {
	beginning := make([]byte, headerSize)
	n, _, err := fill(ciphertext, beginning)
	if err != nil {
		return nil, err
	}
	c, err := s.openChunks(ctx, binding, beginning[:n])
	if err != nil {
		return nil, err
	}
	return &chunkReader{source: ciphertext, size: sealedSize, least: overhead, turn: c.open}, nil
}

func (s Stream) openChunks(ctx context.Context, binding, beginning []byte) (chunks, error) {
	if s.registry == nil {
		return chunks{}, errs.Wiringf("Open", "", "the Stream is the zero value; make it with NewStream")
	}
	h, _, ok := parseHeader(beginning, kindStream)
	if !ok {
		return chunks{}, ErrNotAuthentic
	}
	key, err := s.registry.state.dataKey(ctx, h.key)
	if err != nil && unreadable(err) {
		return chunks{}, ErrNotAuthentic
	}
	if err != nil {
		return chunks{}, err
	}
	keys, err := derive(key, domainStream, h.key, &h.salt)
	if err != nil || !keys.commits(&h.origin) {
		return chunks{}, ErrNotAuthentic
	}
	return s.chunks(keys, binding, beginning), nil
}

func (c chunks) open(dst, in []byte, number uint32, last bool) ([]byte, error) {
	out, err := c.keys.aead.Open(dst, nil, in, c.at(number, last))
	if err != nil || last && number > 0 && len(out) == len(dst) { // Seal never writes an empty last chunk after a full one
		return nil, ErrNotAuthentic
	}
	return out, nil
}

type buffered struct {
	ready []byte // not yet returned by Read
	err   error  // once ready is empty, every Read returns it
}

func (b *buffered) read(p []byte, next func() ([]byte, error)) (int, error) {
	for len(b.ready) == 0 && b.err == nil && len(p) > 0 {
		b.ready, b.err = next()
	}
	n := copy(p, b.ready)
	b.ready = b.ready[n:]
	if n > 0 {
		return n, nil
	}
	return 0, b.err
}

// chunkReader transforms a source chunk by chunk. It reads one byte ahead, to recognize the last chunk.
type chunkReader struct {
	source io.Reader
	size   int // size of a chunk of the source
	least  int // of a chunk
	turn   func(dst, in []byte, number uint32, last bool) ([]byte, error)

	buffered
	in     []byte // one byte more than a chunk
	held   int    // bytes in in
	out    []byte
	number uint32
	done   bool
}

// Read implements io.Reader.
func (r *chunkReader) Read(p []byte) (int, error) { return r.read(p, r.next) }

func (r *chunkReader) next() ([]byte, error) {
	if r.done {
		return nil, io.EOF
	}
	if r.in == nil {
		r.in = make([]byte, r.size+1)
		r.out = make([]byte, 0, sealedSize)
	}
	n, last, err := fill(r.source, r.in[r.held:])
	n += r.held
	switch {
	case err != nil:
		return nil, err
	case !last && r.number == maxChunks:
		return nil, &tables.Error{Op: "Seal", Kind: tables.ErrTooLarge}
	case last && n < r.least:
		return nil, ErrNotAuthentic
	}
	out, err := r.turn(r.out[:0], r.in[:min(n, r.size)], r.number, last)
	if err != nil {
		return nil, err
	}
	r.out, r.done = out, last
	r.number++
	r.held = copy(r.in, r.in[min(n, r.size):n])
	return out, nil
}

// fill reads until b is full or the source ends. io.ReadFull does not distinguish a short source from one that was cut off.
func fill(source io.Reader, b []byte) (n int, ended bool, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = source.Read(b[n:])
		n += more
	}
	switch {
	case n == len(b):
		return n, false, nil // an error with the last byte, including io.EOF, recurs at the next read
	case err == io.EOF:
		return n, true, nil
	}
	return n, false, err
}

// RangeFetcher reads a range of a sealed stream, always within the stream.
type RangeFetcher = func(ctx context.Context, offset, length int64) (io.ReadCloser, error)

// OpenRange returns a reader of a range of the plaintext, cut to the stream, given the size of the sealed stream. It checks each chunk, and its
// position, like Open. Only a range that reaches the end shows that nothing was cut off there. Requests: 2 fetches.
func (s Stream) OpenRange(ctx context.Context, binding []byte, sealed, offset, length int64, fetch RangeFetcher) (io.ReadCloser, error) {
	size, err := s.PlainSize(sealed)
	if err != nil {
		return nil, err
	}
	if offset < 0 || length < 0 {
		return nil, errs.Invalidf("OpenRange", "a range of %d bytes at offset %d; neither may be negative", length, offset)
	}
	offset = min(offset, size)
	length = min(length, size-offset)
	first, last := offset/chunkSize, max(0, offset+length-1)/chunkSize
	if length == 0 {
		first = last // check one chunk for an empty range
	}
	body, err := fetch(ctx, 0, headerSize)
	if err != nil {
		return nil, err
	}
	beginning, err := readHeader(body)
	if err != nil {
		return nil, err
	}
	c, err := s.openChunks(ctx, binding, beginning)
	if err != nil {
		return nil, err
	}
	from := headerSize + first*sealedSize
	to := min(sealed, headerSize+(last+1)*sealedSize)
	body, err = fetch(ctx, from, to-from)
	if err != nil {
		return nil, err
	}
	total := max(1, (size+chunkSize-1)/chunkSize)
	return &rangeReader{body: body, cipher: c, number: first, last: last, total: total, skip: offset - first*chunkSize, left: length, sealed: sealed}, nil
}

func readHeader(body io.ReadCloser) ([]byte, error) {
	beginning := make([]byte, headerSize)
	n, _, err := fill(body, beginning)
	if closing := body.Close(); err == nil {
		err = closing
	}
	return beginning[:n], err
}

// rangeReader reads the chunks from number to last, drops the first skip bytes of plaintext, and returns the next left bytes.
type rangeReader struct {
	body                io.ReadCloser
	cipher              chunks
	number, last, total int64
	sealed              int64
	skip, left          int64

	buffered
	in, out []byte
}

// Read implements io.Reader.
func (r *rangeReader) Read(p []byte) (int, error) { return r.read(p, r.next) }

func (r *rangeReader) next() ([]byte, error) {
	if r.number > r.last {
		return nil, io.EOF
	}
	if r.in == nil {
		r.in = make([]byte, sealedSize)
	}
	size := min(sealedSize, r.sealed-headerSize-r.number*sealedSize)
	n, _, err := fill(r.body, r.in[:size])
	if err != nil {
		return nil, err
	}
	if int64(n) < size {
		return nil, ErrNotAuthentic
	}
	r.out, err = r.cipher.open(r.out[:0], r.in[:size], uint32(r.number), r.number == r.total-1)
	if err != nil {
		return nil, err
	}
	ready := r.out[min(r.skip, int64(len(r.out))):]
	ready = ready[:min(r.left, int64(len(ready)))]
	r.left -= int64(len(ready))
	r.skip = 0
	r.number++
	return ready, nil
}

// Close closes the fetched body.
func (r *rangeReader) Close() error { return r.body.Close() }
