package patterns_test

import (
	"context"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRequestCountsOfConflicts holds what docs/reference/costs.md says of a change that begins again.
func TestRequestCountsOfConflicts(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	staff, concurrent := staffOf(table), staffOf(harness.Account(t).Table(table.Name())) // whose requests are not counted
	hireAll(ctx, concurrent, 1)
	key := tables.Key{Partition: "Sales", Row: "000001"}
	writers := 0
	update := func(w *Worker) error {
		w.Age++
		if writers == 0 {
			return nil
		}
		writers--
		_, err := concurrent.Update(ctx, key, func(w *Worker) error { w.Age++; return nil })
		return err
	}
	checkSpending(t, requests, []spending{
		{"Update with one concurrent writer", 4, func() error { writers = 1; _, err := staff.Update(ctx, key, update); return err }},
		{"Update with three concurrent writers", 8, func() error { writers = 3; _, err := staff.Update(ctx, key, update); return err }},
	})
}

// TestRequestCountsOfRebuild holds what docs/reference/costs.md says of an index that is new to the entities of a table.
func TestRequestCountsOfRebuild(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	hireAll(ctx, staffOf(harness.Account(t).Table(table.Name())), 7)
	workers, _ := workersBy(table)
	checkSpending(t, requests, []spending{
		{"Rebuild of an index that 7 entities lack", 2, func() error { _, err := workers.Rebuild(ctx, nil); return err }},
		{"Rebuild once more", 1, func() error { _, err := workers.Rebuild(ctx, nil); return err }},
	})
}
