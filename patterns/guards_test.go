package patterns_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// TestNothingInPlaceOfSomething: nil and zero values are ErrInvalid, before any request and without a panic.
func TestNothingInPlaceOfSomething(t *testing.T) {
	ctx := context.Background()
	a := inProcess(t, func(*http.Request) (*http.Response, error) {
		t.Error("a request is sent")
		return nil, context.Canceled
	})
	table := a.Table("Contoso")
	refused := func(name string, do func() error) {
		t.Run(name, func(t *testing.T) { wantKind(t, do(), patterns.ErrInvalid) })
	}
	refused("Typed", func() error { _, err := patterns.Typed[note](nil); return err })

	var zero patterns.Query[note]
	refused("Plan", func() error { _, err := zero.Plan(); return err })
	refused("Page", func() error { _, err := zero.Partition("p").SelectFields().Page(ctx, ""); return err })
	refused("First", func() error { _, err := zero.Rows(compoundkey.All()).First(ctx); return err })
	refused("AllPartitions", func() (err error) {
		for _, err = range zero.AllPartitions(ctx, []string{"p"}, nil) {
		}
		return err
	})

	for name, verb := range map[string]func(*patterns.TypedTable[patterns.Entity], context.Context, *patterns.Entity) error{
		"Insert": (*patterns.TypedTable[patterns.Entity]).Insert, "Replace": (*patterns.TypedTable[patterns.Entity]).Replace,
		"ReplaceUnconditional": (*patterns.TypedTable[patterns.Entity]).ReplaceUnconditional, "Merge": (*patterns.TypedTable[patterns.Entity]).Merge,
		"MergeUnconditional": (*patterns.TypedTable[patterns.Entity]).MergeUnconditional, "Upsert": (*patterns.TypedTable[patterns.Entity]).Upsert,
		"UpsertMerge": (*patterns.TypedTable[patterns.Entity]).UpsertMerge, "Delete": (*patterns.TypedTable[patterns.Entity]).Delete,
	} {
		refused("bag "+name, func() error { return verb(table.Entities(), ctx, nil) })
	}
	notes := must[*patterns.TypedTable[note]](t)(patterns.Typed[note](table))
	for name, verb := range map[string]func(*patterns.TypedTable[note], context.Context, *note) error{
		"Insert": (*patterns.TypedTable[note]).Insert, "Replace": (*patterns.TypedTable[note]).Replace, "Upsert": (*patterns.TypedTable[note]).Upsert,
		"Delete": (*patterns.TypedTable[note]).Delete,
	} {
		refused("struct "+name, func() error { return verb(notes, ctx, nil) })
	}
	refused("Entity", func() error { _, err := notes.Entity(nil); return err })
	refused("bulk", func() error {
		_, err := notes.BulkNonAtomic(ctx, func(yield func(*note, error) bool) { yield(nil, nil) }, nil)
		return err
	})
	refused("bulk of a repository", func() error {
		_, err := noteRepository(t, table).BulkInsertNonAtomic(ctx, func(yield func(*note, error) bool) { yield(nil, nil) }, nil)
		return err
	})

	codec := must[*patterns.Codec[note]](t)(patterns.NewCodec[note]())
	refused("Encode", func() error { _, err := codec.Encode(nil); return err })
	refused("Decode", func() error { return codec.Decode(nil, nil) })

	for name, add := range map[string]func(*patterns.Transaction, *patterns.Entity) int{
		"Insert": (*patterns.Transaction).Insert, "Replace": (*patterns.Transaction).Replace, "ReplaceUnconditional": (*patterns.Transaction).ReplaceUnconditional,
		"Merge": (*patterns.Transaction).Merge, "MergeUnconditional": (*patterns.Transaction).MergeUnconditional, "Upsert": (*patterns.Transaction).Upsert,
		"UpsertMerge": (*patterns.Transaction).UpsertMerge, "Delete": (*patterns.Transaction).Delete,
	} {
		refused("transaction "+name, func() error {
			x := table.NewTransaction()
			add(x, nil)
			_, err := x.Commit(ctx)
			return err
		})
		refused("zero transaction "+name, func() error {
			var x patterns.Transaction
			add(&x, bag("p", "r", ""))
			_, err := x.Commit(ctx)
			return err
		})
	}
}
