package patterns_test

import (
	"context"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRequestCountsOfRivals holds what docs/reference/costs.md says of a change that begins again.
func TestRequestCountsOfRivals(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	staff, rival := staffOf(table), staffOf(harness.Account(t).Table(table.Name())) // whose requests are not counted
	hireAll(ctx, rival, 1)
	key := tables.Key{Partition: "Sales", Row: "000001"}
	rivals := 0
	update := func(w *Worker) error {
		w.Age++
		if rivals == 0 {
			return nil
		}
		rivals--
		_, err := rival.Update(ctx, key, func(w *Worker) error { w.Age++; return nil })
		return err
	}
	checkSpending(t, requests, []spending{
		{"Update with one rival", 4, func() error { rivals = 1; _, err := staff.Update(ctx, key, update); return err }},
		{"Update with three rivals", 8, func() error { rivals = 3; _, err := staff.Update(ctx, key, update); return err }},
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
		{"Rebuild of an index that 7 entities lack", 8, func() error { _, err := workers.Rebuild(ctx, nil); return err }},
		{"Rebuild once more", 1, func() error { _, err := workers.Rebuild(ctx, nil); return err }},
	})
}
