package patterns_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestCheck: Check refuses what Insert refuses, as it does, with no request, and takes the rest.
func TestCheck(t *testing.T) {
	a, requests := harness.Counted(t)
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.NewTable(t, a), personSchema(),
		intrapartition.NewUnique("email", func(p *person) string { return p.Email }, nil)))
	for name, c := range map[string]struct {
		spoil func(*person)
		kind  error
	}{
		"as it is":            {func(*person) {}, nil},
		"a key's character":   {func(p *person) { p.Team = "a/b" }, tables.ErrInvalid},
		"a key's number":      {func(p *person) { p.ID = 10_000 }, tables.ErrInvalid},
		"a property's size":   {func(p *person) { p.Name = strings.Repeat("x", 40_000) }, tables.ErrTooLarge},
		"an index key's size": {func(p *person) { p.Email = strings.Repeat("x", 600) }, tables.ErrInvalid},
	} {
		v := ann()
		c.spoil(v)
		before := requests.Load()
		checked := repo.Check(t.Context(), v)
		if n := requests.Load() - before; n != 0 || c.kind == nil && checked != nil {
			t.Errorf("%s: %d requests, %v", name, n, checked)
		}
		inserted := repo.Insert(t.Context(), v)
		if c.kind != nil && (!errors.Is(checked, c.kind) || !errors.Is(inserted, c.kind)) || (checked == nil) != (inserted == nil) {
			t.Errorf("%s: Check says %v, Insert %v", name, checked, inserted)
		}
		if kind := patterns.HostOf(repo).CheckUnder(t.Context(), personSchema().Key(ann()), v); c.kind != nil && !strings.Contains(name, "key's ") && !errors.Is(kind, c.kind) {
			t.Errorf("%s, under another key: %v", name, kind)
		}
	}
	harness.WantKind(t, repo.Check(t.Context(), nil), tables.ErrInvalid)
	harness.WantKind(t, patterns.HostOf(repo).CheckUnder(t.Context(), tables.Key{Partition: "a/b", Row: "person_0007"}, ann()), tables.ErrInvalid)
	harness.WantKind(t, assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(a.Table("no-table"), personSchema())).Check(t.Context(), ann()), tables.ErrInvalid)
}

// TestCheckWritesNothing: also with patterns that write as they store, and before the key is known.
func TestCheckWritesNothing(t *testing.T) {
	w := newWorld(t)
	v := ann()
	unknown := ann()
	unknown.Team = "a/b" // no key that Insert would take
	if err := errors.Join(w.repo.Check(t.Context(), v), patterns.HostOf(w.repo).CheckUnder(t.Context(), tables.Key{Partition: "red", Row: "person_0007"}, unknown)); err != nil {
		t.Fatal(err)
	}
	if rows, blobs := w.rows(t), w.blobNames(t); len(rows)+len(blobs) != 0 {
		t.Errorf("checking wrote %q and %q", sortedKeys(rows), blobs)
	}
	if err := w.repo.Insert(t.Context(), v); err != nil {
		t.Errorf("after the check: %v", err)
	}
}
