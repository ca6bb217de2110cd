package archive_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Order counts its lines, which are in its partition.
type Order struct {
	tables.Meta
	Customer, ID string
	Lines        int
}

type Line struct {
	tables.Meta
	Customer, Order, Product string
}

func keyOfOrder(customer, id string) tables.Key {
	return tables.Key{Partition: customer, Row: compoundkey.Join("order", compoundkey.String(id))}
}

// openOrders makes the repositories of a table with orders and their lines. patterns returns those of the lines.
func openOrders(table *tables.Table, attached func(orders *patterns.Repository[Order]) []patterns.Pattern[Line]) (*patterns.Repository[Order], *patterns.Repository[Line]) {
	orders, err := patterns.NewRepository(table, patterns.Schema[Order]{Name: table.Name() + "-orders", Prefix: "order",
		Key: func(o *Order) tables.Key { return keyOfOrder(o.Customer, o.ID) }})
	if err != nil {
		log.Fatal(err)
	}
	lines, err := patterns.NewRepository(table, patterns.Schema[Line]{Name: table.Name() + "-lines", Prefix: "line", Key: func(l *Line) tables.Key {
		return tables.Key{Partition: l.Customer, Row: compoundkey.Join("line", compoundkey.String(l.Order), compoundkey.String(l.Product))}
	}}, attached(orders)...)
	if err != nil {
		log.Fatal(err)
	}
	return orders, lines
}

// An order is archived with its lines: one transaction inserts all of them in the archive, and one deletes them.
func ExampleAlong() {
	ctx := context.Background()
	store, err := patterns.Open("order-archive", &patterns.StoreOptions{Account: orderAccount()})
	if err != nil {
		log.Fatal(err)
	}
	orders, lines := openOrders(store.Table("Orders"), func(orders *patterns.Repository[Order]) []patterns.Pattern[Line] {
		// A new line changes its order, so none can stay behind.
		return []patterns.Pattern[Line]{relationships.NewParentCount("lines", orders,
			func(l *Line) (tables.Key, bool) { return keyOfOrder(l.Customer, l.Order), true }, func(o *Order) *int { return &o.Lines })}
	})
	oldOrders, oldLines := openOrders(store.Table("OldOrders"), func(*patterns.Repository[Order]) []patterns.Pattern[Line] { return nil })
	ofOrder := func(lines tables.Query[Line], o *Order) tables.Query[Line] {
		return lines.Partition(o.Customer).Rows(compoundkey.Starting("line", compoundkey.String(o.ID)))
	}
	mover, err := archive.New(eventual.Intents(store), "archive-orders", orders,
		archive.ToRepository(oldOrders, nil, archive.Along(lines, ofOrder, oldLines, nil)), nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}

	order := &Order{Customer: "contoso", ID: "1"}
	transaction := orders.Table().NewTransaction()
	orders.StageInsert(transaction, order)
	for _, product := range []string{"bolt", "nut"} {
		lines.StageInsert(transaction, &Line{Customer: "contoso", Order: "1", Product: product})
	}
	if _, err := transaction.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	if err := mover.Move(ctx, order); err != nil {
		log.Fatal(err)
	}
	worker, err := eventual.NewWorker(eventual.Intents(store), nil, nil) // a service calls Store.Start
	if err != nil {
		log.Fatal(err)
	}
	if _, err := worker.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	archived, err := oldOrders.Get(ctx, order.Key())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("archived with", archived.Lines, "lines")
	for l, err := range ofOrder(oldLines.Query(), archived).All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(l.Product)
	}
	// Output:
	// archived with 2 lines
	// bolt
	// nut
}

// orderAccount returns an account on a new simulator in memory. A program calls tables.NewAccount or tables.NewAccountFromEnv.
func orderAccount() *tables.Account {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	return account
}
