package composition

import (
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// remark is an entity of another repository in the partition of items. It has a copy and a list elsewhere.
type remark struct {
	tables.Meta
	Partition, Text string
}

// twoRepositories inserts, replaces and deletes an item and a remark in transactions with both.
func twoRepositories(t testing.TB, k *kit, p part) error {
	ctx := t.Context()
	items := assert.Must[*patterns.Repository[item]](t)(k.plain(k.makeParts(t, p)))
	text := func(v *remark) string { return v.Text }
	remarks := assert.Must[*patterns.Repository[remark]](t)(patterns.NewRepository(harness.In(k.table, k.queue), patterns.Schema[remark]{Name: "remarks", Prefix: "remark",
		Key: func(v *remark) tables.Key { return tables.Key{Partition: v.Partition, Row: "remark_1"} }},
		interpartition.NewUnique("remarktext", text, nil),
		indexentities.NewInTable("remarklist", text, nil, &indexentities.Options[remark]{ByPartition: true})))
	a := k.itemOf(1, "a", false)
	assert.Check(t, k.prepareFor(t, items, a))
	v := &remark{Partition: items.KeyOf(a).Partition, Text: "first"}
	for i, stage := range []func(x *tables.Transaction){
		func(x *tables.Transaction) { items.StageInsert(x, a); remarks.StageInsert(x, v) },
		func(x *tables.Transaction) { items.StageReplace(x, a); remarks.StageReplace(x, v) },
		func(x *tables.Transaction) { items.StageDelete(x, a); remarks.StageDelete(x, v) },
	} {
		x := k.table.NewTransaction()
		stage(x)
		if err := errors.Join(second(x.Commit(ctx)), clean(ctx, items), clean(ctx, remarks)); err != nil {
			return err
		}
		if i < 2 {
			got, err := items.Get(ctx, items.KeyOf(a))
			if err := errors.Join(err, sameItem(got, a)); err != nil {
				return err
			}
		}
		v.Text = "second"
	}
	for _, err := range []error{second(items.Get(ctx, items.KeyOf(a))), second(remarks.Get(ctx, remarks.KeyOf(v)))} {
		if !errors.Is(err, tables.ErrNotFound) {
			return err
		}
	}
	return nil
}
