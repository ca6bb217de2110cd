package tables_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestPartitionsWithFullBuffer: a parallel read of more pages than its buffer holds ends: the reader of the partition that is delivered next goes on
// although the buffer is full of pages of others.
func TestPartitionsWithFullBuffer(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	for _, p := range []string{"a", "b"} {
		var list []*tables.Entity
		for i := range 30 {
			list = append(list, harness.Bag(p, fmt.Sprintf("%03d", i), "x"))
		}
		fill(t, table, list)
	}
	runs := 100
	if harness.OnAzurite(t) {
		runs = 5
	}
	for range runs {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		n := 0
		for _, err := range table.Entities().Query().PageSize(1).AllPartitions(ctx, []string{"a", "b"}, nil) {
			assert.Check(t, err)
			n++
		}
		cancel()
		assert.Equal(assert.Fatal(t), n, 60, "rows")
	}
}
