package indexentities_test

import (
	"context"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// plainEmployee is an employee to a program without the index.
type plainEmployee struct{ PartitionKey, RowKey, LastName string }

// TestVerifyAndRepair: what a program without the index leaves behind is found, all of it and nothing else, and repaired.
func TestVerifyAndRepair(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w.open(t, s)
			p := assert.Must[*process](t)(w.start(s))
			for id := range 12 {
				if err := p.repo.Insert(ctx, with(id, []string{"Jones", "Smith", ""}[id%3])); err != nil {
					t.Fatal(err)
				}
			}
			plain := assert.Must[*tables.Rows[plainEmployee]](t)(tables.RowsOf[plainEmployee](p.repo.Table()))
			for id := range 3 { // two leave a list, three are missing in one
				if err := plain.MergeUnconditional(ctx, &plainEmployee{"Sales", at(id).Row, "Kwok"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := plain.DeleteUnconditional(ctx, at(7)); err != nil {
				t.Fatal(err)
			}
			options := patterns.JobOptions{Lag: time.Nanosecond}
			found, err := harness.Findings(ctx, p.repo.Repair, &options)
			if err != nil {
				t.Error(err)
			}
			for _, f := range found {
				if !f.Repaired {
					t.Errorf("%+v", f)
				}
			}
			if len(found) != 6 {
				t.Errorf("%d discrepancies, want 6", len(found))
			}
			if err := harness.Clean(ctx, p.repo.Verify, &options); err != nil {
				t.Errorf("after the repair: %v", err)
			}
			if _, err := w.check(ctx, s); err != nil {
				t.Error(err)
			}
		})
	}
}
