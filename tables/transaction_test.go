package tables_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// reused makes n rows of a partition out of one and the same bag.
func reused(partition string, n int) func(yield func(*tables.Entity, error) bool) {
	return func(yield func(*tables.Entity, error) bool) {
		e := &tables.Entity{}
		for i := range n {
			e.Key = tables.Key{Partition: partition, Row: fmt.Sprint(i)}
			e.Set("N", tables.Int32(int32(i)))
			if !yield(e, nil) {
				return
			}
		}
	}
}

// TestBagsAreCopiedWhenTaken: a transaction or bulk write that is given one bag again and again stores what the bag
// held each time.
func TestBagsAreCopiedWhenTaken(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	x := table.NewTransaction()
	for e := range reused("transaction", 3) {
		x.Insert(e)
	}
	assert.Check(t, assert.Err(x.Commit(ctx)))
	for _, verb := range []tables.BulkVerb{tables.BulkInsert, tables.BulkUpsert} {
		assert.Check(t, assert.Err(table.Entities().BulkNonAtomic(ctx, reused(fmt.Sprint("bulk", verb), 250), &tables.BulkOptions{Verb: verb})))
	}
	n := 0
	for e, err := range table.Entities().Query().AllowTableScan().All(ctx) {
		assert.Check(t, err)
		if got, _ := e.Get("N").Int(); fmt.Sprint(got) != e.Key.Row {
			t.Errorf("%v holds %d", e.Key, got)
		}
		n++
	}
	assert.Equal(t, n, 503, "rows")
	codec := assert.Must[*tables.Codec[tables.Entity]](t)(tables.NewCodec[tables.Entity]())
	e := harness.Bag("p", "r", "a")
	taken := assert.Must[tables.Properties](t)(codec.Encode(e))
	back := &tables.Entity{}
	assert.Check(t, codec.Decode(taken, back))
	e.Set("Text", tables.String("b"))
	taken.Set("Text", tables.String("c"))
	if back.Get("Text") != tables.String("a") || e.Get("Text") != tables.String("b") {
		t.Errorf("%v, %v", back.Properties, e.Properties)
	}
}

// TestTransactionsRefuseProjections: in a transaction as elsewhere, what a projection left of a row does not replace it.
func TestTransactionsRefuseProjections(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	if err := table.Entities().Insert(ctx, harness.Row("p", "r", tables.Property{Name: "A", Value: tables.Int32(1)}, tables.Property{Name: "B", Value: tables.Int32(2)})); err != nil {
		t.Fatal(err)
	}
	part := assert.Must[*tables.Entity](t)(table.Entities().Query().Partition("p").Select("A").First(ctx))
	for name, add := range map[string]func(*tables.Transaction, *tables.Entity) int{
		"Replace": (*tables.Transaction).Replace, "ReplaceUnconditional": (*tables.Transaction).ReplaceUnconditional, "Upsert": (*tables.Transaction).Upsert,
	} {
		x := table.NewTransaction()
		add(x, part)
		if _, err := x.Commit(ctx); err == nil {
			t.Errorf("%s of a part is done", name)
		} else {
			harness.WantKind(t, err, tables.ErrInvalid)
		}
	}
	x := table.NewTransaction()
	x.UpsertMerge(part)
	assert.Check(t, assert.Err(x.Commit(ctx)))
	assert.Len(t, assert.Must[*tables.Entity](t)(table.Entities().Get(ctx, part.Key)).Properties, 2, "left of the row")
}
