package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Customer is stored by region and number.
type Customer struct {
	tables.Meta
	Region string
	Number int
	Email  string
}

// A program declares what it stores, creates what is missing, and closes the store at its end. An index over partitions needs no worker.
func ExampleStore() {
	ctx := context.Background()
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	store, err := patterns.Open("contoso", &patterns.StoreOptions{Account: account})
	if err != nil {
		log.Fatal(err)
	}
	byEmail := interpartition.NewUnique("email", func(c *Customer) compoundkey.Folded { return compoundkey.Folded(c.Email) }, nil)
	customers, err := patterns.NewRepository(store.Table("Customers"), patterns.Schema[Customer]{
		Key: func(c *Customer) tables.Key {
			return tables.Key{Partition: c.Region, Row: compoundkey.Join("customer", compoundkey.Int(c.Number, 6))}
		},
		Prefix: "customer",
	}, byEmail)
	if err != nil {
		log.Fatal(err)
	}
	stop, err := store.Start(ctx) // the table
	if err != nil {
		log.Fatal(err)
	}

	if err := customers.Insert(ctx, &Customer{Region: "West", Number: 7, Email: "June@contoso.com"}); err != nil {
		log.Fatal(err)
	}
	found, err := byEmail.Get(ctx, "june@contoso.com")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Region, found.Number)
	err = customers.Insert(ctx, &Customer{Region: "East", Number: 8, Email: "june@contoso.com"})
	fmt.Println("taken:", errors.Is(err, tables.ErrDuplicate))

	if err := stop(); err != nil { // after the copies are settled
		log.Fatal(err)
	}
	// Output:
	// West 7
	// taken: true
}
