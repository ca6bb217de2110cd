package largeentities_test

import (
	"context"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// following stages a companion only when the transaction is planned again, which a conflict on the pattern's row causes.
type following struct {
	plans int
	stage func(ctx context.Context, x *tables.Transaction)
}

// order is an entity without large values.
type order struct {
	tables.Meta
	PartitionKey, RowKey string
}

func (f *following) Attach(driver.Host, *order) (driver.Implementation, error) {
	return driver.Implementation{Name: "following", Rows: func(context.Context, []*driver.Change) ([]driver.RowOperation, error) {
		row := &tables.Entity{Key: tables.Key{Row: "shared"}}
		if f.plans == 1 {
			row.ETag = azcore.ETag(`W/"datetime'2026-01-01T00%3A00%3A00.0000000Z'"`)
			return []driver.RowOperation{{Verb: driver.ReplaceRow, Row: row}}, nil
		}
		return []driver.RowOperation{{Verb: driver.InsertRow, Row: row}}, nil
	}, Companions: func(ctx context.Context, _ *driver.Change, x *tables.Transaction) error {
		if f.plans++; f.plans > 1 {
			f.stage(ctx, x)
		}
		return nil
	}}, nil
}

// TestCompanionOfALaterPlan: an entity with a blob is in the transaction only because it was planned again. Its blob has a deadline all the same.
func TestCompanionOfALaterPlan(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Photo = large("a")
	f := &following{stage: func(ctx context.Context, x *tables.Transaction) {
		patterns.HostOf(p.repo).Stage(ctx, driver.ChangeInsert, x, e)
	}}
	orders := assert.Must[*patterns.Repository[order]](t)(patterns.NewRepository(p.repo.Table(),
		patterns.Schema[order]{Name: "orders", Prefix: "order"}, f))
	assert.Check(t, orders.Insert(ctx, &order{PartitionKey: e.Department, RowKey: "order_1"}))
	assert.Equal(t, f.plans, 3, "plans")
	found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s))
	assert.Equal(t, found[at(1)], "first photo=a74 cv= video=", "the companion")
}
