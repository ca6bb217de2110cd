package largeentities_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestDamage: whatever becomes of a blob, a reader gets the right bytes or a typed error, of each way to read.
func TestDamage(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	right := bytes.Repeat([]byte("0123456789abcdef"), 16)
	flipped := bytes.Clone(right)
	flipped[100] ^= 1
	overwrite := func(content []byte) func(context.Context, *blockblob.Client) error {
		return func(ctx context.Context, b *blockblob.Client) error {
			old, err := b.GetProperties(ctx, nil)
			if err != nil {
				return err
			}
			meta := map[string]*string{}
			for name, value := range old.Metadata {
				meta[name] = value
			}
			_, err = b.Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), &blockblob.UploadOptions{Metadata: meta})
			return err
		}
	}
	for name, c := range map[string]struct {
		damage       func(ctx context.Context, b *blockblob.Client) error
		load, stream error
		rangeToo     bool
	}{
		"a bit has flipped": {overwrite(flipped), tables.ErrGarbled, tables.ErrGarbled, false},
		"truncated":         {overwrite(right[:200]), tables.ErrGarbled, tables.ErrGarbled, true},
		"longer":            {overwrite(append(bytes.Clone(right), 'x')), tables.ErrGarbled, tables.ErrGarbled, true},
		"empty":             {overwrite(nil), tables.ErrGarbled, tables.ErrGarbled, true},
		"another's": {func(ctx context.Context, b *blockblob.Client) error {
			_, err := b.Upload(ctx, streaming.NopCloser(bytes.NewReader(flipped)), nil)
			return err
		}, tables.ErrGarbled, tables.ErrGarbled, true},
		"gone": {func(ctx context.Context, b *blockblob.Client) error {
			_, err := b.Delete(ctx, nil)
			return err
		}, tables.ErrGarbled, tables.ErrConflict, true},
	} {
		w := (&world{options: largeentities.Options{BlockSize: 60}}).open(t, s)
		p := assert.Must[*process](t)(w.start(s))
		e := with(1)
		e.Photo = right
		ok(t, p.repo.Insert(ctx, e))
		f := with(2)
		f.Video = largeentities.NewStreamBytes(right, nil)
		ok(t, p.repo.Insert(ctx, f))
		for blob := range assert.Must[map[string]string](t)(w.blobsIn(ctx, p)) {
			ok(t, c.damage(ctx, p.blobs.NewBlockBlobClient(blob)))
		}
		if _, err := p.repo.Get(ctx, at(1)); !errors.Is(err, c.load) || errors.Is(err, driver.ErrOutdated) {
			t.Errorf("%s: Get says %v", name, err)
		}
		v := assert.Must[*employee](t)(p.repo.Get(ctx, at(2))).Video
		var whole, piecewise bytes.Buffer
		_, err := v.Download(ctx, &piecewise, &largeentities.DownloadOptions{Concurrency: 3})
		if !errors.Is(err, c.stream) || piecewise.Len() >= len(right) {
			t.Errorf("%s: Download gives %d bytes and %v", name, piecewise.Len(), err)
		}
		r, err := v.Open(ctx)
		if err == nil {
			_, err = whole.ReadFrom(r)
			r.Close()
		}
		if !errors.Is(err, c.stream) || whole.Len() >= len(right) {
			t.Errorf("%s: Open gives %d bytes and %v", name, whole.Len(), err)
		}
		r, err = v.OpenRange(ctx, 10, 20)
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		if c.rangeToo != (err != nil) || err != nil && !errors.Is(err, c.stream) {
			t.Errorf("%s: OpenRange says %v", name, err)
		}
		// It can be repaired by who does not need the old value.
		f.Video = largeentities.NewStreamBytes(large("n"), nil)
		ok(t, p.repo.Upsert(ctx, f))
	}
}

// TestRanges: every part of a value.
func TestRanges(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{options: largeentities.Options{BlockSize: 40, Concurrency: 3}}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	data := []byte("The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog. Amen.")
	for id, content := range [][]byte{data[:20], data} { // in the entity, and in a blob
		e := with(id)
		e.Video = largeentities.NewStreamBytes(content, nil)
		ok(t, p.repo.Insert(ctx, e))
		v := assert.Must[*employee](t)(p.repo.Get(ctx, at(id))).Video
		size := int64(len(content))
		for _, c := range [][2]int64{{0, 0}, {0, 1}, {3, 5}, {0, size}, {size - 1, 1}, {size, 0}, {5, -1}, {size, -1}} {
			want := content[c[0]:]
			if c[1] >= 0 {
				want = want[:c[1]]
			}
			r, err := v.OpenRange(ctx, c[0], c[1])
			ok(t, err)
			if got := assert.Must[[]byte](t)(io.ReadAll(r)); !bytes.Equal(got, want) {
				t.Errorf("range %v of %d: %q", c, size, got)
			}
			ok(t, r.Close())
		}
		for _, c := range [][2]int64{{-1, 1}, {0, size + 1}, {size + 1, -1}, {size, 1}} {
			if _, err := v.OpenRange(ctx, c[0], c[1]); !errors.Is(err, tables.ErrInvalid) {
				t.Errorf("range %v of %d: %v", c, size, err)
			}
		}
		for pieces := range 5 {
			var got bytes.Buffer
			n, err := v.Download(ctx, &got, &largeentities.DownloadOptions{Concurrency: pieces})
			if err != nil || n != size || !bytes.Equal(got.Bytes(), content) {
				t.Errorf("%q comes back as %q, %v", content, got.Bytes(), err)
			}
		}
	}
}

