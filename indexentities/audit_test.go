package indexentities_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestAudit: what must be held, what is held, in all partitions and in some, and what is held at one place.
func TestAudit(t *testing.T) {
	for _, w := range []*world{{option: inPartition}} {
		t.Run(w.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w.open(t, s)
			p := assert.Must[*process](t)(w.start(s))
			wanted := map[string]map[string]int{"Sales": {}, "Marketing": {}, "": {}}
			for department, of := range wanted {
				for id, name := range []string{"Jones", "Jones", "Smith", ""} {
					e := with(id, name)
					e.Department = department
					if err := p.repo.Insert(ctx, e); err != nil {
						t.Fatal(err)
					}
					facts := assert.Must[[]driver.Fact](t)(p.audit().Expected(e))
					if len(facts) != map[bool]int{true: 1}[name != ""] {
						t.Fatalf("%s has facts %+v", name, facts)
					}
					for _, fact := range facts {
						of[factText(fact)]++
						held, is, err := harness.ReadFact(ctx, p.audit(), fact.Place, fact.Entity)
						if err != nil || !is || held != fact {
							t.Errorf("looking for %+v there is %+v, %v", fact, held, err)
						}
						if _, is, err := harness.ReadFact(ctx, p.audit(), fact.Place, tables.Key{Partition: department, Row: "empid_000009"}); err != nil || is {
							t.Errorf("another is held at %q, %v", fact.Place, err)
						}
					}
				}
			}
			for what, c := range map[string][]string{"Sales": {"Sales"}, "two": {"", "Marketing"}, "all": nil, "none": {}} {
				want := map[string]int{}
				for department, of := range wanted {
					if (driver.Scope{Partitions: c}).Contains(tables.Key{Partition: department}) {
						maps.Copy(want, of)
					}
				}
				got, err := heldBy(ctx, p.audit(), driver.Scope{Partitions: c})
				if err != nil || !maps.Equal(got, want) {
					t.Errorf("%s: held is\n%s\nwant\n%s\n%v", what, lines(got), lines(want), err)
				}
			}
		})
	}
}

// TestRemove: Effect.Remove removes a key that is in a list without reason, keeps a required one, and notices a concurrent
// write.
func TestRemove(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{option: inPartition}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	for id := range 3 {
		if err := p.repo.Insert(ctx, with(id, "Jones")); err != nil {
			t.Fatal(err)
		}
	}
	plain := assert.Must[*tables.Rows[struct{ PartitionKey, RowKey, LastName string }]](t)(tables.RowsOf[struct{ PartitionKey, RowKey, LastName string }](p.repo.Table()))
	for id, name := range []string{"Kwok", "Smith"} { // by a program without the index
		row := struct{ PartitionKey, RowKey, LastName string }{"Sales", at(id).Row, name}
		if err := plain.MergeUnconditional(ctx, &row); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.check(ctx, s); err == nil {
		t.Fatal("nothing is to repair")
	}
	place := w.placeOf("Jones")
	wanted := func(id, asked int, meanwhile func(n int)) func(context.Context) (bool, error) {
		n := 0
		return func(ctx context.Context) (bool, error) {
			e, err := p.repo.Get(ctx, at(id))
			if n++; n > asked {
				t.Errorf("asked for %d %d times", id, n)
			}
			if meanwhile != nil {
				meanwhile(n)
			}
			return err == nil && e.LastName == "Jones", err
		}
	}
	if err := p.audit().Remove(ctx, place, at(0), wanted(0, 1, nil)); err != nil {
		t.Fatal(err)
	}
	if err := p.audit().Remove(ctx, place, at(2), wanted(2, 1, nil)); err != nil {
		t.Fatal(err)
	}
	if err := p.audit().Remove(ctx, place, at(7), wanted(7, 0, nil)); err != nil {
		t.Fatal(err)
	}
	if err := p.audit().Remove(ctx, place, at(1), wanted(1, 2, func(n int) { // becomes a Jones after she was read as a Smith
		if n == 1 {
			if _, err := p.repo.Update(ctx, at(1), func(e *employee) error { e.LastName = "Jones"; return nil }); err != nil {
				t.Error(err)
			}
		}
	})); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("not to be read")
	if err := p.repo.Table().Entities().DeleteUnconditional(ctx, at(2)); err != nil {
		t.Fatal(err)
	}
	if err := p.audit().Remove(ctx, place, at(2), func(context.Context) (bool, error) { return false, failure }); !errors.Is(err, failure) {
		t.Errorf("error is %v", err)
	}
	if err := p.audit().Remove(ctx, place, at(2), func(context.Context) (bool, error) { return false, nil }); err != nil {
		t.Fatal(err)
	}
	e := assert.Must[*employee](t)(p.repo.Get(ctx, at(0))) // her new list misses her, which her next write repairs
	if err := p.repo.Replace(ctx, e); err != nil {
		t.Fatal(err)
	}
	if found, err := w.check(ctx, s); err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}
	for row, err := range p.repo.Query().Partition("Sales").All(ctx) {
		if err != nil || row.LastName == "" {
			t.Errorf("a list that was repaired is read as an entity: %+v, %v", row, err)
		}
	}
}

