package patterns_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRequestCounts holds the counts that the package docs and docs/reference/costs.md state.
func TestRequestCounts(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	indexes := make([]patterns.Pattern[person], 3)
	var byName *intrapartition.Unique[person, compoundkey.Part]
	for i := range indexes {
		x := intrapartition.NewUnique(fmt.Sprintf("by%d", i), func(p *person) compoundkey.Part {
			return compoundkey.Tuple(compoundkey.String(p.Name), compoundkey.Int(p.ID, 4))
		}, nil)
		indexes[i], byName = x, x
	}
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(harness.NewTable(t, a), personSchema(), indexes...))
	bags := repo.Table().Entities()
	e := ann()
	key := personSchema().Key(e)
	nameKey := compoundkey.Tuple(compoundkey.String("Ann"), compoundkey.Int(7, 4))
	loose := &tables.Entity{Key: tables.Key{Partition: "loose", Row: "1"}}
	steps := []struct {
		name string
		want int64
		do   func() error
	}{
		{"Insert with three indexes", 1, func() error { return repo.Insert(ctx, e) }},
		{"Get", 1, func() error { _, err := repo.Get(ctx, key); return err }},
		{"point query by an index", 1, func() error { _, err := byName.In("red").Get(ctx, nameKey); return err }},
		{"point query by Query", 1, func() error { _, err := repo.Query().Partition("red").Row(key.Row).First(ctx); return err }},
		{"Replace with three indexes", 1, func() error { e.Name = "Anna"; return repo.Replace(ctx, e) }},
		{"Merge with three indexes", 2, func() error { e.Salary++; return repo.Merge(ctx, e, "Salary") }},
		{"Update", 2, func() error {
			v, err := repo.Update(ctx, key, func(p *person) error { p.Salary++; return nil })
			e = v
			return err
		}},
		{"Upsert", 2, func() error { return repo.Upsert(ctx, e) }},
		{"ReplaceUnconditional", 2, func() error { return repo.ReplaceUnconditional(ctx, e) }},
		{"Delete with three indexes", 1, func() error { return repo.Delete(ctx, e) }},
		{"Insert of a bag", 1, func() error { return bags.Insert(ctx, loose) }},
		{"Replace of a bag", 1, func() error { return bags.Replace(ctx, loose) }},
		{"Merge of a bag", 1, func() error { return bags.Merge(ctx, loose) }},
		{"Upsert of a bag", 1, func() error { return bags.Upsert(ctx, loose) }},
		{"Delete of a bag", 1, func() error { return bags.Delete(ctx, loose) }},
		{"Explain", 0, func() error { _, err := repo.Explain(ctx, driver.ChangeInsert, ann()); return err }},
		{"Check", 0, func() error { return repo.Check(ctx, ann()) }},
	}
	for _, step := range steps {
		before := requests.Load()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := requests.Load() - before; got != step.want {
			t.Errorf("%s: %d requests, want %d", step.name, got, step.want)
		}
	}
}
