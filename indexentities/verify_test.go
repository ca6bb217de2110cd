package indexentities_test

import (
	"context"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// plainEmployee is an employee to a program without the index.
type plainEmployee struct{ PartitionKey, RowKey, LastName string }

// TestVerifyAndRepair: what a program without the index leaves behind is found, all of it and nothing else, and repaired.
func TestVerifyAndRepair(t *testing.T) {
	for _, w := range worlds() {
		if w.async {
			continue
		}
		t.Run(w.String(), func(t *testing.T) {
			ctx, s := context.Background(), storagetest.Open(t)
			w.open(t, s)
			p := must[*process](t)(w.start(s))
			for id := range 12 {
				if err := p.repo.Insert(ctx, with(id, []string{"Jones", "Smith", ""}[id%3])); err != nil {
					t.Fatal(err)
				}
			}
			plain := must[*tables.Rows[plainEmployee]](t)(tables.RowsOf[plainEmployee](p.repo.Table()))
			for id := range 3 { // two leave a list, three are missing in one
				if err := plain.MergeUnconditional(ctx, &plainEmployee{"Sales", at(id).Row, "Kwok"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := plain.DeleteUnconditional(ctx, at(7)); err != nil {
				t.Fatal(err)
			}
			options := patterns.VerifyOptions{Lag: time.Nanosecond}
			found := 0
			for d, err := range p.repo.Repair(ctx, &patterns.RepairOptions{VerifyOptions: options}) {
				if found++; err != nil || !d.Done {
					t.Errorf("%+v, %v", d, err)
				}
			}
			if found != 6 {
				t.Errorf("%d discrepancies, want 6", found)
			}
			for d, err := range p.repo.Verify(ctx, &options) {
				t.Errorf("after the repair: %v, %v", d, err)
			}
			if _, err := w.check(ctx, s); err != nil {
				t.Error(err)
			}
		})
	}
}
