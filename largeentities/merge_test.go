package largeentities_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestMergeOfStreams: a merge carries a new Stream of each source, and leaves the caller's value as Insert does: it can be read,
// and a later change keeps its blob.
func TestMergeOfStreams(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	requests := &storagetest.RequestCounter{}
	counted, _ := s.Faulty(requests)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(counted))
	opened := 0
	open := func(data []byte) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { opened++; return io.NopCloser(bytes.NewReader(data)), nil }
	}
	typed := &largeentities.StreamOptions{ContentType: "video/mp4"}
	id := 0
	for name, c := range map[string]struct {
		stream largeentities.Stream
		data   []byte
		inBlob bool
	}{
		"bytes":            {largeentities.NewStreamBytes(large("b"), nil), large("b"), true},
		"func":             {largeentities.NewStreamFunc(open(large("f")), nil), large("f"), true},
		"func of a length": {largeentities.NewStreamFunc(open(large("l")), &largeentities.StreamOptions{Length: int64(len(large("l")))}), large("l"), true},
		"reader":           {largeentities.NewStreamReader(bytes.NewReader(large("r")), nil), large("r"), true},
		"short and typed":  {largeentities.NewStreamReader(bytes.NewReader([]byte("t")), typed), []byte("t"), true},
		"short bytes":      {largeentities.NewStreamBytes([]byte("s"), nil), []byte("s"), false},
		"short reader":     {largeentities.NewStreamReader(bytes.NewReader([]byte("q")), nil), []byte("q"), false},
	} {
		id++
		e := with(id)
		e.Photo, e.Video = large("p"), largeentities.NewStreamBytes(large("v"), nil)
		ok(t, p.repo.Insert(ctx, e))
		e.Note, e.Video = "not merged", c.stream
		ok(t, p.repo.Merge(ctx, e, "Video"))
		sum, known := e.Video.SHA256()
		if e.Video.InBlob() != c.inBlob || c.inBlob && (!known || sum != sha256.Sum256(c.data) || e.Video.Length() != int64(len(c.data))) {
			t.Errorf("%s after the merge: in a blob: %v, %d bytes, %x", name, e.Video.InBlob(), e.Video.Length(), sum)
		}
		if c.inBlob {
			if got := assert.Must[[]byte](t)(readAll(ctx, e.Video)); !bytes.Equal(got, c.data) {
				t.Errorf("%s: the caller's own value reads as %s", name, short(got))
			}
		}
		e.Note = name
		requests.Reset()
		ok(t, p.repo.Replace(ctx, e))
		if n := requests.Count(); n != 1 {
			t.Errorf("%s: %d requests to replace it with the value that was merged: %v", name, n, requests.Kinds())
		}
		want := name + " photo=p74 cv= video=" + short(c.data)
		if text := assert.Must[string](t)(textOf(ctx, assert.Must[*employee](t)(p.repo.Get(ctx, at(id))))); text != want {
			t.Errorf("%s comes back as %s", name, text)
		}
	}
	if opened != 3 { // once to see whether it is short, where the length is not known
		t.Errorf("opened %d times", opened)
	}
	if found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); len(found) != id {
		t.Error(found)
	}
}

// TestMergeOfStreamsElsewhere: of what a projection has read, of all properties, of another entity's value; and a refusal before the
// reader is touched leaves it whole.
func TestMergeOfStreamsElsewhere(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := withAll(1)
	e.Email = "ann@contoso.com"
	ok(t, p.repo.Insert(ctx, e), p.repo.Merge(ctx, e)) // all of it, which changes nothing
	e.Email, e.Photo, e.CV = "", nil, ""
	ok(t, p.repo.Replace(ctx, e))

	stale := assert.Must[*employee](t)(p.repo.Get(ctx, at(1)))
	for got, err := range p.repo.Query().Partition("Sales").Select("Note").All(ctx) {
		ok(t, err)
		got.Video = largeentities.NewStreamReader(bytes.NewReader(large("x")), nil)
		ok(t, p.repo.Merge(ctx, got, "Video"))
		if text := short(assert.Must[[]byte](t)(readAll(ctx, got.Video))); text != "x74" {
			t.Errorf("what a projection has read: %s", text)
		}
	}
	stale.Video = largeentities.NewStreamReader(bytes.NewReader(large("y")), nil)
	if err := p.repo.Merge(ctx, stale, "Video"); !errors.Is(err, tables.ErrConflict) {
		t.Errorf("a merge of a stale entity: %v", err)
	}
	other := with(2)
	ok(t, p.repo.Insert(ctx, other))
	other.Video = stale.Video
	ok(t, p.repo.Merge(ctx, other, "Video"))
	third := with(3)
	ok(t, p.repo.Insert(ctx, third))
	third.Video = other.Video
	ok(t, p.repo.Merge(ctx, third, "Video"), p.repo.Delete(ctx, other))
	third.Video = largeentities.Stream{}
	for _, names := range [][]string{{"Video"}, nil} {
		if err := p.repo.Merge(ctx, third, names...); !errors.Is(err, tables.ErrInvalid) {
			t.Errorf("a merge of no value, naming %q: %v", names, err)
		}
	}
	found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s))
	if len(found) != 2 || found[at(1)] != "first photo= cv= video=x74" || found[at(3)] != "first photo= cv= video=y74" {
		t.Error(found)
	}
}