// TestRemoveUnderFaults breaks Effect.Remove at every call.
func TestRemoveUnderFaults(t *testing.T) {
	storagetest.Sweep(t, storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := (&world{option: inPartition}).open(t, s)
		p := assert.Must[*process](t)(w.start(s))
		for id := range 2 {
			if err := p.repo.Insert(t.Context(), with(id, "Jones")); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.repo.Table().Entities().DeleteUnconditional(t.Context(), at(0)); err != nil {
			t.Fatal(err)
		}
		operate := func(ctx context.Context, s *storagetest.Service) error {
			p, err := w.start(s)
			if err != nil {
				return err
			}
			return p.audit().Remove(ctx, w.placeOf("Jones"), at(0), func(ctx context.Context) (bool, error) {
				_, err := p.repo.Get(ctx, at(0))
				if errors.Is(err, tables.ErrNotFound) {
					return false, nil
				}
				return err == nil, err
			})
		}
		return storagetest.World{Operate: operate, Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
			if !end.Succeeded() {
				if err := operate(ctx, s); err != nil { // whatever became of it, it can be repeated
					return err
				}
			}
			_, err := w.check(ctx, s)
			return err
		}}
	}, Floor: 90})
}

// TestUnreadableLists: a list that makes no sense is told, and not taken for one.
func TestUnreadableLists(t *testing.T) {
	for _, o := range []option{inPartition} {
		t.Run(string(o), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w := (&world{option: o}).open(t, s)
			p := assert.Must[*process](t)(w.start(s))
			if err := w.spoil(ctx, p); err != nil {
				t.Fatal(err)
			}
			if _, err := p.index.In("Sales").Keys(ctx, compoundkey.String("Jones")); !errors.Is(err, tables.ErrGarbled) {
				t.Errorf("Keys: %v", err)
			}
			var last error
			for _, err := range w.sales(p).Values(ctx) {
				last = err
			}
			if !errors.Is(last, tables.ErrGarbled) {
				t.Errorf("Values: %v", last)
			}
			if fact, held, err := harness.ReadFact(ctx, p.audit(), w.placeOf("Jones"), at(1)); err != nil || !held || !errors.Is(fact.Err, tables.ErrGarbled) {
				t.Errorf("Look: %+v, %v, %v", fact, held, err)
			}
			if o == inPartition {
				var e *tables.Error
				if err := p.repo.Insert(ctx, with(1, "Jones")); !errors.Is(err, tables.ErrGarbled) || !errors.As(err, &e) || e.Pattern != "lastname" {
					t.Errorf("Insert: %v", err)
				}
			}
			if err := p.repo.Insert(ctx, with(2, "Smith")); err != nil {
				t.Fatal(err)
			}
			unreadable, readable := 0, 0
			for fact, err := range p.audit().List(ctx, driver.Scope{}) {
				switch {
				case err != nil:
					t.Fatal(err)
				case fact.Err == nil:
					readable++
				case errors.Is(fact.Err, tables.ErrGarbled) && fact.Place == w.placeOf("Jones"):
					unreadable++
				default:
					t.Errorf("%+v", fact)
				}
			}
			if unreadable != 1 || readable != 1 {
				t.Errorf("%d lists are unreadable, and %d facts are read", unreadable, readable)
			}
		})
	}
}

// spoil puts what is no list in the place of that of Jones.
func (w *world) spoil(ctx context.Context, p *process) error {
	row := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: "lastname_Jones"}}
	row.Set("Keys", tables.String("empid"))
	return p.lists.Entities().Insert(ctx, row)
}
