package patterns_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestBulkRowsPerSecond: a limit holds for transactions of several partitions, and for the smaller ones after a refusal.
func TestBulkRowsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Bool
		table := harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
			if refused.CompareAndSwap(false, true) {
				return harness.Reply(req, http.StatusRequestEntityTooLarge, ""), nil
			}
			return takesAll(req)
		}).Table("Employees")
		began := time.Now()
		report, err := table.Entities().BulkNonAtomic(context.Background(), harness.Bags(1000, 4), &tables.BulkOptions{RowsPerSecond: 100})
		// 1,000 rows and the 100 that were refused, 100 of them at once
		if took := time.Since(began).Round(time.Second); err != nil || report.Written != 1000 || took != 10*time.Second {
			t.Errorf("%+v, %v, took %v", report, err, took)
		}
	})
	table := harness.NewTable(t, harness.Account(t))
	_, err := table.Entities().BulkNonAtomic(t.Context(), harness.Bags(1, 1), &tables.BulkOptions{RowsPerSecond: -1})
	harness.WantKind(t, err, tables.ErrWiring)
}
