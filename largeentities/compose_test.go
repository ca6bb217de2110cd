package largeentities_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestIndexes: copies hold the pointer, follow the value, and read as the entity does; a check finds nothing, and a rebuild
// writes no blob.
func TestIndexes(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{inIndex: true, outIndex: true}).open(t, s)
	requests := &storagetest.RequestCounter{}
	counted, _ := s.Faulty(requests)
	p := assert.Must[*process](t)(w.start(counted))
	e := with(1)
	e.Email, e.Photo, e.CV, e.Video = "jonesj", large("a"), string(large("c")), largeentities.NewStreamBytes(large("v"), nil)
	ok(t, p.repo.Insert(ctx, e))
	e.Photo = large("b")
	ok(t, p.repo.Replace(ctx, e))
	const want = "first photo=b74 cv=c74 video=v74"
	for got, err := range p.byNote.In("Sales").Range(ctx) {
		ok(t, err)
		if text := assert.Must[string](t)(textOf(ctx, got)); text != want {
			t.Errorf("in the partition: %s", text)
		}
	}
	outside := assert.Must[*employee](t)(p.byEmail.In("Sales").Get(ctx, "jonesj"))
	if text := assert.Must[string](t)(textOf(ctx, outside)); text != want {
		t.Errorf("outside: %s", text)
	}
	puts := requests.CountOf(storagetest.PutBlob)
	outside.Note = "moved"
	ok(t, p.repo.Replace(ctx, outside))
	if err := harness.Clean(ctx, p.repo.Verify, &patterns.JobOptions{Lag: time.Millisecond}); err != nil {
		t.Errorf("a discrepancy: %v", err)
	}
	assert.Must[patterns.RebuildReport](t)(p.repo.Rebuild(ctx, nil))
	if err := harness.Clean(ctx, p.repo.Repair, nil); err != nil {
		t.Errorf("a repair: %v", err)
	}
	if n := requests.CountOf(storagetest.PutBlob); puts != 4 || n != puts {
		t.Errorf("%d blobs were put, and then %d", puts, n)
	}
	found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s))
	if found[at(1)] != strings.Replace(want, "first", "moved", 1) {
		t.Error(found)
	}
	ok(t, p.repo.DeleteUnconditional(ctx, at(1)))
	if there := assert.Must[map[string]string](t)(w.blobsIn(ctx, p)); len(there) != 0 {
		t.Error(there)
	}
}

// TestRepairOfCopies: a copy that was lost comes back with the pointer.
func TestRepairOfCopies(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{outIndex: true}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Email, e.Photo = "jonesj", large("a")
	ok(t, p.repo.Insert(ctx, e))
	table := p.account.Table(w.copies)
	rows := assert.Must[*tables.Rows[tables.Entity]](t)(tables.RowsOf[tables.Entity](table))
	ok(t, rows.DeleteUnconditional(ctx, tables.Key{Partition: "email_Sales", Row: "jonesj"}))
	repaired, err := harness.Findings(ctx, p.repo.Repair, &patterns.JobOptions{Lag: time.Millisecond})
	ok(t, err)
	got := assert.Must[*employee](t)(p.byEmail.In("Sales").Get(ctx, "jonesj"))
	if len(repaired) == 0 || short(got.Photo) != "a74" {
		t.Errorf("%d repaired, and the copy has %s", len(repaired), short(got.Photo))
	}
	if _, err := w.check(ctx, s); err != nil {
		t.Error(err)
	}
}

// queueOf creates a queue for movers.
func queueOf(t *testing.T, s *storagetest.Service, p *process) *eventual.Queue {
	t.Helper()
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(p.account, s.QueueName(t), nil))
	ok(t, queue.Create(t.Context()))
	return queue
}

// TestMover: an entity that moves to another table takes its values along, into blobs of their own.
func TestMover(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	from, to := (&world{}).open(t, s), (&world{}).open(t, s)
	a, b := assert.Must[*process](t)(from.start(s)), assert.Must[*process](t)(to.start(s))
	e := with(1)
	e.Photo, e.Video = large("a"), largeentities.NewStreamBytes(large("v"), nil)
	ok(t, a.repo.Insert(ctx, e))
	queue := queueOf(t, s, a)
	mover := assert.Must[*archive.Mover[employee]](t)(archive.New(queue, "archive", a.repo, archive.ToRepository(b.repo, nil), nil))
	ok(t, mover.Move(ctx, e))
	ok(t, harness.DrainNow(ctx, queue))
	if found := assert.Must[map[tables.Key]string](t)(to.check(ctx, s)); found[at(1)] != "first photo=a74 cv= video=v74" {
		t.Error(found)
	}
	if found := assert.Must[map[tables.Key]string](t)(from.check(ctx, s)); len(found) != 0 {
		t.Error(found)
	}
}

