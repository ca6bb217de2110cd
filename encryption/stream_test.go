package encryption_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const chunk = 64 << 10

var binding = []byte("photos/1\x00Sales/empid_000223\x00Photo")

func streamOf(t testing.TB, registry *encryption.Registry, scope string) encryption.Stream {
	t.Helper()
	return assert.Must[encryption.Stream](t)(encryption.NewStream(registry, &encryption.StreamOptions{Scope: scope}))
}

func content(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func sealed(t testing.TB, s encryption.Stream, plain []byte) []byte {
	t.Helper()
	return assert.Must[[]byte](t)(io.ReadAll(assert.Must[io.Reader](t)(s.Seal(t.Context(), binding, bytes.NewReader(plain)))))
}

// opened reads a stream to the end.
func opened(s encryption.Stream, binding, ciphertext []byte) ([]byte, error) {
	r, err := s.Open(background(), binding, bytes.NewReader(ciphertext))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

var lengths = []int{0, 1, 15, 16, 17, chunk - 1, chunk, chunk + 1, 2*chunk - 1, 2 * chunk, 3*chunk + 77}

// TestStreamRoundTrip: every length comes back, however it is read, and the sizes are as computed.
func TestStreamRoundTrip(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	s := streamOf(t, w.registry, "")
	for _, n := range lengths {
		plain := content(n)
		c := sealed(t, s, plain)
		assert.Equal(t, int64(len(c)), s.SealedSize(int64(n)), "%d bytes, sealed", n)
		if size, err := s.PlainSize(int64(len(c))); err != nil || size != int64(n) {
			t.Errorf("PlainSize of %d bytes: %d, %v", len(c), size, err)
		}
		if got, err := opened(s, binding, c); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%d bytes: %v", n, err)
		}
		for name, slow := range map[string]func(io.Reader) io.Reader{"half": iotest.HalfReader, "data with the error": iotest.DataErrReader} {
			in := assert.Must[io.Reader](t)(s.Seal(t.Context(), binding, slow(bytes.NewReader(plain))))
			out := assert.Must[io.Reader](t)(s.Open(t.Context(), binding, slow(in)))
			if got, err := io.ReadAll(slow(out)); err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%d bytes, %s: %v", n, name, err)
			}
		}
		if id, err := s.DataKey(c); err != nil || id.IsZero() {
			t.Errorf("data key %v, %v", id, err)
		}
	}
	for _, size := range []int64{-1, 0, 87, 88, 115, 88 + chunk + 28 + 1, 88 + chunk + 28 + 28} {
		assert.ErrorIs(t, assert.Err(s.PlainSize(size)), encryption.ErrNotAuthentic, "a sealed size of %d", size)
	}
	if bytes.Equal(sealed(t, s, nil), sealed(t, s, nil)) {
		t.Error("two seals of one plaintext are equal")
	}
}

// TestStreamTampering: every byte of header and tags, a sample of the others, every cut, and chunks that are swapped,
// repeated, left out or of another stream: what comes out is right as far as it goes, and does not end with io.EOF.
func TestStreamTampering(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	s := streamOf(t, w.registry, "")
	plain := content(3*chunk + 77)
	c, other := sealed(t, s, plain), sealed(t, s, plain)
	const header, whole = 88, chunk + 16
	points := 0
	refused := func(s encryption.Stream, binding, changed []byte, what string, at int) {
		t.Helper()
		points++
		got, err := opened(s, binding, changed)
		refusedBy(t, err, what)
		if !bytes.HasPrefix(plain, got) {
			t.Fatalf("%s %d: wrong bytes came out", what, at)
		}
	}
	small := sealed(t, s, plain[:100])
	for i := range small {
		changed := slices.Clone(small)
		changed[i] ^= 1 << (i % 8)
		refused(s, binding, changed, "a byte changed", i)
		refused(s, binding, small[:i], "cut", i)
	}
	for i := header; i < len(c); i += 997 {
		changed := slices.Clone(c)
		changed[i] ^= 1
		refused(s, binding, changed, "a byte of a long one", i)
	}
	at := func(c []byte, i int) []byte { return c[header+i*whole : min(len(c), header+(i+1)*whole)] }
	for _, order := range [][]int{{1, 0, 2, 3}, {0, 2, 1, 3}, {0, 1, 3}, {0, 1, 2}, {0, 1, 1, 2, 3}, {3}, {0}, {}, {0, 1, 2, 3, 3}, {3, 0, 1, 2}} {
		changed := slices.Clone(c[:header])
		for _, i := range order {
			changed = append(changed, at(c, i)...)
		}
		refused(s, binding, changed, "order", len(order))
	}
	for i := range 4 {
		refused(s, binding, slices.Concat(c[:header+i*whole], at(other, i), c[min(len(c), header+(i+1)*whole):]), "a chunk of another stream", i)
	}
	refused(s, binding, slices.Concat(c, []byte{0}), "extended by a byte", 0)
	refused(s, binding, slices.Concat(c, make([]byte, 16)), "extended by a tag", 0)
	refused(s, binding, slices.Concat(other[:header], c[header:]), "another's header", 0)
	refused(s, []byte("photos/2"), c, "another binding", 0)
	refused(s, nil, c, "no binding", 0)
	refused(streamOf(t, w.registry, "tenant"), binding, c, "another scope", 0)
	refused(streamOf(t, worldOn(t, w.s).registry, ""), binding, c, "another registry", 0)
	t.Logf("%d changes, all refused", points)

	// A connection that breaks off is not the end, and not tampering.
	broken := io.MultiReader(bytes.NewReader(plain), iotest.ErrReader(io.ErrUnexpectedEOF))
	in := assert.Must[io.Reader](t)(s.Seal(t.Context(), binding, broken))
	assert.ErrorIs(t, assert.Err(io.ReadAll(in)), io.ErrUnexpectedEOF, "sealing from a connection that breaks off")
	r := assert.Must[io.Reader](t)(s.Open(t.Context(), binding, io.MultiReader(bytes.NewReader(c[:header+chunk]), iotest.ErrReader(io.ErrUnexpectedEOF))))
	if _, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, encryption.ErrNotAuthentic) {
		t.Errorf("opening from a connection that breaks off: %v", err)
	}
}

