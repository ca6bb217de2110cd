package largeentities_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestShortStreamOfKnownLength: a source that stays in the entity, and says rightly how long it is, is taken.
func TestShortStreamOfKnownLength(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	p := assert.Must[*process](t)((&world{}).open(t, s).start(s))
	want := []byte("a short one")
	options := &largeentities.StreamOptions{Length: int64(len(want))}
	for id, stream := range []largeentities.Stream{
		largeentities.NewStreamReader(bytes.NewReader(want), options),
		largeentities.NewStreamFunc(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(want)), nil }, options),
		largeentities.NewStreamBytes(want, options),
	} {
		e := with(id)
		e.Video = stream
		ok(t, p.repo.Insert(ctx, e))
		v := assert.Must[*employee](t)(p.repo.Get(ctx, at(id))).Video
		var progress int64
		var got bytes.Buffer
		n, err := v.Download(ctx, &got, &largeentities.DownloadOptions{Progress: func(n int64) { progress = n }})
		ok(t, err)
		if v.InBlob() || !bytes.Equal(got.Bytes(), want) || n != v.Length() || progress != n {
			t.Errorf("%d: %q comes back, %d bytes, of which Progress was told %d", id, got.Bytes(), n, progress)
		}
	}
}

// lyingReader says that it has read so many bytes.
type lyingReader int

func (r lyingReader) Read([]byte) (int, error) { return int(r), nil }

// lyingWriter leaves out bytes, and says nothing of it.
type lyingWriter struct{ bytes.Buffer }

func (w *lyingWriter) Write(p []byte) (int, error) { return w.Buffer.Write(p[:len(p)-1]) }

// TestLiars: readers and writers that break their contract are found out.
func TestLiars(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := (&world{options: largeentities.Options{BlockSize: 50}}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	for _, n := range []int{-1, 1 << 30} {
		e := with(1)
		e.Video = largeentities.NewStreamReader(io.MultiReader(bytes.NewReader(large("a")), lyingReader(n)), nil)
		if err := p.repo.Insert(ctx, e); !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("a reader of %d bytes: %v", n, err)
		}
	}
	e := with(1)
	e.Video = largeentities.NewStreamBytes(bytes.Repeat([]byte("v"), 120), nil)
	ok(t, p.repo.Insert(ctx, e))
	v := assert.Must[*employee](t)(p.repo.Get(ctx, at(1))).Video
	for _, concurrency := range []int{0, 3} {
		if _, err := v.Download(ctx, &lyingWriter{}, &largeentities.DownloadOptions{Concurrency: concurrency}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("a writer that writes less, with %d pieces at once: %v", concurrency, err)
		}
	}
}

// TestFailedOpen: beside an error there is no reader, not even one that looks like none.
func TestFailedOpen(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	p := assert.Must[*process](t)((&world{}).open(t, s).start(s))
	e := with(1)
	e.Video = largeentities.NewStreamBytes(large("v"), nil)
	ok(t, p.repo.Insert(ctx, e))
	v := assert.Must[*employee](t)(p.repo.Get(ctx, at(1))).Video
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, open := range map[string]func() (io.ReadCloser, error){
		"ended":    func() (io.ReadCloser, error) { return v.Open(ended) },
		"a range":  func() (io.ReadCloser, error) { return v.OpenRange(ended, 1, 2) },
		"too long": func() (io.ReadCloser, error) { return v.OpenRange(ctx, 1, 1<<62) },
		"before":   func() (io.ReadCloser, error) { return v.OpenRange(ctx, -1, -1) },
	} {
		if r, err := open(); r != nil || err == nil {
			t.Errorf("%s: %v beside %v", name, r, err)
		}
	}
	for _, concurrency := range []int{-1, 0, 3, 1000} {
		if n, err := v.Download(ended, io.Discard, &largeentities.DownloadOptions{Concurrency: concurrency}); n != 0 || err == nil {
			t.Errorf("with %d pieces at once: %d bytes, %v", concurrency, n, err)
		}
	}
	r := assert.Must[io.ReadCloser](t)(v.Open(ctx))
	ok(t, r.Close())
	if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("a closed reader gives %d bytes and %v", n, err)
	}
}

// TestStreamsOfEachKind: what a Stream says of itself where it is in no blob.
func TestStreamsOfEachKind(t *testing.T) {
	reader := largeentities.NewStreamReader(nil, &largeentities.StreamOptions{ContentType: "a/b"})
	memory := largeentities.NewStreamBytes([]byte("x"), nil)
	for name, c := range map[string]struct {
		stream largeentities.Stream
		length int64
		hashed bool
		kind   string
		opens  bool
	}{
		"none":   {largeentities.Stream{}, 0, false, "", true},
		"reader": {reader, -1, false, "a/b", false},
		"memory": {memory, 1, true, "", true},
	} {
		_, hashed := c.stream.SHA256()
		r, err := c.stream.Open(t.Context())
		if c.stream.Length() != c.length || hashed != c.hashed || c.stream.ContentType() != c.kind || c.stream.InBlob() || (err == nil) != c.opens || (r != nil) != c.opens {
			t.Errorf("%s: length %d, hashed %v, type %q, %v", name, c.stream.Length(), hashed, c.stream.ContentType(), err)
		}
		if err != nil && !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTextThatIsNone: bytes that are no UTF-8 are no string, also where a blob would take them.
func TestTextThatIsNone(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	for _, size := range []int{1, threshold + 1} {
		e := with(1)
		e.CV = string(bytes.Repeat([]byte{0xFF}, size))
		if err := p.repo.Insert(ctx, e); !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if found := assert.Must[map[string]string](t)(w.blobsIn(ctx, p)); len(found) > 0 {
		t.Errorf("%v is stored", found)
	}
}
