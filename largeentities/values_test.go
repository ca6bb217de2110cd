package largeentities_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestValuesComeBack: values of every kind and size, on both sides of the threshold, of the service's limits, and of a block.
func TestValuesComeBack(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	const block = 2 * tables.MaxBinarySize
	w := (&world{options: largeentities.Options{BlockSize: block}}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	for id, size := range []int{0, 1, threshold, threshold + 1, tables.MaxBinarySize, tables.MaxBinarySize + 1, block, 2*block + 7} {
		for form, data := range map[string][]byte{"zero": make([]byte, size), "text": bytes.Repeat([]byte("x"), size)} {
			e := with(id)
			if form == "text" {
				e.ID += 100
			}
			e.Photo, e.CV, e.Video = data, strings.Repeat("é", size/2), largeentities.NewStreamBytes(data, nil)
			if form == "text" {
				e.Video = largeentities.NewStreamReader(bytes.NewReader(data), &largeentities.StreamOptions{ContentType: "video/mp4", Length: int64(size)})
			}
			ok(t, p.repo.Insert(ctx, e))
			got := assert.Must[*employee](t)(p.repo.Get(ctx, keyOf(e)))
			video := assert.Must[[]byte](t)(readAll(ctx, got.Video))
			if !bytes.Equal(got.Photo, data) || got.CV != e.CV || !bytes.Equal(video, data) {
				t.Errorf("%d bytes come back as %d, %d of %d, and %d", size, len(got.Photo), len(got.CV), len(e.CV), len(video))
			}
			if n := got.Video.Length(); n != int64(size) || got.Video.InBlob() != (size > threshold || form == "text") {
				t.Errorf("%s of %d bytes: length %d, in a blob: %v", form, size, n, got.Video.InBlob())
			}
			if form == "text" && got.Video.ContentType() != "video/mp4" {
				t.Errorf("content type %q", got.Video.ContentType())
			}
		}
	}
	if _, err := w.check(ctx, s); err != nil {
		t.Error(err)
	}
}

// TestNilAndEmpty: no value is not the same as an empty one, and leaves nothing.
func TestNilAndEmpty(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Photo, e.Video = large("a"), largeentities.NewStreamBytes(large("v"), nil)
	ok(t, p.repo.Insert(ctx, e))
	e.Photo, e.Video = nil, largeentities.Stream{}
	ok(t, p.repo.Replace(ctx, e))
	got := assert.Must[*employee](t)(p.repo.Get(ctx, at(1)))
	if got.Photo != nil || !got.Video.IsZero() {
		t.Errorf("%v and %v come back", got.Photo, got.Video)
	}
	e.Photo, e.Video = []byte{}, largeentities.NewStreamBytes(nil, nil)
	ok(t, p.repo.Replace(ctx, e))
	got = assert.Must[*employee](t)(p.repo.Get(ctx, at(1)))
	if got.Photo == nil || got.Video.IsZero() || got.Video.Length() != 0 {
		t.Errorf("%v and %v come back", got.Photo, got.Video)
	}
	if found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); len(found) != 1 {
		t.Error(found)
	}
}

// TestStreamSources: what can be read again is written again after a refusal; what cannot is told.
func TestStreamSources(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	opened := 0
	again := largeentities.NewStreamFunc(func() (io.ReadCloser, error) {
		opened++
		return io.NopCloser(bytes.NewReader(large("f"))), nil
	}, nil)
	once := largeentities.NewStreamReader(bytes.NewReader(large("r")), nil)
	ok(t, p.repo.Insert(ctx, with(1)))
	for name, c := range map[string]struct {
		stream largeentities.Stream
		want   error
		text   string
	}{"func": {again, nil, "f74"}, "reader": {once, tables.ErrInvalid, "r74"}} {
		e := with(1)
		e.Video = c.stream
		if err := p.repo.Insert(ctx, e); !errors.Is(err, tables.ErrExists) {
			t.Fatalf("%s: %v", name, err)
		}
		e.ID = 2
		err := p.repo.Upsert(ctx, e)
		if !errors.Is(err, c.want) {
			t.Errorf("%s after a refusal: %v", name, err)
		}
		if err == nil {
			got := assert.Must[*employee](t)(p.repo.Get(ctx, at(2)))
			if text := short(assert.Must[[]byte](t)(readAll(ctx, got.Video))); text != c.text {
				t.Errorf("%s comes back as %s", name, text)
			}
		}
	}
	if opened != 3 { // the length is not known, so each attempt, and the look whether it is short, opens it
		t.Errorf("opened %d times", opened)
	}
	if _, err := w.check(ctx, s); err != nil {
		t.Error(err)
	}
}

