package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestJobsPassOverRowsThatDoNotFit: Rebuild, Verify and Repair report an entity with a wrong type, a garbled value or half of a
// surrogate pair, leave it as it is, and do their work on all others.
func TestJobsPassOverRowsThatDoNotFit(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.AccountWith(t, harness.Damaged(`"5555"`, `{"total":5}`, `cut here`, `\ud83d`)))
	for i := range 40 {
		e := harness.Row("acme", fmt.Sprintf("O-2024-%06d", i), tables.Property{Name: "Kind", Value: tables.String("order")},
			tables.Property{Name: "Customer", Value: tables.String(fmt.Sprintf("c%02d", i))}, tables.Property{Name: "Total", Value: tables.Int64(int64(i))})
		switch i {
		case 11:
			e.Set("Total", tables.String("eleven"))
		case 12:
			e.Set("Total", tables.Int64(5555))
		case 13:
			e.Set("Customer", tables.String("c13 cut here"))
		}
		assert.Check(t, table.Entities().Insert(ctx, e))
	}
	byCustomer := intrapartition.NewUnique("customer", func(o *acmeOrder) string { return o.Customer }, nil)
	r := assert.Must[*patterns.Repository[acmeOrder]](t)(patterns.NewRepository(table, acmeSchema, byCustomer))
	bad := func(want map[string]bool) *patterns.JobOptions {
		return &patterns.JobOptions{Found: func(f patterns.Finding) error {
			if f.Err == nil || !want[f.Entity.Row] {
				t.Errorf("found %+v", f)
			}
			return nil
		}}
	}
	three := map[string]bool{"O-2024-000011": true, "O-2024-000012": true, "O-2024-000013": true}
	rebuilt := assert.Must[patterns.RebuildReport](t)(r.Rebuild(ctx, bad(three)))
	if rebuilt.Read != 40 || rebuilt.Written != 37 || rebuilt.Failed != 3 {
		t.Errorf("Rebuild: %s", rebuilt)
	}
	repaired := assert.Must[patterns.RepairReport](t)(r.Repair(ctx, bad(three)))
	if repaired.Read != 40 || repaired.Findings != 3 || repaired.Repaired != 0 {
		t.Errorf("Repair: %s", repaired)
	}
	index := byCustomer.Query()
	copies := 0
	for _, err := range index.Partition("acme").All(ctx) {
		assert.Check(t, err)
		copies++
	}
	if copies != 37 {
		t.Errorf("%d copies", copies)
	}
	read, problems := 0, 0
	for o, err := range r.Query().Partition("acme").All(ctx) {
		switch {
		case errors.Is(err, tables.ErrGarbled):
			problems++
		case err != nil:
			t.Fatal(err)
		default:
			read++
			if o.Lossy != (o.RowKey == "O-2024-000013") {
				t.Errorf("%+v", o)
			}
		}
	}
	if read != 38 || problems != 2 {
		t.Errorf("%d entities, %d problems", read, problems)
	}
	_, err := r.Update(ctx, tables.Key{Partition: "acme", Row: "O-2024-000013"}, func(o *acmeOrder) error { o.Total++; return nil })
	harness.WantKind(t, err, tables.ErrInvalid)
	_, err = r.Update(ctx, tables.Key{Partition: "acme", Row: "O-2024-000013"}, func(o *acmeOrder) error { o.Customer, o.Lossy = "c13", false; return nil })
	assert.Check(t, err)
	left := map[string]bool{"O-2024-000011": true, "O-2024-000012": true}
	if report := assert.Must[patterns.VerifyReport](t)(r.Verify(ctx, bad(left))); report.Findings != 2 {
		t.Errorf("Verify: %s", report)
	}
}
