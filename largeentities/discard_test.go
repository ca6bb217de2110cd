package largeentities_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// blobOf is the blob that has the content.
func (w *world) blobOf(ctx context.Context, t testing.TB, p *process, content []byte) string {
	t.Helper()
	sum, _ := largeentities.NewStreamBytes(content, nil).SHA256()
	pointed := assert.Must[map[string]string](t)(w.blobsIn(ctx, p))
	for name, hash := range pointed {
		if hash == hex.EncodeToString(sum[:]) {
			return name
		}
	}
	t.Fatalf("no blob has %s: %v", short(content), pointed)
	return ""
}

// TestDiscard: of an entity with lost values these are taken away, all of them and nothing else, and it can be used again.
func TestDiscard(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	remove := func(p *process, blob string) error {
		_, err := p.blobs.NewBlobClient(blob).Delete(ctx, nil)
		return err
	}
	damage := func(p *process, blob string) error {
		client := p.blobs.NewBlockBlobClient(blob)
		old, err := client.GetProperties(ctx, nil)
		if err == nil {
			_, err = client.Upload(ctx, streaming.NopCloser(bytes.NewReader(large("x"))), &blockblob.UploadOptions{Metadata: old.Metadata})
		}
		return err
	}
	for name, c := range map[string]struct {
		photo, cv func(*process, string) error
		want      []string
		text      string
	}{
		"nothing":        {nil, nil, nil, "first photo=a74 cv=c74 video=v74"},
		"photo damaged":  {damage, nil, []string{"Photo"}, "first photo= cv=c74 video=v74"},
		"photo gone":     {remove, nil, []string{"Photo"}, "first photo= cv=c74 video=v74"},
		"both, each way": {remove, damage, []string{"CV", "Photo"}, "first photo= cv= video=v74"},
	} {
		w := (&world{inIndex: true, outIndex: true}).open(t, s)
		p := assert.Must[*process](t)(w.start(s))
		e := with(1)
		e.Email, e.Photo, e.CV, e.Video = "jonesj", large("a"), string(large("c")), largeentities.NewStreamBytes(large("v"), nil)
		ok(t, p.repo.Insert(ctx, e))
		photo, cv := w.blobOf(ctx, t, p, large("a")), w.blobOf(ctx, t, p, large("c"))
		if c.photo != nil {
			ok(t, c.photo(p, photo))
		}
		if c.cv != nil {
			ok(t, c.cv(p, cv))
		}
		if _, err := p.repo.Get(ctx, at(1)); (err == nil) != (c.want == nil) {
			t.Errorf("%s: before it Get says %v", name, err)
		}
		got := assert.Must[[]string](t)(largeentities.Discard(ctx, p.repo, at(1)))
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q were discarded", name, got)
		}
		if found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); found[at(1)] != c.text {
			t.Errorf("%s: then there is %q", name, found)
		}
		e.Photo = large("n")
		ok(t, p.repo.Upsert(ctx, e), p.repo.DeleteUnconditional(ctx, at(1)))
		if found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); len(found) != 0 {
			t.Errorf("%s: after the delete there is %q", name, found)
		}
	}
}

// TestDiscardRefuses: what cannot be read for the moment is not lost, nor is what a concurrent writer has replaced, nor what is cut off on
// the way.
func TestDiscardRefuses(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Photo = large("a")
	ok(t, p.repo.Insert(ctx, e))
	if _, err := largeentities.Discard(ctx, p.repo, at(2)); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
	replaced := func() {
		e.Photo = large("b")
		ok(t, p.repo.Replace(ctx, e))
	}
	for _, c := range []struct {
		name   string
		faults storagetest.Injector
		want   error
		text   string
	}{
		{"no answer", storagetest.Always(storagetest.Before500), tables.ErrUnavailable, "first photo=a74 cv= video="},
		{"cut off", storagetest.Always(storagetest.CutAnswerAt(0.5)), tables.ErrGarbled, "first photo=a74 cv= video="},
		{"cut off in silence", storagetest.Always(storagetest.CutSilentlyAt(0.5)), tables.ErrGarbled, "first photo=a74 cv= video="},
		{"replaced before", storagetest.Once(storagetest.Always(storagetest.Before("a concurrent writer", replaced))), tables.ErrConflict, "first photo=b74 cv= video="},
	} {
		faulty, _ := s.Faulty(storagetest.On(storagetest.GetBlob, c.faults))
		faulty.ClientOptions.Retry.MaxRetries = -1
		names, err := largeentities.Discard(ctx, assert.Must[*process](t)(w.start(faulty)).repo, at(1))
		if !errors.Is(err, c.want) || len(names) != 0 {
			t.Errorf("%s: %q, %v", c.name, names, err)
		}
		if found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); found[at(1)] != c.text {
			t.Errorf("%s: there is %q", c.name, found)
		}
	}
}
