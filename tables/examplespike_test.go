package tables_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// An import leaves the throughput of the table to the program's users: RowsPerSecond spreads it over time, and Concurrency bounds the
// transactions in flight. If the service is busy all the same (503), the SDK repeats the request with growing pauses.
func ExampleRows_BulkNonAtomic_withoutSpike() {
	ctx := context.Background()
	service, err := storagetest.OpenShared()
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	table := account.Table("BulkWithoutSpike")
	if err := table.CreateIfMissing(ctx); err != nil {
		log.Fatal(err)
	}
	readings := func(yield func(*tables.Entity, error) bool) {
		for i := range 600 {
			if !yield(&tables.Entity{Key: tables.Key{Partition: fmt.Sprint("sensor ", i%3), Row: fmt.Sprintf("%06d", i)}}, nil) {
				return
			}
		}
	}
	began := time.Now()
	report, err := table.Entities().BulkNonAtomic(ctx, readings, &tables.BulkOptions{Verb: tables.BulkUpsert, RowsPerSecond: 1000, Concurrency: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Written, "written in more than 100 ms:", time.Since(began) > 100*time.Millisecond)
	// Output: 600 written in more than 100 ms: true
}