// TestBadSources: a reader that fails, stops, or has another length than was said writes nothing.
func TestBadSources(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	broken := errors.New("the disk is on fire")
	cut := func() io.Reader {
		return io.MultiReader(bytes.NewReader(large("a")), errorReader{io.ErrUnexpectedEOF})
	}
	wrong := &largeentities.StreamOptions{Length: 5}
	for name, c := range map[string]struct {
		stream largeentities.Stream
		want   error
	}{
		"fails":            {largeentities.NewStreamReader(io.MultiReader(bytes.NewReader(large("a")), errorReader{broken}), nil), broken},
		"fails at once":    {largeentities.NewStreamReader(errorReader{broken}, nil), broken},
		"is cut off":       {largeentities.NewStreamReader(cut(), nil), io.ErrUnexpectedEOF},
		"does not open":    {largeentities.NewStreamFunc(func() (io.ReadCloser, error) { return nil, broken }, nil), broken},
		"opens nothing":    {largeentities.NewStreamFunc(func() (io.ReadCloser, error) { return nil, nil }, nil), tables.ErrInvalid},
		"no function":      {largeentities.NewStreamFunc(nil, nil), tables.ErrInvalid},
		"never ends":       {largeentities.NewStreamReader(errorReader{}, nil), io.ErrNoProgress},
		"is longer":        {largeentities.NewStreamReader(bytes.NewReader(large("a")), wrong), tables.ErrInvalid},
		"is shorter":       {largeentities.NewStreamReader(strings.NewReader("abc"), wrong), tables.ErrInvalid},
		"bytes are longer": {largeentities.NewStreamBytes(large("a"), wrong), tables.ErrInvalid},
		"negative length":  {largeentities.NewStreamBytes(large("a"), &largeentities.StreamOptions{Length: -1}), tables.ErrInvalid},
		"bad content type": {largeentities.NewStreamBytes(large("a"), &largeentities.StreamOptions{ContentType: "a\nb"}), tables.ErrInvalid},
	} {
		e := with(1)
		e.Video = c.stream
		if err := p.repo.Insert(ctx, e); !errors.Is(err, c.want) || errors.Is(err, tables.ErrUnknownOutcome) {
			t.Errorf("a stream that %s: %v", name, err)
		}
	}
	if found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); len(found) != 0 {
		t.Error(found)
	}
}

// errorReader fails, or with nil gives nothing for ever.
type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// TestCopies: a Stream that was read belongs to its entity; another entity that is written with it gets a blob of its own.
func TestCopies(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Video = largeentities.NewStreamReader(bytes.NewReader(large("v")), nil)
	ok(t, p.repo.Insert(ctx, e))
	copied := *assert.Must[*employee](t)(p.repo.Get(ctx, at(1)))
	copied.ID, copied.Meta = 2, tables.Meta{}
	ok(t, p.repo.Insert(ctx, &copied))
	// Also what was written just now, whose reader is used up.
	third := *e
	third.ID, third.Meta = 3, tables.Meta{}
	ok(t, p.repo.Insert(ctx, &third))
	ok(t, p.repo.Delete(ctx, e))
	for _, id := range []int{2, 3} {
		if text := short(assert.Must[[]byte](t)(readAll(ctx, assert.Must[*employee](t)(p.repo.Get(ctx, at(id))).Video))); text != "v74" {
			t.Errorf("employee %d has %s", id, text)
		}
	}
	// Inserted again under its own key, after its blob has gone with it.
	e.Meta = tables.Meta{}
	if err := p.repo.Insert(ctx, e); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("an entity whose blob has gone: %v", err)
	}
	found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s))
	if len(found) != 2 {
		t.Error(found)
	}
}

