package interpartition_test

import (
	"fmt"
	"testing"
	"time"

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
	ctx, c := t.Context(), openCounted(t, kind{})
	global := &interpartition.Options[visit]{Group: func(*visit) string { return interpartition.Global }}
	byNumber := interpartition.NewIndex("number", func(v *visit) compoundkey.Part { return compoundkey.Int(v.Number, 6) }, global)
	byReverse := interpartition.NewIndex("reverse", func(v *visit) compoundkey.Part { return compoundkey.Int(999_999-v.Number, 6) }, global)
	byColor := indexentities.NewInPartition("color", func(v *visit) []compoundkey.Part { return []compoundkey.Part{compoundkey.Int(v.Color, 2)} })
	visits := harness.Must[*patterns.Repository[visit]](t)(patterns.NewRepository(harness.In(c.repo.Table(), c.process.queue), patterns.Schema[visit]{Name: "visits", RowPrefix: "visit",
		Key: func(v *visit) tables.Key {
			return tables.Key{Partition: fmt.Sprint("day", v.Day), Row: compoundkey.Join("visit", compoundkey.Int(v.Number, 6))}
		}}, byNumber, byReverse, byColor))
	c.requests.Reset()
	report, err := visits.BulkInsertNonAtomic(ctx, func(yield func(*visit, error) bool) {
		for i := range 1000 {
			if !yield(&visit{Day: i / 100, Number: i, Color: i % 20}, nil) {
				return
			}
		}
	}, nil)
	requests := c.requests.Count()
	t.Logf("%d requests, %+v", requests, report)
	if err != nil {
		t.Fatal(err)
	}
	// 20 transactions, each with an intent put and deleted, the lists read together, two transactions of copies, the entities read
	// again together.
	if report.Written != 1000 || report.Transactions != 20 || requests != 140 {
		t.Errorf("%d requests, %+v", requests, report)
	}
	verified, err := visits.Verify(ctx, &patterns.JobOptions{Lag: time.Millisecond, Found: func(f patterns.Finding) error { t.Errorf("%v", f); return nil }})
	if err != nil || verified.Findings > 0 {
		t.Errorf("%+v, %v", verified, err)
	}
	n := 0
	for v, err := range byColor.Find(ctx, "day7", compoundkey.Int(3, 2), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; v.Color != 3 || v.Day != 7 {
			t.Errorf("%+v", v)
		}
	}
	if found := harness.Must[*visit](t)(byReverse.Get(ctx, interpartition.Global, compoundkey.Int(999_999-512, 6))); n != 5 || found.Number != 512 {
		t.Errorf("%d of a color, %+v", n, found)
	}
}
