package relationships_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Position is a line of an order, in the partition of the customer.
type Position struct {
	tables.Meta
	Customer, Order string
	Number          int
	Cents           int64
}

// A row for each order has what its lines amount to. The transaction that writes a line writes that row, too.
func ExampleSummary() {
	ctx := context.Background()
	total := relationships.NewSummary("total", func(p *Position) (int64, bool) { return p.Cents, true }, &relationships.SummaryOptions[Position]{
		Group: func(p *Position) string { return p.Order },
		Rows:  func(order string) compoundkey.Span { return compoundkey.Starting("line", compoundkey.String(order)) },
	})
	positions, err := patterns.NewRepository(summaryTable("ExampleSummary"), patterns.Schema[Position]{
		Key: func(p *Position) tables.Key {
			return tables.Key{Partition: p.Customer, Row: compoundkey.Join("line", compoundkey.String(p.Order), compoundkey.Int(p.Number, 3))}
		},
		Prefix: "line",
	}, total)
	if err != nil {
		log.Fatal(err)
	}
	order := positions.Table().NewTransaction()
	positions.StageInsert(order, &Position{Customer: "contoso", Order: "1", Number: 1, Cents: 1950})
	positions.StageInsert(order, &Position{Customer: "contoso", Order: "1", Number: 2, Cents: 400})
	positions.StageInsert(order, &Position{Customer: "contoso", Order: "2", Number: 1, Cents: 75})
	if _, err := order.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	for t, err := range total.All(ctx, "contoso") { // 1 request
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("order %s: %d lines, %d cents, the dearest %d\n", t.Group, t.Count, t.Sum, t.Max)
	}
	// Output:
	// order 1: 2 lines, 2350 cents, the dearest 1950
	// order 2: 1 lines, 75 cents, the dearest 75
}

// summaryTable returns a new table on a new simulator in memory.
func summaryTable(name string) *tables.Table {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	table := account.Table(name)
	if err := table.Create(context.Background()); err != nil {
		log.Fatal(err)
	}
	return table
}
