package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// together makes changes of several entities in one transaction.
func together(stages ...func(ctx context.Context, repo *patterns.Repository[employee], x *tables.Transaction) error) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		x := repo.Table().NewTransaction()
		for _, stage := range stages {
			if err := stage(ctx, repo, x); err != nil {
				return err
			}
		}
		_, err := x.Commit(ctx)
		return err
	}
}

// movesIn is moves in a transaction.
func movesIn(id int, email string) func(context.Context, *patterns.Repository[employee], *tables.Transaction) error {
	return func(ctx context.Context, repo *patterns.Repository[employee], x *tables.Transaction) error {
		e, err := repo.Get(ctx, at(id))
		if err != nil {
			return err
		}
		e.Name, e.Email = "both", email
		repo.StageReplace(x, e)
		return nil
	}
}

// goesIn is goes in a transaction.
func goesIn(id int) func(context.Context, *patterns.Repository[employee], *tables.Transaction) error {
	return func(ctx context.Context, repo *patterns.Repository[employee], x *tables.Transaction) error {
		e, err := repo.Get(ctx, at(id))
		if err != nil {
			return err
		}
		repo.StageDelete(x, e)
		return nil
	}
}

// comesIn is comes in a transaction.
func comesIn(id int, email string) func(context.Context, *patterns.Repository[employee], *tables.Transaction) error {
	return func(_ context.Context, repo *patterns.Repository[employee], x *tables.Transaction) error {
		repo.StageInsert(x, with(id, email))
		return nil
	}
}

// two are two entities with index keys.
func two() []*employee { return []*employee{with(1, "a"), with(2, "b")} }

// The scenes of a change set of two entities and, in all but the first, a concurrent writer of one of them.
var (
	sceneSet = walkScene{"a set alone", two(), [][]change{{together(movesIn(1, "c"), movesIn(2, "d"))}},
		[]string{"1 a before, 2 b before", "1 c both, 2 d both"}}
	sceneSwap = walkScene{"a swap of keys", two(), [][]change{{together(movesIn(1, "b"), movesIn(2, "a"))}},
		[]string{"1 a before, 2 b before", "1 b both, 2 a both"}}
	sceneSetMove = walkScene{"a set against a move of a member", two(), [][]change{{together(movesIn(1, "c"), movesIn(2, "d"))}, {moves(2, "e")}},
		[]string{"1 a before, 2 b before", "1 a before, 2 e after", "1 c both, 2 d both", "1 c both, 2 e after"}}
	sceneSetDelete = walkScene{"a set against the delete of a member", two(), [][]change{{together(movesIn(1, "c"), movesIn(2, "d"))}, {goes(1)}},
		[]string{"1 a before, 2 b before", "1 c both, 2 d both", "2 b before", "2 d both"}}
	sceneSets = walkScene{"two sets of the same members", two(), [][]change{{together(movesIn(1, "c"), movesIn(2, "d"))}, {together(movesIn(1, "d"), movesIn(2, "a"))}},
		[]string{"1 a before, 2 b before", "1 c both, 2 d both", "1 d both, 2 a both"}}
	sceneSetMixed = walkScene{"one of a set comes, the other goes", []*employee{with(1, "a")}, [][]change{{together(goesIn(1), comesIn(2, "b"))}, {moves(1, "c")}},
		[]string{"1 a before", "1 c after", "2 b before"}}
)

// TestWalkSets: a change set and a concurrent writer of one of its entities, with workers, deaths and pauses.
func TestWalkSets(t *testing.T) {
	size, kinds := small, []kind{plain}
	if harness.Thorough() {
		size, kinds = middle, []kind{plain, async}
	}
	walkConverges(t, size, []walkScene{sceneSetMove, sceneSet, sceneSwap, sceneSetDelete, sceneSetMixed}, kinds...)
	if harness.Thorough() {
		walkConverges(t, small, []walkScene{sceneSets}, kinds...) // a middle one has more than a million states
	}
	walkConverges(t, size, []walkScene{sceneSet, sceneSetMove, sceneSetDelete, sceneSetMixed}, unique)
}

// TestWalkSetWithoutARule: each rule is needed for change sets too.
func TestWalkSetWithoutARule(t *testing.T) {
	for name, c := range map[string]struct {
		waive lease.Rules
		scene walkScene
		size  walkSize
	}{
		"late writes":    {lease.Expiry, sceneSetMove, oneHeldUp},
		"no second look": {lease.Reread, sceneSetMove, walkSize{workers: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &walked{kind: plain, walkScene: c.scene, waive: c.waive}
			found := w.walk(t, c.size)
			found.MustDiverge(t)
			t.Logf("%v", found.Divergence)
		})
	}
}

// smith is a colleague of Jones, ward another.
func smith() *employee {
	return &employee{Department: "Sales", ID: 224, Name: "John Smith", Email: "smith@contoso.com", Badge: "B-9"}
}

func ward() *employee {
	return &employee{Department: "Sales", ID: 225, Name: "Ann Ward", Email: "ward@contoso.com", Badge: "B-7"}
}

