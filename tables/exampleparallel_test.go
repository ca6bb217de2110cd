package tables_test

import (
	"context"
	"fmt"
	"iter"
	"log"

	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// employeeRows yields n rows in ten partitions.
func employeeRows(n int) iter.Seq2[*tables.Entity, error] {
	return func(yield func(*tables.Entity, error) bool) {
		for i := range n {
			key := tables.Key{Partition: fmt.Sprintf("department_%d", i%10), Row: fmt.Sprintf("%06d", i)}
			if !yield(&tables.Entity{Key: key}, nil) {
				return
			}
		}
	}
}

// A scan of a table is read by several readers at once. After an error, a later run continues from its token.
func ExampleQuery_AllParallel() {
	ctx := context.Background()
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	employees := account.Table("Employees").Entities()
	if err := employees.Table().Create(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := employees.BulkNonAtomic(ctx, employeeRows(5000), nil); err != nil {
		log.Fatal(err)
	}

	token := "" // of the run before
	n := 0
	for _, err := range employees.Query().AllowTableScan().AllParallel(ctx, &tables.ParallelOptions[tables.Entity]{
		Unordered: true, Resume: token, Progress: func(r tables.Progress) { token = r.Resume },
	}) {
		if err != nil {
			fmt.Println(err) // continue from token
			return
		}
		n++
	}
	fmt.Println(n)
	// Output: 5000
}