// ranged serves ranges of a blob, and counts what it sends.
type ranged struct {
	blob  []byte
	calls int
	sent  int64
}

func (r *ranged) fetch(_ context.Context, offset, length int64) (io.ReadCloser, error) {
	r.calls++
	r.sent += length
	if offset < 0 || length <= 0 || offset+length > int64(len(r.blob)) {
		return nil, errors.New("a range outside of the blob")
	}
	return io.NopCloser(bytes.NewReader(r.blob[offset : offset+length])), nil
}

// TestStreamRanges: any part comes out as of the whole, by two fetches of no more than its chunks.
func TestStreamRanges(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	s := streamOf(t, w.registry, "")
	for _, n := range lengths {
		plain := content(n)
		c := sealed(t, s, plain)
		edges := []int{0, 1, n / 2, chunk - 1, chunk, chunk + 1, n - 1, n, n + 5}
		for _, from := range edges {
			for _, length := range append(edges, chunk*4) {
				if from < 0 || length < 0 {
					continue
				}
				blob := &ranged{blob: c}
				r := assert.Must[io.ReadCloser](t)(s.OpenRange(t.Context(), binding, int64(len(c)), int64(from), int64(length), blob.fetch))
				got, err := io.ReadAll(r)
				want := plain[min(from, n):min(from+length, n)]
				if err != nil || !bytes.Equal(got, want) || blob.calls != 2 || blob.sent > 88+int64(len(want))+2*(chunk+28)+28*4 {
					t.Fatalf("%d bytes, %d at %d: %d bytes, %v, %d fetches of %d bytes", n, length, from, len(got), err, blob.calls, blob.sent)
				}
				assert.Check(t, r.Close())
			}
		}
	}
	c := sealed(t, s, content(3*chunk))
	for _, change := range []func(b []byte) ([]byte, int64){
		func(b []byte) ([]byte, int64) { b[88+chunk+28+5] ^= 1; return b, int64(len(b)) },
		func(b []byte) ([]byte, int64) { b[30] ^= 1; return b, int64(len(b)) },
		func(b []byte) ([]byte, int64) { b = b[:88+2*(chunk+28)]; return b, int64(len(b)) }, // its last chunk was not the last
	} {
		b, size := change(slices.Clone(c))
		r, err := s.OpenRange(t.Context(), binding, size, chunk, chunk, (&ranged{blob: b}).fetch)
		if err == nil {
			_, err = io.ReadAll(r)
		}
		refusedBy(t, err, "a range of a changed stream")
	}
	if _, err := s.OpenRange(t.Context(), binding, int64(len(c)), -1, 5, (&ranged{blob: c}).fetch); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("a range before the beginning: %v", err)
	}
	if _, err := s.OpenRange(t.Context(), binding, 5, 0, 5, (&ranged{blob: c}).fetch); !errors.Is(err, encryption.ErrNotAuthentic) {
		t.Errorf("a size that no stream has: %v", err)
	}
}

// zeros is n zero bytes.
type zeros int64

func (z *zeros) Read(p []byte) (int, error) {
	if *z == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), int64(*z)))
	clear(p[:n])
	*z -= zeros(n)
	return n, nil
}

// TestStreamMemory: sealing and opening hold a few chunks, however long the stream is.
func TestStreamMemory(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	s := streamOf(t, w.registry, "")
	size := zeros(64 << 20)
	if testing.Short() {
		size = 8 << 20
	}
	want := int64(size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out := assert.Must[io.Reader](t)(s.Open(t.Context(), binding, assert.Must[io.Reader](t)(s.Seal(t.Context(), binding, &size))))
	n, err := io.CopyBuffer(sha256.New(), struct{ io.Reader }{out}, make([]byte, 4096))
	runtime.ReadMemStats(&after)
	if n != want || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2<<20 {
		t.Errorf("%d bytes are allocated for a stream of %d", allocated, want)
	}
}
