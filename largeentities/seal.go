package largeentities

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Sealer encrypts the content of blobs, for example encryption.Stream. Open must return the content that was
// sealed under the same binding, or an error of kind tables.ErrGarbled. It must be safe for concurrent use.
type Sealer interface {
	// Seal returns a reader of the sealed form of plaintext.
	Seal(ctx context.Context, binding []byte, plaintext io.Reader) (io.Reader, error)
	// Open returns a reader of the plaintext. The reader returns only checked bytes; only io.EOF shows that the
	// plaintext is complete.
	Open(ctx context.Context, binding []byte, ciphertext io.Reader) (io.Reader, error)
	// OpenRange returns a reader of a range of the plaintext, given the size of the sealed form; fetch reads ranges of
	// the sealed form.
	OpenRange(ctx context.Context, binding []byte, sealed, offset, length int64, fetch func(ctx context.Context, offset, length int64) (io.ReadCloser, error)) (io.ReadCloser, error)
	// SealedSize returns the size of the sealed form of plain bytes, and PlainSize is its inverse.
	SealedSize(plain int64) int64
	PlainSize(sealed int64) (int64, error)
}

// sealing seals and opens the blobs of one property.
type sealing struct {
	sealer                   Sealer
	account, table, property string
	acceptPlaintext          bool
}

// binding returns the texts to which a sealed blob is bound, each preceded by 4 bytes of length, big endian:
//
//	"tablepatterns/largeentities/1", account, table in lower case, partition key, row key, property, name of the blob, content type
//
// No name is used twice, so each sealed blob is valid for one value of one entity: nobody can pass an older value of the property off as
// the current one.
func (s *sealing) binding(p *pointer) []byte {
	var b []byte
	for _, field := range []string{"tablepatterns/largeentities/1", s.account, s.table, p.of.Partition, p.of.Row, s.property, p.name, p.contentType} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(field))), field...)
	}
	return b
}

// raw returns the pointer with which the sealed form is read, as if it was a value that is not sealed.
func (s *sealing) raw(p *pointer) *pointer {
	raw := *p
	raw.sealed, raw.length = false, s.sealer.SealedSize(p.length)
	return &raw
}

var (
	errInClear  = errors.New("it is stored in plaintext although Options.Sealer is set; to accept older values, set Options.AcceptPlaintext")
	errNoSealer = errors.New("its blob is sealed; set Options.Sealer to read it")
)

const wrongLength = "the opened content does not have the length in the entity's pointer; restore the blob, or remove the value with Discard"

// checkSealed returns an error if a value is sealed and the property has no Sealer, or the other way round. ptr is nil for a value within
// the entity.
func (b *blobs) checkSealed(ptr *pointer) error {
	sealed := ptr != nil && ptr.sealed
	switch {
	case sealed && b.sealing == nil:
		return errNoSealer
	case !sealed && b.sealing != nil && !b.sealing.acceptPlaintext:
		return errInClear
	}
	return nil
}

// openValue opens a blob and, if it is sealed, unseals it. Requests: 1; 2 for a range of a sealed blob.
func (b *blobs) openValue(ctx context.Context, op string, p *pointer, offset, n int64) (io.ReadCloser, error) {
	if err := b.checkSealed(p); err != nil {
		return nil, garbled(op, p.name, "%w", err)
	}
	if !p.sealed {
		return opened(b.open(ctx, op, p, offset, n))
	}
	raw, binding := b.sealing.raw(p), b.sealing.binding(p)
	if n != p.length {
		if n == 0 {
			return io.NopCloser(strings.NewReader("")), nil
		}
		r, err := b.sealing.sealer.OpenRange(ctx, binding, raw.length, offset, n, func(ctx context.Context, offset, n int64) (io.ReadCloser, error) {
			return opened(b.open(ctx, op, raw, offset, n))
		})
		if err != nil {
			return nil, sealError(op, p.name, err)
		}
		return &openedReader{Reader: r, Closer: r, op: op, name: p.name, left: n}, nil
	}
	body, err := b.open(ctx, op, raw, 0, raw.length)
	if err != nil {
		return nil, err
	}
	body.sum = nil // the sealer checks the content itself
	r, err := b.sealing.sealer.Open(ctx, binding, body)
	if err != nil {
		_ = body.Close()
		return nil, sealError(op, p.name, err)
	}
	return &openedReader{Reader: r, Closer: body, op: op, name: p.name, left: n}, nil
}

