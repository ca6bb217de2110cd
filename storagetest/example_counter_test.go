package storagetest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// What an operation costs in money: its requests, as counted, by a price list. The prices are the caller's, for 10,000
// requests of a kind, in cents; look up those of your region and account.
func ExampleRequestCounter() {
	ctx := context.Background()
	prices := map[storagetest.Kind]float64{storagetest.InsertEntity: 0.036, storagetest.GetEntity: 0.036}

	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	var counter storagetest.RequestCounter
	counted, _ := service.Faulty(&counter) // which injects nothing
	account, err := tables.NewAccountFromConnectionString(counted.ConnectionString, &tables.AccountOptions{ClientOptions: counted.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	table := account.Table("Employees")
	if err := table.Create(ctx); err != nil {
		log.Fatal(err)
	}
	counter.Reset()

	june := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: "empid_000223"}}
	if err := table.Entities().Insert(ctx, june); err != nil {
		log.Fatal(err)
	}
	for range 9 {
		if _, err := table.Entities().Get(ctx, june.Key); err != nil {
			log.Fatal(err)
		}
	}
	cents := 0.0
	for kind, n := range counter.Kinds() {
		cents += float64(n) * prices[kind] / 10_000
	}
	fmt.Printf("%d requests, %.2f cents for a million of these\n", counter.Count(), cents*1_000_000)
	fmt.Println(&counter)
	// Output:
	// 10 requests, 36.00 cents for a million of these
	// 10 requests: table GetEntity 9, table InsertEntity 1
}
