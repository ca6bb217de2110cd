package relationships_test

import (
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestJobsCompareNumbers: Verify finds each stored number that is wrong, with or without a list of partitions, and Repair and Rebuild correct it;
// after that, nothing is wrong. A partition with an entity that cannot be read is not compared.
func TestJobsCompareNumbers(t *testing.T) {
	for _, f := range []form{ownRow, summed} {
		t.Run(string(f), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Open(t)
			w := newWorld(t, s, f)
			p := assert.Must[*process](t)(w.start(s))
			rows := p.employees.Table().Entities()
			for _, site := range []string{"East", "Sales", "West"} {
				for id := 1; id <= 3; id++ {
					assert.Check(t, p.employees.Insert(ctx, &employee{Site: site, Group: "A", ID: id}))
				}
			}
			number := map[form]string{ownRow: "grouped", summed: "load_A"}[f]
			damage := func(site string) {
				t.Helper()
				property := map[form]string{ownRow: "Count", summed: "Max"}[f]
				_, err := p.employees.Table().Client().UpsertEntity(ctx, fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q,"%[3]s":"9","%[3]s@odata.type":"Edm.Int64"}`, site, number, property), nil)
				assert.Check(t, err)
			}
			finds := func(o *patterns.JobOptions, want ...string) {
				t.Helper()
				found, err := harness.Findings(ctx, p.employees.Verify, o)
				assert.Check(t, err)
				var got []string
				for _, f := range found {
					got = append(got, f.Location)
				}
				for i := range want {
					want[i] += "\t" + number
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("found %v, want %q", found, want)
				}
			}
			finds(nil)
			damage("East")
			damage("West")
			finds(&patterns.JobOptions{Concurrency: 1}, "East", "West")
			finds(&patterns.JobOptions{Partitions: []string{"Sales", "West"}}, "West")
			if report, err := p.employees.Repair(ctx, &patterns.JobOptions{DryRun: true}); err != nil || report.Findings != 2 || report.Repaired != 0 {
				t.Errorf("%+v, %v", report, err)
			}
			if report, err := p.employees.Repair(ctx, nil); err != nil || report.Findings != 2 || report.Repaired != 2 {
				t.Errorf("%+v, %v", report, err)
			}
			finds(nil)
			damage("East")
			if report, err := p.employees.Rebuild(ctx, nil); err != nil || report.Written != 1 || report.Failed != 0 {
				t.Errorf("%+v, %v", report, err)
			}
			finds(nil)
			damage("East")
			damage("West")
			row := assert.Must[*tables.Entity](t)(rows.Get(ctx, employeeKey("West", 2)))
			row.Set("ID", tables.String("two"))
			assert.Check(t, rows.Replace(ctx, row))
			found, err := harness.Findings(ctx, p.employees.Verify, nil)
			assert.Check(t, err)
			if len(found) != 2 || found[0].Location != "East\t"+number || found[1].Kind != patterns.Undecodable {
				t.Errorf("%v", found)
			}
		})
	}
}
