package driver_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestFailedQuery: whatever is chained to a failed query, each method that would send it returns exactly its error, once, and so does
// Plan. A read of no partitions, which sends nothing, returns it, too.
func TestFailedQuery(t *testing.T) {
	ctx, want := context.Background(), driver.Wiringf("Query", "", "the index is in no repository")
	q := driver.FailedQuery[tables.Entity](want).Where(tables.Eq("Age", 3)).Filter("x eq").Select("Age").Rows(compoundkey.All()).Top(-1).PageSize(-1)
	all := func(all iter.Seq2[*tables.Entity, error]) (got error) {
		t.Helper()
		n := 0
		for v, err := range all {
			if n++; v != nil || n > 1 {
				t.Errorf("element %d: %v, %v", n, v, err)
			}
			got = err
		}
		return got
	}
	_, plan := q.Plan()
	_, first := q.Partition("p").First(ctx)
	_, page := q.Page(ctx, "")
	for name, err := range map[string]error{
		"Plan": plan, "First": first, "Page": page, "All": all(q.Partition("p").All(ctx)), "AllParallel": all(q.AllowTableScan().AllParallel(ctx, nil)),
		"AllPartitions": all(q.AllPartitions(ctx, []string{"a", "b"}, nil)), "AllPartitions of none": all(q.AllPartitions(ctx, nil, nil)),
		"AllPartitions in order": all(q.AllPartitions(ctx, []string{"a"}, &tables.ParallelOptions[tables.Entity]{Order: func(_, _ *tables.Entity) int { return 0 }})),
	} {
		if !errors.Is(err, want) || err.Error() != want.Error() {
			t.Errorf("%s: %v", name, err)
		}
	}
}
