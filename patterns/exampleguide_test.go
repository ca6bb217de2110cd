package patterns_test

import (
	"context"
	"fmt"
	"log"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// EmployeeRow is a row as it is: its keys are fields.
type EmployeeRow struct {
	patterns.Meta
	PartitionKey, RowKey string
	Email                string
	Age                  int32
}

// rowsOf creates a table with rows of these row keys in each of the partitions.
func rowsOf(ctx context.Context, table string, rows []string, partitions ...string) *patterns.TypedTable[EmployeeRow] {
	employees, err := patterns.Typed[EmployeeRow](exampleTable(table))
	if err != nil {
		log.Fatal(err)
	}
	for _, partition := range partitions {
		for _, row := range rows {
			if err := employees.Insert(ctx, &EmployeeRow{PartitionKey: partition, RowKey: row, Email: row + "@contoso.com", Age: 30}); err != nil {
				log.Fatal(err)
			}
		}
	}
	return employees
}

// A point query is the cheapest of all.
func ExampleTypedTable_Get() {
	ctx := context.Background()
	employees := rowsOf(ctx, "ExamplePoint", []string{"212"}, "Sales")
	e, err := employees.Get(ctx, patterns.Key{Partition: "Sales", Row: "212"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.RowKey, e.Email)
	// Output:
	// 212 212@contoso.com
}

// All whose last name, the row key, begins with B.
func ExampleQuery_Rows() {
	ctx := context.Background()
	employees := rowsOf(ctx, "ExampleRange", []string{"Adams", "Baker", "Brown", "Clark"}, "Sales")
	for e, err := range employees.Query().Partition("Sales").Rows(compoundkey.Range("B", "C")).All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.RowKey)
	}
	// Output:
	// Baker
	// Brown
}

// A projection transfers only what is asked for, and the keys.
func ExampleQuery_Select() {
	ctx := context.Background()
	employees := rowsOf(ctx, "ExampleProjection", []string{"212"}, "Sales")
	for e, err := range employees.Query().Partition("Sales").Select("Email").All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("RowKey: %s, EmployeeEmail: %s, Age: %d\n", e.RowKey, e.Email, e.Age)
	}
	// Output:
	// RowKey: 212, EmployeeEmail: 212@contoso.com, Age: 0
}

// Merge keeps what it is not given, Replace removes it.
func ExampleTypedTable_Merge() {
	ctx := context.Background()
	table := rowsOf(ctx, "ExampleMerge", []string{"212"}, "Sales").Table()
	entities := table.Entities()
	stored, err := entities.Get(ctx, patterns.Key{Partition: "Sales", Row: "212"})
	if err != nil {
		log.Fatal(err)
	}
	change := stored.Clone() // it has the ETag
	change.Properties = nil
	change.Set("Age", patterns.Int32(31))
	show := func(what string, err error) {
		if err != nil {
			log.Fatal(err)
		}
		e, err := entities.Get(ctx, change.Key)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(what, e.Properties.Has("Email"), e.Properties.Has("Age"))
	}
	show("merged:", entities.Merge(ctx, change))
	show("replaced:", entities.Replace(ctx, change))
	// Output:
	// merged: true true
	// replaced: false true
}

// Several partitions are queried at the same time, and come in order.
func ExampleQuery_AllPartitions() {
	ctx := context.Background()
	employees := rowsOf(ctx, "ExampleParallel", []string{"1", "2"}, "Sales", "Marketing", "Engineering")
	options := &patterns.ParallelOptions[EmployeeRow]{Concurrency: 3}
	for e, err := range employees.Query().AllPartitions(ctx, []string{"Sales", "Marketing", "Engineering"}, options) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.PartitionKey, e.RowKey)
	}
	// Output:
	// Engineering 1
	// Engineering 2
	// Marketing 1
	// Marketing 2
	// Sales 1
	// Sales 2
}

// Every operation waits for its answer; goroutines wait for several at the same time. The limit bounds what is under way.
func ExampleTypedTable_Upsert() {
	ctx := context.Background()
	employees := rowsOf(ctx, "ExampleAsync", nil)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for id := range 10 {
		group.Go(func() error {
			return employees.Upsert(ctx, &EmployeeRow{PartitionKey: fmt.Sprint("Department ", id%3), RowKey: fmt.Sprint(id)})
		})
	}
	if err := group.Wait(); err != nil {
		log.Fatal(err)
	}
	n := 0
	for _, err := range employees.Query().AllowTableScan().All(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		n++
	}
	fmt.Println(n)
	// Output:
	// 10
}
