package patterns_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRequestCountsOfRebuildOutside: what entities lack in other partitions is read and written by partition and by list. It holds what
// docs/reference/costs.md says.
func TestRequestCountsOfRebuildOutside(t *testing.T) {
	type world struct{ partitions, copies, lists int64 }
	n, sizes := 1_000, []world{{1, 24, 24}}
	if harness.Thorough() {
		n, sizes = 10_000, []world{{1, 240, 240}, {10, 240, 240}}
	}
	for _, size := range sizes {
		email := func(p *person) compoundkey.Part { return compoundkey.String(p.Email) }
		city := func(p *person) compoundkey.Part { return compoundkey.Int(int64(p.ID%20), 2) }
		rebuildCounted(t, fmt.Sprintf("unique-%d", size.partitions), n, int(size.partitions), size.copies, func(*patterns.Store) patterns.Pattern[person] {
			return interpartition.NewIndex("email", email, &interpartition.Options[person]{Unique: true})
		})
		rebuildCounted(t, fmt.Sprintf("list-%d", size.partitions), n, int(size.partitions), size.lists, func(*patterns.Store) patterns.Pattern[person] {
			return indexentities.NewInTable("city", city, nil, nil)
		})
	}
}

// rebuildCounted rebuilds a pattern for n entities, and counts the requests.
func rebuildCounted(t *testing.T, name string, n, partitions int, want int64, pattern func(*patterns.Store) patterns.Pattern[person]) {
	t.Run(name, func(t *testing.T) {
		ctx, suffix := t.Context(), strings.ToLower(strings.ReplaceAll(name, "-", ""))
		a, requests := harness.Counted(t)
		store := harness.Must[*patterns.Store](t)(patterns.NewStore(a, "jobs"+suffix, nil))
		table := store.Table("People" + suffix)
		schema := patterns.Schema[person]{Rows: compoundkey.Starting("person"), Key: func(p *person) tables.Key {
			return tables.Key{Partition: fmt.Sprintf("p%d", p.ID*partitions/n), Row: fmt.Sprintf("person_%06d", p.ID)}
		}}
		bare := harness.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, schema))
		repo := harness.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, schema, pattern(store)))
		harness.Check(t, store.Create(ctx))
		_, err := bare.BulkNonAtomic(ctx, func(yield func(*person, error) bool) {
			for id := range n {
				p := ann()
				p.ID, p.Email = id, fmt.Sprintf("p%06d@contoso.com", id)
				if !yield(p, nil) {
					return
				}
			}
		}, nil)
		harness.Check(t, err)
		before := requests.Load()
		report, err := repo.Rebuild(ctx, nil)
		if err != nil || report.Written != int64(n) || report.Failed > 0 {
			t.Fatalf("%+v, %v", report, err)
		}
		if got := requests.Load() - before; got != want {
			t.Errorf("%d requests, want %d", got, want)
		}
		before = requests.Load()
		report, err = repo.Rebuild(ctx, nil)
		if err != nil || report.Written != 0 || report.Unchanged != int64(n) {
			t.Fatalf("again: %+v, %v", report, err)
		}
		t.Logf("again: %d requests", requests.Load()-before)
		harness.Check(t, harness.Clean(ctx, repo.Verify, nil))
	})
}
