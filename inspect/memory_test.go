package inspect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/inspect"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestMemory: what Repository holds between two requests stays below a limit, does not grow with the table, and stays below the limit also if
// two rows want each key. The thorough run takes a million rows.
func TestMemory(t *testing.T) {
	const limit, growth = 48 << 20, 3 << 20
	sizes := []int{10_000, 100_000}
	switch {
	case testing.Short():
		sizes = []int{5_000, 20_000}
	case harness.Thorough():
		sizes = []int{10_000, 100_000, 300_000, 1_000_000}
	}
	least := int64(limit)
	for _, n := range sizes {
		for _, each := range []int{1, 2} {
			table := harness.Generated(t, n, func(i int) tables.Key {
				return tables.Key{Partition: fmt.Sprintf("p%03d", i*50/n), Row: fmt.Sprintf("person_%06d", i)}
			}, func(dst []byte, i int) []byte {
				return fmt.Appendf(dst, `,"Team":"p%03d","ID@odata.type":"Edm.Int64","ID":"%d","Email":"%sp%06d@contoso.com","City":"c","Text":"The quick brown fox"`,
					i*50/n, i, strings.Repeat("long", 50), i/each)
			})
			repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table.Table, personSchema(), intrapartition.NewUnique("email", email, nil)))
			var r *inspect.Report
			most := table.LiveHeap(func() { r = assert.Must[*inspect.Report](t)(inspect.Repository(t.Context(), repo, nil)) })
			t.Logf("%d rows, %d for each key: %.1f MiB, %d keys taken, %d not compared", n, each, float64(most)/(1<<20), len(r.Schema.TakenKeys)+int(r.Schema.OtherTakenKeys), r.Schema.KeysNotCompared)
			if most > limit {
				t.Errorf("%d bytes are over the limit of %d", most, limit)
			}
			if least = min(least, most); each == 1 && most > least+growth {
				t.Errorf("%d rows take %d bytes more than few rows", n, most-least)
			}
		}
	}
}
