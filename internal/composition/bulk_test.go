package composition

import (
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// visit is stored by day; it is found by two numbers among all days, and by color in its day.
type visit struct {
	tables.Meta
	Day, Number, Color int
}

// TestBulkInSets: 1,000 entities of 10 partitions, with two indexes of one group each outside and a list of 20 values in the partition.
func TestBulkInSets(t *testing.T) {
	ctx, k := t.Context(), newKit(t, newRegistry(t))
	global := &interpartition.Options[visit]{Group: func(*visit) string { return interpartition.Global }}
	byNumber := interpartition.NewIndex("number", func(v *visit) compoundkey.Part { return compoundkey.Int(v.Number, 6) }, global)
	byReverse := interpartition.NewIndex("reverse", func(v *visit) compoundkey.Part { return compoundkey.Int(999_999-v.Number, 6) }, global)
	byColor := indexentities.NewInPartition("color", func(v *visit) []compoundkey.Part { return []compoundkey.Part{compoundkey.Int(v.Color, 2)} })
	visits := must[*patterns.Repository[visit]](t)(patterns.NewRepository(harness.In(k.table, k.queue), patterns.Schema[visit]{RowPrefix: "visit",
		Key: func(v *visit) tables.Key {
			return tables.Key{Partition: fmt.Sprint("day", v.Day), Row: compoundkey.Join("visit", compoundkey.Int(v.Number, 6))}
		}}, byNumber, byReverse, byColor))
	k.calls.Reset()
	report, err := visits.BulkInsertNonAtomic(ctx, func(yield func(*visit, error) bool) {
		for i := range 1000 {
			if !yield(&visit{Day: i / 100, Number: i, Color: i % 20}, nil) {
				return
			}
		}
	}, nil)
	requests := k.calls.Count()
	t.Logf("%d requests, %+v", requests, report)
	check(t, err)
	// 20 transactions: an intent put and deleted, a transaction, the lists read together, two transactions of copies, the entities
	// read again together.
	if report.Written != 1000 || report.Transactions != 20 || requests != 20*7 {
		t.Errorf("%d requests, %+v", requests, report)
	}
	check(t, clean(ctx, visits))
	n := 0
	for v, err := range byColor.Find(ctx, "day7", compoundkey.Int(3, 2), nil) {
		check(t, err)
		if n++; v.Color != 3 || v.Day != 7 {
			t.Errorf("%+v", v)
		}
	}
	if found := must[*visit](t)(byReverse.Get(ctx, interpartition.Global, compoundkey.Int(999_999-512, 6))); n != 5 || found.Number != 512 {
		t.Errorf("%d of a color, %+v", n, found)
	}
}