// TestProjection: a Stream that a projection has read finds its blob through the property; what a projection leaves out is not
// read.
func TestProjection(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	requests := &storagetest.RequestCounter{}
	counted, _ := s.Faulty(requests)
	p := assert.Must[*process](t)(w.start(counted))
	e := with(1)
	e.Photo, e.Video = large("a"), largeentities.NewStreamBytes(large("v"), nil)
	ok(t, p.repo.Insert(ctx, e))
	requests.Reset()
	for got, err := range p.repo.Query().Partition("Sales").Select("Note", "Video").All(ctx) {
		ok(t, err)
		if _, err := got.Video.Open(ctx); !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("without its container: %v", err)
		}
		if text := short(assert.Must[[]byte](t)(readAll(ctx, *p.video.Of(got)))); text != "v74" || got.Photo != nil {
			t.Errorf("%s and %v", text, got.Photo)
		}
		got.Note = "merged"
		ok(t, p.repo.Merge(ctx, got, "Note"))
	}
	if n := requests.CountOf(storagetest.GetBlob); n != 2 { // of the Stream, and of the photo as Merge reads the whole
		t.Errorf("%d blobs were read", n)
	}
	if found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); found[at(1)] != "merged photo=a74 cv= video=v74" {
		t.Error(found)
	}
	if err := func() error {
		for _, err := range p.repo.Query().Partition("Sales").Where(tables.Eq("CV", "x")).All(ctx) {
			return err
		}
		return nil
	}(); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("a condition on a large property: %v", err)
	}
}

// TestExplainWritesNothing, and a change that is refused before it begins does not either.
func TestExplainWritesNothing(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	requests := &storagetest.RequestCounter{}
	counted, _ := s.Faulty(requests)
	p := assert.Must[*process](t)(w.start(counted))
	e := with(1)
	e.Photo, e.Video = large("a"), largeentities.NewStreamReader(bytes.NewReader(large("v")), nil)
	x := assert.Must[*patterns.Explanation](t)(p.repo.Explain(ctx, driver.ChangeInsert, e))
	if len(x.Outside) != 2 {
		t.Errorf("%v", x)
	}
	e.Note = strings.Repeat("n", tables.MaxStringUnits+1)
	if err := p.repo.Insert(ctx, e); !errors.Is(err, tables.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if n := requests.Count(); n != 0 {
		t.Errorf("%d requests: %v", n, requests.Kinds())
	}
	e.Note = "first"
	ok(t, p.repo.Insert(ctx, e)) // the reader is still whole
	if found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); found[at(1)] != "first photo=a74 cv= video=v74" {
		t.Error(found)
	}
}

// TestMaxValue: what is too large for memory is refused on both ways; a Stream is not.
func TestMaxValue(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Photo = large("a")
	ok(t, p.repo.Insert(ctx, e))
	bounded := *w
	bounded.options.MaxValue = threshold
	b := assert.Must[*process](t)(bounded.start(s))
	_, err := b.repo.Get(ctx, at(1))
	e.ID, e.Meta = 2, tables.Meta{}
	for _, err := range []error{err, b.repo.Insert(ctx, e)} {
		if !errors.Is(err, tables.ErrTooLarge) {
			t.Errorf("%v", err)
		}
	}
	e.Photo, e.Video = nil, largeentities.NewStreamBytes(large("v"), nil)
	ok(t, b.repo.Insert(ctx, e))
}