// TestSweepSets breaks a transaction that replaces one entity, inserts another and deletes a third at every storage call, in every way.
func TestSweepSets(t *testing.T) {
	before := fmt.Sprint([]string{textOf(ward()), textOf(jones())})
	after := fmt.Sprint([]string{textOf(smith()), textOf(changed())})
	floors := map[string]int{"sync": 548, "sync-unique": 916, "async": 180, "async-unique": 292}
	kinds := []kind{{unique: true}, {async: true}, {}, {async: true, unique: true}}
	if !harness.Thorough() {
		t.Logf("not thorough: %v of %v", kinds[:2], kinds)
		kinds = kinds[:2]
	}
	for _, k := range kinds {
		t.Run(k.String(), func(t *testing.T) {
			storagetest.Sweep(t, storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				w := newWorld(t, s, k)
				p := harness.Must[*process](t)(w.start(s))
				for _, err := range []error{p.repo.Insert(t.Context(), jones()), p.repo.Insert(t.Context(), ward()), w.drainNow(t.Context(), p)} {
					if err != nil {
						t.Fatal(err)
					}
				}
				var said harness.Attempts
				return storagetest.World{
					Operate: func(ctx context.Context, s *storagetest.Service) error {
						p, err := w.start(s)
						if err == nil {
							err = replaceInsertDelete(ctx, p.repo)
						}
						said.Add(err)
						return err
					},
					Recover: w.drain,
					Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
						found, err := w.check(ctx, s)
						if err != nil {
							return err
						}
						return said.Fits(fmt.Sprint(slices.Sorted(maps.Values(found))), []string{before, after})
					},
				}
			}, Floor: floors[k.String()], Every: harness.SweepEvery()})
		})
	}
}

// replaceInsertDelete makes the transaction of TestSweepSets.
func replaceInsertDelete(ctx context.Context, repo *patterns.Repository[employee]) error {
	e, err := repo.Get(ctx, keyOf(jones()))
	if err != nil {
		return err
	}
	gone, err := repo.Get(ctx, keyOf(ward()))
	if err != nil {
		return err
	}
	e.Name, e.Email, e.Badge = changed().Name, changed().Email, changed().Badge
	x := repo.Table().NewTransaction()
	repo.StageReplace(x, e)
	repo.StageInsert(x, smith())
	repo.StageDelete(x, gone)
	_, err = x.Commit(ctx)
	return err
}

// TestSetRequests: the members of a set share the put and the delete of the intent and the transaction; their new copies in one partition
// are written together.
func TestSetRequests(t *testing.T) {
	for k, want := range map[kind][2]int{{}: {6, 7}, {unique: true}: {8, 9}} {
		t.Run(k.String(), func(t *testing.T) {
			ctx, c := t.Context(), openCounted(t, k)
			c.requests.Reset()
			if err := c.repo.Insert(ctx, jones()); err != nil {
				t.Fatal(err)
			}
			one := c.requests.Count() // put, transaction, 2 copies, read again, delete
			c.requests.Reset()
			x := c.repo.Table().NewTransaction()
			c.repo.StageInsert(x, smith())
			c.repo.StageInsert(x, ward())
			if _, err := x.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if two := c.requests.Count(); one != want[0] || two != want[1] {
				t.Errorf("an insert is %d requests, and a transaction of two %d; want %v", one, two, want)
			}
		})
	}
}

// TestSetErrors: an error names the change that failed, and nothing is written.
func TestSetErrors(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newWorld(t, s, kind{unique: true})
	p := harness.Must[*process](t)(w.start(s))
	if err := p.repo.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	stored := harness.Must[*employee](t)(p.repo.Get(ctx, keyOf(jones())))
	stale := harness.Must[*employee](t)(p.repo.Get(ctx, keyOf(jones())))
	if err := p.repo.Replace(ctx, stored); err != nil {
		t.Fatal(err)
	}
	taken := ward()
	taken.Email = jones().Email
	elsewhere := smith()
	elsewhere.Department = "Marketing"
	for name, c := range map[string]struct {
		second  func(x *tables.Transaction)
		kind    error
		pattern string
	}{
		"a taken key": {func(x *tables.Transaction) { p.repo.StageInsert(x, taken) }, tables.ErrDuplicate, "email"},
		"an entity that exists": {func(x *tables.Transaction) {
			p.repo.StageInsert(x, &employee{Department: "Sales", ID: 223, Email: "new", Badge: "new"})
		}, tables.ErrExists, ""},
		"a stale entity":     {func(x *tables.Transaction) { p.repo.StageReplace(x, stale) }, tables.ErrConflict, ""},
		"another partition":  {func(x *tables.Transaction) { p.repo.StageInsert(x, elsewhere) }, tables.ErrInvalid, ""},
		"the same entity":    {func(x *tables.Transaction) { p.repo.StageInsert(x, smith()) }, tables.ErrInvalid, ""},
		"no entity":          {func(x *tables.Transaction) { p.repo.StageInsert(x, nil) }, tables.ErrInvalid, ""},
		"an entity not read": {func(x *tables.Transaction) { p.repo.StageDelete(x, jones()) }, tables.ErrInvalid, ""},
		"a row that exists":  {func(x *tables.Transaction) { x.Insert(&tables.Entity{Key: keyOf(jones())}) }, tables.ErrExists, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := p.repo.Table().NewTransaction()
			p.repo.StageInsert(x, smith())
			c.second(x)
			_, err := x.Commit(ctx)
			var e *tables.Error
			if !errors.Is(err, c.kind) || !errors.As(err, &e) || e.Change != 2 || e.Pattern != c.pattern || e.Op != "Commit" {
				t.Fatalf("%+v", err)
			}
			if _, err := p.repo.Get(ctx, keyOf(smith())); !errors.Is(err, tables.ErrNotFound) {
				t.Errorf("the first change is stored: %v", err)
			}
			if err := w.drainNow(ctx, p); err != nil {
				t.Fatal(err)
			}
			if found, err := w.check(ctx, s); err != nil || len(found) != 1 {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
}
