package interpartition_test

import (
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestSetErrors: an error names the change that failed, and nothing is written.
func TestSetErrors(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newWorld(t, s, kind{unique: true})
	p := assert.Must[*process](t)(w.start(s))
	if err := p.repo.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	stored := assert.Must[*employee](t)(p.repo.Get(ctx, keyOf(jones())))
	stale := assert.Must[*employee](t)(p.repo.Get(ctx, keyOf(jones())))
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
			assert.Check(t, becomes(jones())(ctx, p.repo)) // settles what the refused change has marked
			if found, err := w.check(ctx, s); err != nil || len(found) != 1 {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
}
