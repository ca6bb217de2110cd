package tables_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// aged is what the rows of these tests should be.
type aged struct {
	tables.Meta
	PartitionKey, RowKey string
	Age                  int32
	Name                 string
}

// agedTable has the rows "00" to "11" of two partitions. In row 03 Age is a text, in 05 no number at all, and in 07 Name ends in half of
// a surrogate pair.
func agedTable(t *testing.T) (*tables.Table, *tables.Rows[aged]) {
	t.Helper()
	table := harness.NewTable(t, harness.AccountWith(t, harness.Damaged(`"Age":5555`, `"Age":{"years":5}`, `cut here`, `\ud83d`)))
	for _, partition := range []string{"p", "q"} {
		for i := range 12 {
			e := harness.Row(partition, fmt.Sprintf("%02d", i), tables.Property{Name: "Age", Value: tables.Int32(int32(i))}, tables.Property{Name: "Name", Value: tables.String("Jones")})
			switch i {
			case 3:
				e.Set("Age", tables.String("three"))
			case 5:
				e.Set("Age", tables.Int32(5555))
			case 7:
				e.Set("Name", tables.String("Jones cut here"))
			}
			assert.Check(t, table.Entities().Insert(context.Background(), e))
		}
	}
	return table, assert.Must[*tables.Rows[aged]](t)(tables.RowsOf[aged](table))
}

// told lists what a loop yields: row keys, and "!" with the key of a problem.
func told(t *testing.T, all iter.Seq2[*aged, error]) (list []string) {
	t.Helper()
	for v, err := range all {
		switch {
		case errors.Is(err, tables.ErrGarbled):
			list = append(list, "!"+harness.WantKind(t, err, tables.ErrGarbled).Key.Row)
		case err != nil:
			t.Fatal(err)
		default:
			list = append(list, v.RowKey)
		}
	}
	return list
}

// TestRowsThatDoNotFit: each is an error of its own, with its key, and every read goes on with the rows behind it.
func TestRowsThatDoNotFit(t *testing.T) {
	ctx := context.Background()
	_, rows := agedTable(t)
	one := []string{"00", "01", "02", "!03", "04", "!05", "06", "07", "08", "09", "10", "11"}
	two := slices.Concat(one, one)
	q := rows.Query().Partition("p")
	var keys []tables.Key
	for i := range 13 {
		keys = append(keys, tables.Key{Partition: "p", Row: fmt.Sprintf("%02d", i)})
	}
	for name, c := range map[string]struct {
		all  iter.Seq2[*aged, error]
		want []string
	}{
		"All":                   {q.All(ctx), one},
		"All, small pages":      {q.PageSize(1).All(ctx), one},
		"AllParallel":           {rows.Query().AllowTableScan().PageSize(2).AllParallel(ctx, nil), two},
		"AllPartitions":         {rows.Query().AllPartitions(ctx, []string{"p", "q"}, nil), two},
		"AllPartitions, merged": {rows.Query().AllPartitions(ctx, []string{"p"}, &tables.ParallelOptions[aged]{Order: func(a, b *aged) int { return strings.Compare(a.RowKey, b.RowKey) }}), one},
		"GetMany":               {rows.GetMany(ctx, keys, nil), one},
		"Top counts entities":   {q.Top(4).All(ctx), []string{"00", "01", "02", "!03", "04"}},
		"a point query":         {q.Row("03").All(ctx), []string{"!03"}},
		"a selection":           {q.Select("Name").All(ctx), []string{"00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11"}},
	} {
		assert.Slices(t, told(t, c.all), c.want, name)
	}
	page := assert.Must[tables.Page[aged]](t)(q.Page(ctx, ""))
	if len(page.Items) != 10 || len(page.Problems) != 2 || page.Next != "" {
		t.Errorf("%d items, %v", len(page.Items), page.Problems)
	}
	for _, problem := range page.Problems {
		if text := problem.Error(); !strings.Contains(text, `"p"`) || !strings.Contains(text, "Age") || strings.Contains(text, "three") {
			t.Error(text)
		}
	}
	if v, err := rows.Query().Partition("p").Where(tables.Ge("RowKey", "03")).First(ctx); !errors.Is(err, tables.ErrGarbled) {
		t.Errorf("First: %v, %v", v, err)
	}
	report := tables.Progress{}
	for range rows.Query().AllowTableScan().AllParallel(ctx, &tables.ParallelOptions[aged]{Unordered: true, Progress: func(r tables.Progress) { report = r }}) {
	}
	if report.Read != 20 || report.Failed != 4 {
		t.Errorf("report: %+v", report)
	}
}

// TestHalfASurrogatePair: it is read as U+FFFD, which is never written back in silence.
func TestHalfASurrogatePair(t *testing.T) {
	ctx := context.Background()
	table, rows := agedTable(t)
	key := tables.Key{Partition: "p", Row: "07"}
	v := assert.Must[*aged](t)(rows.Get(ctx, key))
	if v.Name != "Jones \uFFFD" || !v.Lossy {
		t.Fatalf("%+v", v)
	}
	if whole := assert.Must[*aged](t)(rows.Get(ctx, tables.Key{Partition: "p", Row: "08"})); whole.Lossy {
		t.Error("a whole row is lossy")
	}
	if e := assert.Must[*tables.Entity](t)(table.Entities().Query().Partition("p").Row("07").First(ctx)); !e.Lossy {
		t.Error("a bag of a query is not lossy")
	}
	bag := assert.Must[*tables.Entity](t)(table.Entities().Get(ctx, key))
	tx := table.NewTransaction()
	tx.Replace(bag)
	_, err := tx.Commit(ctx)
	for name, err := range map[string]error{
		"Replace": rows.Replace(ctx, v), "Merge": rows.Merge(ctx, v), "Upsert": rows.Upsert(ctx, v), "ReplaceUnconditional": rows.ReplaceUnconditional(ctx, v),
		"a bag": table.Entities().Replace(ctx, bag), "Transaction": err,
		"Insert": rows.Insert(ctx, &aged{Meta: v.Meta, PartitionKey: "p", RowKey: "new", Name: v.Name}),
	} {
		if err == nil || !errors.Is(err, tables.ErrInvalid) || !strings.Contains(err.Error(), "surrogate") {
			t.Errorf("%s: %v", name, err)
		}
	}
	v.Name, v.Lossy = "Jones", false
	assert.Check(t, rows.Replace(ctx, v))
	if again := assert.Must[*aged](t)(rows.Get(ctx, key)); again.Lossy || again.Name != "Jones" {
		t.Errorf("%+v", again)
	}
	lossy := assert.Must[*aged](t)(rows.Get(ctx, tables.Key{Partition: "q", Row: "07"}))
	assert.Check(t, rows.Delete(ctx, lossy))
}
