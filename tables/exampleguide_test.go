package tables_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// EmployeeRow is a row as it is: its keys are fields.
type EmployeeRow struct {
	tables.Meta
	PartitionKey, RowKey string
	Email                string
	Age                  int32
}

// rowsOf creates a table with rows of these row keys in each of the partitions.
func rowsOf(ctx context.Context, table string, rows []string, partitions ...string) *tables.Rows[EmployeeRow] {
	employees, err := tables.RowsOf[EmployeeRow](guideTable(table))
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
func ExampleRows_Get() {
	ctx := context.Background()
	employees := rowsOf(ctx, "ExamplePoint", []string{"212"}, "Sales")
	e, err := employees.Get(ctx, tables.Key{Partition: "Sales", Row: "212"})
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
func ExampleRows_Merge() {
	ctx := context.Background()
	table := rowsOf(ctx, "ExampleMerge", []string{"212"}, "Sales").Table()
	entities := table.Entities()
	stored, err := entities.Get(ctx, tables.Key{Partition: "Sales", Row: "212"})
	if err != nil {
		log.Fatal(err)
	}
	change := stored.Clone() // it has the ETag
	change.Properties = nil
	change.Set("Age", tables.Int32(31))
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
	options := &tables.ParallelOptions[EmployeeRow]{Concurrency: 3}
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
func ExampleRows_Upsert() {
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

// A table has no schema: each entity has the properties that it has. Names and types are those of the entity, not of the
// table.
func ExampleTable() {
	ctx := context.Background()
	table := guideTable("ExampleTable") // made with table.Create
	june := &tables.Entity{Key: tables.Key{Partition: "Marketing", Row: "00001"}}
	june.Set("Email", tables.String("june@contoso.com"))
	june.Set("Age", tables.Int32(47))
	department := &tables.Entity{Key: tables.Key{Partition: "Marketing", Row: "Department"}}
	department.Set("DepartmentName", tables.String("Marketing"))
	department.Set("Age", tables.String("since 1998")) // a string here, a number there
	if err := errors.Join(table.Entities().Insert(ctx, june), table.Entities().Insert(ctx, department)); err != nil {
		log.Fatal(err)
	}
	for e, err := range table.Entities().Query().Partition("Marketing").All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Key.Row, len(e.Properties), e.Properties.Has("Email"))
	}
	if err := table.Drop(ctx); err != nil { // and everything in it, in one request
		log.Fatal(err)
	}
	// Output:
	// 00001 2 true
	// Department 2 false
}

// Insert wants nothing under the key; Replace, Merge and Delete want what was read, and with Unconditional in the name what is
// there; Upsert takes both.
func ExampleRows() {
	ctx := context.Background()
	employees := rowsOf(ctx, "ExampleModify", nil)
	june := &EmployeeRow{PartitionKey: "Marketing", RowKey: "00001", Email: "june@contoso.com", Age: 47}
	fmt.Println(employees.Insert(ctx, june))
	fmt.Println(errors.Is(employees.Insert(ctx, june), tables.ErrExists))
	june.Age++
	fmt.Println(employees.Replace(ctx, june))
	fmt.Println(employees.Delete(ctx, june))
	fmt.Println(errors.Is(employees.ReplaceUnconditional(ctx, june), tables.ErrNotFound))
	fmt.Println(employees.Upsert(ctx, june)) // inserts it again
	// Output:
	// <nil>
	// true
	// <nil>
	// <nil>
	// true
	// <nil>
}

// Two read an entity and both change it. The second write is refused, unless its name says that it overwrites.
func ExampleRows_Replace() {
	ctx := context.Background()
	employees := rowsOf(ctx, "ExampleConcurrency", []string{"212"}, "Sales")
	read := func() *EmployeeRow {
		e, err := employees.Get(ctx, tables.Key{Partition: "Sales", Row: "212"})
		if err != nil {
			log.Fatal(err)
		}
		return e
	}
	mine, yours := read(), read()
	mine.Age = 31
	fmt.Println(employees.Replace(ctx, mine))
	yours.Age = 32
	fmt.Println(errors.Is(employees.Replace(ctx, yours), tables.ErrConflict))
	fmt.Println(employees.ReplaceUnconditional(ctx, yours))
	fmt.Println(read().Age)
	// Output:
	// <nil>
	// true
	// <nil>
	// 32
}

// guideTable returns a new table on a new simulator in memory.
func guideTable(name string) *tables.Table {
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
