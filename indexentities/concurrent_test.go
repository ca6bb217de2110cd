package indexentities_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestTwentyWriters: twenty writers enter one list at the same time, and leave it for another. Nothing is lost.
func TestTwentyWriters(t *testing.T) {
	const writers = 20
	for _, w := range []*world{{option: inPartition, attempts: 2 * writers}, {option: outside}, {option: outside, global: true}} {
		t.Run(w.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w.open(t, s)
			p := assert.Must[*process](t)(w.start(s))
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
				found, err := w.check(ctx, s)
				if err != nil || len(found) != writers {
					t.Fatalf("%d employees, %v", len(found), err)
				}
			}
			together(func(id int) error { return p.repo.Insert(ctx, with(id, "Jones")) })
			if keys := assert.Must[[]tables.Key](t)(w.sales(p).Keys(ctx, compoundkey.String("Jones"))); len(keys) != writers {
				t.Fatalf("%d keys", len(keys))
			}
			together(func(id int) error {
				_, err := p.repo.Update(ctx, at(id), func(e *employee) error { e.LastName = fmt.Sprint("Smith", id%2); return nil })
				return err
			})
		})
	}
}

// hook is a pattern that calls a function when a change is planned, after the lists were read.
type hook struct{ planned func() }

func (h *hook) Attach(driver.Host, *employee) (driver.Implementation, error) {
	return driver.Implementation{Name: "hook", Rows: func(context.Context, []*driver.Change) ([]driver.RowOperation, error) {
		h.planned()
		return nil, nil
	}}, nil
}

// TestConflictOnEachAttempt: a change that conflicts too often names the index whose list concurrent writers changed, and writes
// nothing. With one attempt more it is planned again.
func TestConflictOnEachAttempt(t *testing.T) {
	for attempts, want := range map[int]error{1: tables.ErrConflict, 2: nil} {
		t.Run(fmt.Sprint(attempts), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w := (&world{option: inPartition}).open(t, s)
			concurrent := assert.Must[*process](t)(w.start(s))
			insert := func(id int) {
				if err := concurrent.repo.Insert(ctx, with(id, "Jones")); err != nil {
					t.Fatal(err)
				}
			}
			insert(1)
			account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
			calls := 0
			index := indexentities.NewMultiInPartition("lastname", func(e *employee) []compoundkey.Part { return []compoundkey.Part{byLastName(e)} })
			repo := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(account.Table(w.table), patterns.Schema[employee]{Key: keyOf, Prefix: "empid", MaxAttempts: attempts}, index,
				&hook{func() {
					if calls++; calls == 1 {
						insert(3)
					}
				}}))
			x := repo.Table().NewTransaction()
			repo.StageInsert(x, with(2, "Jones"))
			repo.StageInsert(x, with(4, "Jones"))
			_, err := x.Commit(ctx)
			var failed *tables.Error
			if want != nil && (!errors.Is(err, want) || !errors.As(err, &failed) || failed.Pattern != "lastname" || failed.Change != 1) {
				t.Fatalf("error is %v", err)
			}
			if want == nil && err != nil {
				t.Fatal(err)
			}
			if found, err := w.check(ctx, s); err != nil || len(found) != map[int]int{1: 2, 2: 4}[attempts] {
				t.Fatalf("%v, %v", found, err)
			}
		})
	}
}
