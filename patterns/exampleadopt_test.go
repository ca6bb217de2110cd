package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// LegacyOrder is an order as another program stores it, in a table with rows of other types.
type LegacyOrder struct {
	tables.Meta
	PartitionKey string // the customer
	RowKey       string // such as O-2024-000123
	Kind         string
	Email        string
	Shipped      *bool                   // older orders have no such property
	Rest         map[string]tables.Value `table:",rest"` // what else the program stores
}

// adoptOrders puts a repository over the table.
func adoptOrders(table *tables.Table) (*patterns.Repository[LegacyOrder], *intrapartition.Index[LegacyOrder, compoundkey.Folded], error) {
	byEmail := intrapartition.NewIndex("email", func(o *LegacyOrder) compoundkey.Folded { return compoundkey.Folded(o.Email) }, nil)
	orders, err := patterns.NewRepository(table, patterns.Schema[LegacyOrder]{
		Rows:  compoundkey.Range("O-", "O."),
		Mine:  func(k tables.Key) bool { return len(k.Row) == len("O-2024-000123") },
		Where: tables.Eq("Kind", "order"),
	}, byEmail)
	return orders, byEmail, err
}

// A table that another program has filled: rows that do not fit are told one by one, and Rebuild makes the index.
func ExampleSchema_adopted() {
	ctx := context.Background()
	table := adoptedTable("ExampleAdopted")
	for row, properties := range map[string]tables.Properties{
		"O-2024-000001": {{Name: "Kind", Value: tables.String("order")}, {Name: "Email", Value: tables.String("June@contoso.com")}, {Name: "Color", Value: tables.String("red")}},
		"O-2024-000002": {{Name: "Kind", Value: tables.String("order")}, {Name: "Email", Value: tables.Int32(5)}},
		"invoice-7":     {{Name: "Kind", Value: tables.String("invoice")}},
	} {
		if err := table.Entities().Insert(ctx, &tables.Entity{Key: tables.Key{Partition: "contoso", Row: row}, Properties: properties}); err != nil {
			log.Fatal(err)
		}
	}
	orders, byEmail, err := adoptOrders(table)
	if err != nil {
		log.Fatal(err)
	}
	for o, err := range orders.Query().Partition("contoso").All(ctx) {
		if e, ok := errors.AsType[*tables.Error](err); ok && e.OfRow {
			fmt.Println("does not fit:", e.Key.Row)
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		color, _ := o.Rest["Color"].Text()
		fmt.Println("fits:", o.RowKey, color)
	}
	report, err := orders.Rebuild(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Written, "written,", report.Failed, "failed")
	for o, err := range byEmail.In("contoso").All(ctx, "june@contoso.com") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("found:", o.RowKey)
	}
	// Output:
	// fits: O-2024-000001 red
	// does not fit: O-2024-000002
	// 1 written, 1 failed
	// found: O-2024-000001
}

// adoptedTable returns a new table on a new simulator in memory.
func adoptedTable(name string) *tables.Table {
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
