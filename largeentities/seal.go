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

// Sealer encrypts what is stored in blobs; encryption.Stream is one. What it opens is what it sealed under the same binding,
// or the error is a tables.ErrGarbled. It is safe for concurrent use.
type Sealer interface {
	// Seal returns a reader of the sealed form of plaintext.
	Seal(ctx context.Context, binding []byte, plaintext io.Reader) (io.Reader, error)
	// Open returns a reader of the plaintext. Nothing comes out that was not checked; that it is whole is certain at io.EOF.
	Open(ctx context.Context, binding []byte, ciphertext io.Reader) (io.Reader, error)
	// OpenRange returns a reader of a range of the plaintext, given the size of the sealed form, ranges of which fetch reads.
	OpenRange(ctx context.Context, binding []byte, sealed, offset, length int64, fetch func(ctx context.Context, offset, length int64) (io.ReadCloser, error)) (io.ReadCloser, error)
	// SealedSize is the size of the sealed form of plain bytes, and PlainSize its inverse.
	SealedSize(plain int64) int64
	PlainSize(sealed int64) (int64, error)
}

// sealing is how the blobs of one property are sealed.
type sealing struct {
	sealer          Sealer
	table, property string
	acceptPlaintext bool
}

// binding is what a sealed blob is bound to, each preceded by 4 bytes of length, big endian:
//
//	"tablepatterns/largeentities/1", table in lower case, partition key, row key, property, name of the blob, content type
//
// A name is used once, so a blob serves one value of one entity, and not even an older value under a newer pointer.
func (s *sealing) binding(p *pointer) []byte {
	var b []byte
	for _, field := range []string{"tablepatterns/largeentities/1", s.table, p.of.Partition, p.of.Row, s.property, p.name, p.contentType} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(field))), field...)
	}
	return b
}

// raw is the pointer as that of a blob whose content is what was sealed.
func (s *sealing) raw(p *pointer) *pointer {
	raw := *p
	raw.sealed, raw.length = false, s.sealer.SealedSize(p.length)
	return &raw
}

var (
	errInClear  = errors.New("it is stored in clear, and Options.Sealer would have sealed it")
	errNoSealer = errors.New("its blob is sealed, and there is no Options.Sealer")
)

// checkSealed finds what the property would not have stored so; ptr is nil for a value within the entity.
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

// openValue is open of the value: what was sealed is opened. Requests: 1, of a range of a sealed one 2.
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
	body.sum = nil // the sealer's own check is the stronger one
	r, err := b.sealing.sealer.Open(ctx, binding, body)
	if err != nil {
		_ = body.Close()
		return nil, sealError(op, p.name, err)
	}
	return &openedReader{Reader: r, Closer: body, op: op, name: p.name, left: n}, nil
}

// openedReader reads what a sealer opens.
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
		err = garbled(r.op, r.name, "what was opened has not the length that the entity says")
	}
	return n, sealError(r.op, r.name, err)
}

// sealError names the blob in an error that says nothing but that it is not what was sealed.
func sealError(op, name string, err error) error {
	var own *tables.Error
	if errors.Is(err, tables.ErrGarbled) && !errors.As(err, &own) {
		return garbled(op, name, "%w", err)
	}
	return err
}

// loadValue reads a whole value into memory. Requests: 1.
func (b *blobs) loadValue(ctx context.Context, p *pointer) ([]byte, error) {
	if !p.sealed {
		return b.load(ctx, p)
	}
	r, err := b.openValue(ctx, "Load", p, 0, p.length)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, p.length)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || err != io.EOF { // until then it could be the beginning of something
		return nil, errors.Join(err, garbled("Load", p.name, "what was opened has not the length that the entity says"))
	}
	return data, nil
}

// downloadValue is download of the value. What is opened and written is read meanwhile.
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
		into.CloseWithError(err) // nil is io.EOF
	}()
	defer func() { from.Close(); <-done }()
	r, err := b.sealing.sealer.Open(ctx, b.sealing.binding(p), from)
	if err != nil {
		return 0, sealError(op, p.name, err)
	}
	return io.CopyBuffer(w, &openedReader{Reader: r, op: op, name: p.name, left: p.length}, make([]byte, copySize))
}

// sealUpload makes an upload send the sealed form of r. The function that it returns says in the pointer what was sealed, once all is sent.
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

// contentMark begins what is remembered of the content of a sealed []byte or string: its SHA-256, which is in no row. The
// pointer has that of the sealed form, since who reads rows could tell by it which values are equal, and guess them.
const contentMark = "content "

func contentMemory(data []byte) string {
	sum := sha256.Sum256(data)
	return contentMark + hex.EncodeToString(sum[:])
}
