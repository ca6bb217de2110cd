package relationships_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Order and Line are in the partition of their tenant.
type Order struct {
	tables.Meta
	Tenant, ID, Reference string
	Lines                 int
}

type Line struct {
	tables.Meta
	Tenant, Order, Product string
	Number                 int
}

func orderKey(tenant, id string) tables.Key {
	return tables.Key{Partition: tenant, Row: compoundkey.Join("order", compoundkey.String(id))}
}

// shop is a store with orders, which are found by a reference that is unique among all tenants, and their lines.
type shop struct {
	store       *patterns.Store
	orders      *patterns.Repository[Order]
	lines       *patterns.Repository[Line]
	byReference *interpartition.Unique[Order, string]
}

func openShop(account *tables.Account) (*shop, error) {
	store, err := patterns.Open("shop", &patterns.StoreOptions{Account: account})
	if err != nil {
		return nil, err
	}
	s := &shop{store: store, byReference: interpartition.NewUnique("reference", func(o *Order) string { return o.Reference }, nil)}
	if s.orders, err = patterns.NewRepository(store.Table("Orders"), patterns.Schema[Order]{
		Name: "orders", Prefix: "order", Key: func(o *Order) tables.Key { return orderKey(o.Tenant, o.ID) },
	}, s.byReference); err != nil {
		return nil, err
	}
	count := relationships.NewParentCount("lines", s.orders, func(l *Line) (tables.Key, bool) { return orderKey(l.Tenant, l.Order), true },
		func(o *Order) *int { return &o.Lines })
	s.lines, err = patterns.NewRepository(store.Table("Orders"), patterns.Schema[Line]{Name: "lines", Prefix: "line", Key: func(l *Line) tables.Key {
		return tables.Key{Partition: l.Tenant, Row: compoundkey.Join("line", compoundkey.String(l.Order), compoundkey.Int(l.Number, 4))}
	}}, count)
	return s, err
}

// place inserts an order with its lines, or nothing.
func (s *shop) place(ctx context.Context, o *Order, products ...string) error {
	x := s.orders.Table().NewTransaction()
	s.orders.StageInsert(x, o)
	for i, product := range products {
		s.lines.StageInsert(x, &Line{Tenant: o.Tenant, Order: o.ID, Number: i + 1, Product: product})
	}
	_, err := x.Commit(ctx)
	return err
}

// An order is inserted with its lines in one transaction. The order has a unique key outside of the partition, and counts its lines.
func ExampleParentCount() {
	ctx := context.Background()
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	s, err := openShop(account)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	if err := s.place(ctx, &Order{Tenant: "contoso", ID: "1", Reference: "A-17"}, "bolt", "nut"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.place(ctx, &Order{Tenant: "contoso", ID: "2", Reference: "A-17"}, "screw") != nil) // the reference is taken
	found, err := s.byReference.Get(ctx, "A-17")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.ID, found.Lines)
	// Output:
	// true
	// 1 2
}
