package patterns_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// reused makes n rows of a partition out of one and the same bag.
func reused(partition string, n int) func(yield func(*patterns.Entity, error) bool) {
	return func(yield func(*patterns.Entity, error) bool) {
		e := &patterns.Entity{}
		for i := range n {
			e.Key = patterns.Key{Partition: partition, Row: fmt.Sprint(i)}
			e.Set("N", patterns.Int32(int32(i)))
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
	table := newTable(t, account(t))
	x := table.NewTransaction()
	for e := range reused("transaction", 3) {
		x.Insert(e)
	}
	if _, err := x.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []patterns.BulkVerb{patterns.BulkInsert, patterns.BulkUpsert} {
		if _, err := table.Entities().BulkNonAtomic(ctx, reused(fmt.Sprint("bulk", verb), 250), &patterns.BulkOptions{Verb: verb}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for e, err := range table.Entities().Query().AllowTableScan().All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := e.Get("N").Int(); fmt.Sprint(got) != e.Key.Row {
			t.Errorf("%v holds %d", e.Key, got)
		}
		n++
	}
	if n != 503 {
		t.Errorf("%d rows", n)
	}
	codec := must[*patterns.Codec[patterns.Entity]](t)(patterns.NewCodec[patterns.Entity]())
	e := bag("p", "r", "a")
	taken := must[patterns.Properties](t)(codec.Encode(e))
	back := &patterns.Entity{}
	if err := codec.Decode(taken, back); err != nil {
		t.Fatal(err)
	}
	e.Set("Text", patterns.String("b"))
	taken.Set("Text", patterns.String("c"))
	if back.Get("Text") != patterns.String("a") || e.Get("Text") != patterns.String("b") {
		t.Errorf("%v, %v", back.Properties, e.Properties)
	}
}

// TestTransactionsRefuseProjections: in a transaction as elsewhere, what a projection left of a row does not replace it.
func TestTransactionsRefuseProjections(t *testing.T) {
	ctx := context.Background()
	table := newTable(t, account(t))
	if err := table.Entities().Insert(ctx, entity("p", "r", patterns.Property{Name: "A", Value: patterns.Int32(1)}, patterns.Property{Name: "B", Value: patterns.Int32(2)})); err != nil {
		t.Fatal(err)
	}
	part := must[*patterns.Entity](t)(table.Entities().Query().Partition("p").Select("A").First(ctx))
	for name, add := range map[string]func(*patterns.Transaction, *patterns.Entity) int{
		"Replace": (*patterns.Transaction).Replace, "ReplaceUnconditional": (*patterns.Transaction).ReplaceUnconditional, "Upsert": (*patterns.Transaction).Upsert,
	} {
		x := table.NewTransaction()
		add(x, part)
		if _, err := x.Commit(ctx); err == nil {
			t.Errorf("%s of a part is done", name)
		} else {
			wantKind(t, err, patterns.ErrInvalid)
		}
	}
	x := table.NewTransaction()
	x.UpsertMerge(part)
	if _, err := x.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if e := must[*patterns.Entity](t)(table.Entities().Get(ctx, part.Key)); len(e.Properties) != 2 {
		t.Errorf("left of the row: %v", e.Properties)
	}
}