// openedReader reads the plaintext that a Sealer returns.
type openedReader struct {
	io.Reader
	io.Closer
	op, name string
	left     int64
}

// Read implements io.Reader.
func (r *openedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.left -= int64(n)
	if err == io.EOF && r.left != 0 {
		err = garbled(r.op, r.name, wrongLength)
	}
	return n, sealError(r.op, r.name, err)
}

// sealError adds operation and blob to an error of the Sealer that says that the content is not authentic.
func sealError(op, name string, err error) error {
	var own *tables.Error
	if errors.Is(err, tables.ErrGarbled) && !errors.As(err, &own) {
		return garbled(op, name, "%w", err)
	}
	return err
}

// load reads a whole value into memory. Requests: 1.
func (b *blobs) load(ctx context.Context, p *pointer) ([]byte, error) {
	r, err := b.openValue(ctx, "Load", p, 0, p.length)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, p.length)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	switch n, err := r.Read(make([]byte, 1)); { // only io.EOF shows that the value is complete and right
	case n > 0 || err == nil:
		return nil, garbled("Load", p.name, wrongLength)
	case err != io.EOF:
		return nil, err
	}
	return data, nil
}

// downloadValue downloads a value and unseals it. It reads ahead while it unseals and writes.
func (b *blobs) downloadValue(ctx context.Context, op string, p *pointer, w io.Writer, atOnce int) (int64, error) {
	if err := b.checkSealed(p); err != nil {
		return 0, garbled(op, p.name, "%w", err)
	}
	if !p.sealed {
		return b.download(ctx, op, p, w, atOnce)
	}
	from, into := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := b.download(ctx, op, b.sealing.raw(p), into, atOnce)
		into.CloseWithError(err) // CloseWithError(nil) means io.EOF
	}()
	defer func() { from.Close(); <-done }()
	r, err := b.sealing.sealer.Open(ctx, b.sealing.binding(p), from)
	if err != nil {
		return 0, sealError(op, p.name, err)
	}
	return io.CopyBuffer(w, &openedReader{Reader: r, op: op, name: p.name, left: p.length}, make([]byte, copySize))
}

// sealUpload returns the sealed form of r, for the upload to send, or r itself if the property has no Sealer. The returned function completes
// the pointer after the upload: its length is that of the plaintext.
func (b *blobs) sealUpload(ctx context.Context, u *upload, r io.Reader) (io.Reader, func(*pointer), error) {
	if b.sealing == nil {
		return r, func(*pointer) {}, nil
	}
	plain := &countedReader{r: r}
	sealed, err := b.sealing.sealer.Seal(ctx, b.sealing.binding(&pointer{of: u.of, name: u.name, contentType: u.kind}), plain)
	if err != nil {
		return nil, nil, err
	}
	if check := u.check; check != nil {
		u.check = func(int64) error { return check(plain.n) }
	}
	return sealed, func(p *pointer) { p.sealed, p.length = true, plain.n }, nil
}

type countedReader struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// contentMark begins an entry of the prior state with the SHA-256 of the content of a sealed []byte or string. That hash is never stored:
// with it, anybody who can read rows could recognize equal values and test guesses.
const contentMark = "content "

func contentMemory(data []byte) string {
	sum := sha256.Sum256(data)
	return contentMark + hex.EncodeToString(sum[:])
}
