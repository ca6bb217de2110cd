package backup_test

import (
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	employeeMembers = `,"Name":"employee %d of contoso","Mail":"employee@contoso.com","Floor":7,"Salary@odata.type":"Edm.Int64","Salary":"9007199254740993",` +
		`"Hired@odata.type":"Edm.DateTime","Hired":"2014-08-22T00:50:00Z","Odd":true,"Text":"The quick brown fox jumps over the lazy dog, and then some more text"`
	emulatorMembers = `,"no-name":%d`
)

// TestMemory: what a Backup holds between two requests stays below a limit that does not depend on the table: without and with a base, and if
// all rows are left out. The thorough run takes a million rows.
func TestMemory(t *testing.T) {
	const limit = 16 << 20
	sizes := []int{10_000, 40_000}
	switch {
	case testing.Short():
		sizes = []int{5_000, 20_000}
	case harness.Thorough():
		sizes = []int{10_000, 100_000, 1_000_000}
	}
	for _, n := range sizes {
		v := opened(t)
		for _, x := range []struct{ name, base, members string }{{"first", "", employeeMembers}, {"second", "first", employeeMembers}, {"third", "", emulatorMembers}} {
			table := harness.Generated(t, n, func(i int) tables.Key {
				return tables.Key{Partition: fmt.Sprintf("p%04d", i*50/n), Row: fmt.Sprintf("%08d", i)}
			}, func(dst []byte, i int) []byte { return fmt.Appendf(dst, x.members, i) })
			most := table.LiveHeap(func() {
				report, err := v.Backup(t.Context(), x.name, []*tables.Table{table.Table}, &backup.Options{Base: x.base})
				if err != nil || report.Read+report.Failed != int64(n) || (report.Failed > 0) != (x.members == emulatorMembers) || (report.Unchanged > 0) != (x.base != "") {
					t.Error(report, err)
				}
			})
			if t.Logf("%d rows, %s: %.1f MiB", n, x.name, float64(most)/(1<<20)); most > limit {
				t.Errorf("%d bytes are over the limit of %d", most, limit)
			}
		}
	}
}