// TestCutAnswers: a broken connection is opened again, and a response that is truncated without an error of the connection is an error.
func TestCutAnswers(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := (&world{options: largeentities.Options{BlockSize: 1 << 10}}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	data := bytes.Repeat([]byte("abcdefgh"), 1<<10)
	e := with(1)
	e.Photo, e.Video = data, largeentities.NewStreamBytes(data, nil)
	ok(t, p.repo.Insert(ctx, e))
	for _, c := range []struct {
		fault storagetest.Fault
		good  bool
	}{{storagetest.CutAnswerAt(0.5), true}, {storagetest.CutSilentlyAt(0.5), false}, {storagetest.LostAnswer, true}} {
		for name, read := range map[string]func(p *process) error{
			"Get": func(p *process) error {
				got, err := p.repo.Get(ctx, at(1))
				if err == nil && !bytes.Equal(got.Photo, data) {
					t.Errorf("%v: other bytes", c.fault)
				}
				return err
			},
			"Download": func(p *process) error {
				faulty := *assert.Must[*employee](t)(p.repo.Get(ctx, at(1)))
				var b bytes.Buffer
				_, err := faulty.Video.Download(ctx, &b, &largeentities.DownloadOptions{Concurrency: 3})
				content := b.Bytes()
				if err == nil && !bytes.Equal(content, data) {
					t.Errorf("%v: other bytes", c.fault)
				}
				return err
			},
		} {
			injector := storagetest.On(storagetest.GetBlob, storagetest.Once(storagetest.Always(c.fault)))
			if name == "Download" {
				injector = storagetest.On(storagetest.GetBlob, storagetest.OnIndex(3, storagetest.Always(c.fault)))
			}
			faulty, met := s.Faulty(injector)
			err := read(assert.Must[*process](t)(w.start(faulty)))
			if (err == nil) != c.good || err != nil && !errors.Is(err, tables.ErrGarbled) {
				t.Errorf("%s, %v: %v", name, c.fault, err)
			}
			if len(met.Met()) == 0 {
				t.Errorf("%s, %v: no fault was met", name, c.fault)
			}
		}
	}
}

// streamed is an employee whose photo is declared as a Stream.
type streamed struct {
	tables.Meta
	Department string
	ID         int
	Photo      largeentities.Stream `table:",omitzero"`
}

// TestLostPhoto: an entity whose []byte is lost is out of reach of who reads it, and can be deleted by who does not: what is stored
// for both is the same.
func TestLostPhoto(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Photo = large("a")
	ok(t, p.repo.Insert(ctx, e))
	photo := largeentities.NewStream("Photo", func(e *streamed) *largeentities.Stream { return &e.Photo }, p.blobs, &largeentities.Options{Threshold: threshold})
	repo := assert.Must[*patterns.Repository[streamed]](t)(patterns.NewRepository(p.account.Table(w.table), patterns.Schema[streamed]{Name: "streamed", Prefix: "empid", Key: func(e *streamed) tables.Key { return keyOf(with(e.ID)) }}, photo))
	got := assert.Must[*streamed](t)(repo.Get(ctx, at(1)))
	if text := short(assert.Must[[]byte](t)(readAll(ctx, got.Photo))); text != "a74" {
		t.Errorf("read as a Stream: %s", text)
	}
	for blob := range assert.Must[map[string]string](t)(w.blobsIn(ctx, p)) {
		_, err := p.blobs.NewBlobClient(blob).Delete(ctx, nil)
		ok(t, err)
	}
	if err := p.repo.DeleteUnconditional(ctx, at(1)); !errors.Is(err, tables.ErrGarbled) {
		t.Errorf("who reads it: %v", err)
	}
	ok(t, repo.DeleteUnconditional(ctx, at(1)))
	if found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); len(found) != 0 {
		t.Error(found)
	}
}
