package patterns_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestNothingInPlaceOfSomething: nil entities are ErrInvalid, other nil and zero values ErrWiring, before any request and without a panic.
func TestNothingInPlaceOfSomething(t *testing.T) {
	ctx := context.Background()
	a := harness.InProcess(t, func(*http.Request) (*http.Response, error) {
		t.Error("a request is sent")
		return nil, context.Canceled
	})
	table := a.Table("Contoso")
	refused := func(name string, do func() error) {
		t.Run(name, func(t *testing.T) {
			err, kind := do(), tables.ErrWiring
			if text := fmt.Sprint(err); strings.HasSuffix(text, "is nil; give a pointer to a value") || strings.HasSuffix(text, "is nil; leave it out") {
				kind = tables.ErrInvalid // an entity is input
			}
			harness.WantKind(t, err, kind)
		})
	}
	refused("Typed", func() error { _, err := tables.RowsOf[note](nil); return err })

	var zero tables.Query[note]
	refused("Plan", func() error { _, err := zero.Plan(); return err })
	refused("Page", func() error { _, err := zero.Partition("p").Select("A").Page(ctx, ""); return err })
	refused("First", func() error { _, err := zero.Rows(compoundkey.All()).First(ctx); return err })
	refused("AllPartitions", func() (err error) {
		for _, err = range zero.AllPartitions(ctx, []string{"p"}, nil) {
		}
		return err
	})

	bags := table.Entities()
	for name, verb := range map[string]func(context.Context, *tables.Entity) error{
		"Insert": bags.Insert, "Replace": bags.Replace, "ReplaceUnconditional": bags.ReplaceUnconditional, "Upsert": bags.Upsert, "Delete": bags.Delete,
	} {
		refused("bag "+name, func() error { return verb(ctx, nil) })
	}
	for name, merge := range map[string]func(context.Context, *tables.Entity, ...string) error{
		"Merge": bags.Merge, "MergeUnconditional": bags.MergeUnconditional, "UpsertMerge": bags.UpsertMerge,
	} {
		refused("bag "+name, func() error { return merge(ctx, nil) })
	}
	notes := assert.Must[*tables.Rows[note]](t)(tables.RowsOf[note](table))
	for name, verb := range map[string]func(*tables.Rows[note], context.Context, *note) error{
		"Insert": (*tables.Rows[note]).Insert, "Replace": (*tables.Rows[note]).Replace, "Upsert": (*tables.Rows[note]).Upsert,
		"Delete": (*tables.Rows[note]).Delete,
	} {
		refused("struct "+name, func() error { return verb(notes, ctx, nil) })
	}
	refused("Entity", func() error { _, err := notes.Entity(nil); return err })
	refused("bulk", func() error {
		_, err := notes.BulkNonAtomic(ctx, func(yield func(*note, error) bool) { yield(nil, nil) }, nil)
		return err
	})
	refused("bulk of a repository", func() error {
		_, err := noteRepository(t, table).BulkNonAtomic(ctx, func(yield func(*note, error) bool) { yield(nil, nil) }, nil)
		return err
	})

	codec := assert.Must[*tables.Codec[note]](t)(tables.NewCodec[note]())
	refused("Encode", func() error { _, err := codec.Encode(nil); return err })
	refused("Decode", func() error { return codec.Decode(nil, nil) })

	for name, add := range map[string]func(*tables.Transaction, *tables.Entity) int{
		"Insert": (*tables.Transaction).Insert, "Replace": (*tables.Transaction).Replace, "ReplaceUnconditional": (*tables.Transaction).ReplaceUnconditional,
		"Merge": (*tables.Transaction).Merge, "MergeUnconditional": (*tables.Transaction).MergeUnconditional, "Upsert": (*tables.Transaction).Upsert,
		"UpsertMerge": (*tables.Transaction).UpsertMerge, "Delete": (*tables.Transaction).Delete,
	} {
		refused("transaction "+name, func() error {
			x := table.NewTransaction()
			add(x, nil)
			_, err := x.Commit(ctx)
			return err
		})
		refused("zero transaction "+name, func() error {
			var x tables.Transaction
			add(&x, harness.Bag("p", "r", ""))
			_, err := x.Commit(ctx)
			return err
		})
	}
}