// TestArchiveOfStreams: blobs of an archive would hold the pointer of a Stream, whose blob goes with the entity.
func TestArchiveOfStreams(t *testing.T) {
	s := storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	queue := queueOf(t, s, p)
	to := archive.ToContainer(p.blobs, func(e *employee) string { return keyOf(e).Row })
	if _, err := archive.New(queue, "archive", p.repo, to, nil); !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "Video") {
		t.Errorf("%v", err)
	}
	type badge struct {
		tables.Meta
		ID    string
		Photo []byte
	}
	photo := largeentities.NewProperty[badge]("Photo", p.blobs, nil)
	badges := assert.Must[*patterns.Repository[badge]](t)(patterns.NewRepository(p.account.Table(w.copies), patterns.Schema[badge]{
		Key: func(b *badge) tables.Key { return tables.Key{Partition: "badges", Row: b.ID} }}, photo))
	_, err := archive.New(queue, "badges", badges, archive.ToContainer(p.blobs, func(b *badge) string { return b.ID }), nil)
	ok(t, err) // whose values are in the archive in full
}

// TestSignedURL: the address reads the blob and does nothing else, and is in no error.
func TestSignedURL(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Photo = large("a")
	ok(t, p.repo.Insert(ctx, e), p.repo.Insert(ctx, with(2)))
	address := assert.Must[string](t)(p.photo.SignedURL(ctx, at(1), time.Now().Add(time.Hour)))
	client := s.ClientOptions.Transport
	if client == nil {
		client = http.DefaultClient
	}
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodDelete: 403} {
		req := assert.Must[*http.Request](t)(http.NewRequestWithContext(ctx, method, address, nil))
		resp, err := client.Do(req)
		ok(t, err)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
	_, none := p.photo.SignedURL(ctx, at(2), time.Now().Add(time.Hour))
	_, nobody := p.photo.SignedURL(ctx, at(3), time.Now().Add(time.Hour))
	_, past := p.photo.SignedURL(ctx, at(1), time.Now())
	for i, err := range []error{none, nobody, past} {
		if want := []error{tables.ErrNotFound, tables.ErrNotFound, tables.ErrInvalid}[i]; !errors.Is(err, want) || strings.Contains(err.Error(), "sig=") {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// TestSignedURLOpensOneBlob: what is changed in an address, and what else is asked for with its signature, is refused.
func TestSignedURLOpensOneBlob(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	ok(t, p.repo.Insert(ctx, withAll(1)))
	address := assert.Must[string](t)(p.photo.SignedURL(ctx, at(1), time.Now().Add(time.Hour)))
	base, query, _ := strings.Cut(address, "?")
	for other := range assert.Must[map[string]string](t)(w.blobsIn(ctx, p)) {
		if !strings.Contains(other, "/Photo/") {
			base = strings.SplitN(base, "/"+w.container+"/", 2)[0] + "/" + w.container + "/" + url.PathEscape(other)
			break
		}
	}
	root, own := strings.SplitN(base, "/"+w.container+"/", 2)[0]+"/"+w.container, strings.SplitN(address, "?", 2)[0]
	if base == own {
		t.Fatal("there is no other blob")
	}
	later := assert.Must[url.Values](t)(url.ParseQuery(query))
	later.Set("se", time.Now().Add(48*time.Hour).UTC().Format("2006-01-02T15:04:05Z"))
	wider := assert.Must[url.Values](t)(url.ParseQuery(query))
	wider.Set("sp", "rwd")
	client := s.ClientOptions.Transport
	if client == nil {
		client = http.DefaultClient
	}
	for what, c := range map[string]struct{ method, address string }{
		"another blob":     {http.MethodGet, base + "?" + query},
		"the container":    {http.MethodGet, root + "?restype=container&comp=list&" + query},
		"a write":          {http.MethodPut, address},
		"its metadata":     {http.MethodPut, address + "&comp=metadata"},
		"a later end":      {http.MethodGet, own + "?" + later.Encode()},
		"more permissions": {http.MethodGet, own + "?" + wider.Encode()},
		"no signature":     {http.MethodGet, own},
	} {
		req := assert.Must[*http.Request](t)(http.NewRequestWithContext(ctx, c.method, c.address, nil))
		if c.method == http.MethodPut {
			req.Header.Set("x-ms-blob-type", "BlockBlob")
		}
		resp, err := client.Do(req)
		ok(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden && (what != "no signature" || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusNotFound) {
			t.Errorf("%s: %d", what, resp.StatusCode)
		}
	}
}
