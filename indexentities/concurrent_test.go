package indexentities_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestTwentyWriters: twenty writers enter one list at the same time, and leave it for another. Nothing is lost.
func TestTwentyWriters(t *testing.T) {
	const writers = 20
	for _, w := range []*world{{option: inPartition, attempts: 2 * writers}, {option: outside}, {option: outside, global: true}, {option: inBlobs}} {
		t.Run(w.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w.open(t, s)
			p := harness.Must[*process](t)(w.start(s))
			together := func(change func(id int) error) {
				t.Helper()
				var running sync.WaitGroup
				errs := make([]error, writers)
				for id := range writers {
					running.Go(func() { errs[id] = change(id) })
				}
				running.Wait()
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				if err := harness.DrainToEmpty(ctx, s, p.queue); err != nil {
					t.Fatal(err)
				}
				found, err := w.check(ctx, s)
				if err != nil || len(found) != writers {
					t.Fatalf("%d employees, %v", len(found), err)
				}
			}
			together(func(id int) error { return p.repo.Insert(ctx, with(id, "Jones")) })
			if keys := harness.Must[[]tables.Key](t)(p.index.Keys(ctx, w.group(), compoundkey.String("Jones"))); len(keys) != writers {
				t.Fatalf("%d keys", len(keys))
			}
			together(func(id int) error {
				_, err := p.repo.Update(ctx, at(id), func(e *employee) error { e.LastName = fmt.Sprint("Smith", id%2); return nil })
				return err
			})
		})
	}
}

// TestLostRaces: a change that loses its race too often says which index was in its way, and wrote nothing.
func TestLostRaces(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{option: inPartition, attempts: 1}).open(t, s)
	p := harness.Must[*process](t)(w.start(s))
	concurrent := harness.Must[*process](t)(w.start(s))
	if err := p.repo.Insert(ctx, with(1, "Jones")); err != nil {
		t.Fatal(err)
	}
	x := p.repo.Table().NewTransaction()
	e := with(2, "Jones")
	if err := p.repo.StageInsert(ctx, x, e); err != nil { // it has read the list
		t.Fatal(err)
	}
	if err := concurrent.repo.Insert(ctx, with(3, "Jones")); err != nil {
		t.Fatal(err)
	}
	_, err := x.Commit(ctx)
	var failed *tables.Error
	if !errors.Is(err, tables.ErrConflict) || !errors.As(err, &failed) || failed.Pattern != "lastname" {
		t.Fatalf("error is %v", err)
	}
	if found, err := w.check(ctx, s); err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}
}
