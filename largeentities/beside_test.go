package largeentities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// maintenance are the runs over all entities that may meet a concurrent writer.
var maintenance = map[string]func(context.Context, *process) error{
	"Verify": func(ctx context.Context, p *process) error {
		return harness.Clean(ctx, p.repo.Verify, &patterns.JobOptions{Lag: time.Millisecond})
	},
	"Repair": func(ctx context.Context, p *process) error {
		return harness.Clean(ctx, p.repo.Repair, &patterns.JobOptions{Lag: time.Millisecond})
	},
	"Rebuild": func(ctx context.Context, p *process) error {
		return harness.Clean(ctx, p.repo.Rebuild, nil)
	},
	"Sweep": func(ctx context.Context, p *process) error {
		_, err := p.photo.Sweep(ctx, &largeentities.SweepOptions{Grace: time.Hour})
		return err
	},
}

// writerChanges are what a concurrent writer does to an entity whose value is in a blob.
var writerChanges = map[string]func(context.Context, *process) error{
	"delete": func(ctx context.Context, p *process) error { return p.repo.DeleteUnconditional(ctx, at(1)) },
	"replace": func(ctx context.Context, p *process) error {
		_, err := p.repo.Update(ctx, at(1), func(e *employee) error { e.Photo, e.Email = large("b"), "other"; return nil })
		return err
	},
	"insert again": func(ctx context.Context, p *process) error {
		e := with(1)
		e.Email, e.Photo = "jonesj", large("b")
		return errors.Join(p.repo.DeleteUnconditional(ctx, at(1)), p.repo.Insert(ctx, e))
	},
}

// TestMaintenanceBesideAWriter: a concurrent writer deletes or replaces an entity, and with it the blob, after any one request
// of a maintenance run. The run reads the entity as gone or as new; it neither panics nor reports anything.
func TestMaintenanceBesideAWriter(t *testing.T) {
	for name, run := range maintenance {
		for change, do := range writerChanges {
			t.Run(name+" beside "+change, func(t *testing.T) {
				points := 0
				for i := 0; besideAt(t, i, run, do); i++ {
					points++
				}
				t.Logf("%d points", points)
			})
		}
	}
}

// besideAt has the change follow request i of the run, and reports whether there was such a request.
func besideAt(t *testing.T, i int, run, change func(context.Context, *process) error) bool {
	t.Helper()
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := (&world{inIndex: true, outIndex: true}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	for id := range 3 {
		e := with(id)
		e.Email, e.Photo = []string{"a", "jonesj", "z"}[id], large("a")
		ok(t, p.repo.Insert(ctx, e))
	}
	s.Wait(2 * time.Hour) // blobs are old enough to be swept
	met := false
	faulty, _ := s.Faulty(storagetest.OnIndex(i, storagetest.Always(storagetest.After("change", func() {
		met = true
		ok(t, change(ctx, p))
	}))))
	if err := run(ctx, assert.Must[*process](t)(w.start(faulty))); err != nil {
		t.Fatalf("change after request %d: %v", i, err)
	}
	ok(t, w.sweep(ctx, s), maintenance["Verify"](ctx, p))
	if _, err := w.check(ctx, s); err != nil {
		t.Fatalf("change after request %d: %v", i, err)
	}
	return met
}

// TestStaleCopyOfABlob: a copy outside of the partition still points at a blob that a newer write of a build without the index has replaced. What is read through the index is then the entity's own row, if it still has the key.
func TestStaleCopyOfABlob(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	w := (&world{outIndex: true}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	insert := func(id int, email string) {
		e := with(id)
		e.Email, e.Photo = email, large("a")
		ok(t, p.repo.Insert(ctx, e))
	}
	for id, email := range []string{"stays", "moves", "goes"} {
		insert(id, email)
	}
	before := assert.Must[map[string]string](t)(w.blobsIn(ctx, p))
	insert(3, "lost")
	for name := range assert.Must[map[string]string](t)(w.blobsIn(ctx, p)) {
		if _, old := before[name]; !old {
			_, err := p.blobs.NewBlobClient(name).Delete(ctx, nil)
			ok(t, err)
		}
	}
	without := *w
	without.outIndex, without.oldBuild = false, true // what it changes leaves the copies outside as they are
	writer := assert.Must[*process](t)(without.start(s))
	for id, email := range []string{"stays", "moved"} {
		e := assert.Must[*employee](t)(writer.repo.Get(ctx, at(id)))
		e.Photo, e.Email = large("b"), email
		ok(t, writer.repo.Replace(ctx, e))
	}
	ok(t, writer.repo.DeleteUnconditional(ctx, at(2)))
	got, err := p.byEmail.In("Sales").Get(ctx, "stays")
	if err != nil || short(got.Photo) != "b74" || got.Key() != at(0) {
		t.Errorf("a key that the entity still has: %+v, %v", got, err)
	}
	ok(t, p.repo.Replace(ctx, got))
	for _, email := range []string{"moves", "goes"} {
		if _, err := p.byEmail.In("Sales").Get(ctx, email); !errors.Is(err, tables.ErrNotFound) {
			t.Errorf("%q, which the entity gave up: %v", email, err)
		}
	}
	if _, err := p.byEmail.In("Sales").Get(ctx, "lost"); !errors.Is(err, tables.ErrGarbled) {
		t.Errorf("the entity's own row points at a blob that is missing: %v", err)
	}
	found := 0
	for e, err := range p.byEmail.In("Sales").Range(ctx, compoundkey.Between("moves", "z")) {
		ok(t, err)
		if found++; short(e.Photo) != "b74" {
			t.Errorf("%s in the range", short(e.Photo))
		}
	}
	if found != 1 {
		t.Errorf("the range has %d", found)
	}
	query := p.byEmail.In("Sales").Query(compoundkey.Prefix("stays"))
	for e, err := range query.Select("Photo").All(ctx) {
		if ok(t, err); short(e.Photo) != "b74" || e.Note != "" {
			t.Errorf("selected: %s, note %q", short(e.Photo), e.Note)
		}
	}
}

// TestSweepRefusesANegativeLimit: before any request.
func TestSweepRefusesANegativeLimit(t *testing.T) {
	s := storagetest.Open(t)
	p := assert.Must[*process](t)((&world{}).open(t, s).start(s))
	_, err := p.photo.Sweep(t.Context(), &largeentities.SweepOptions{RowsPerSecond: -1})
	harness.WantKind(t, err, tables.ErrWiring)
}
