// Step 3 of the tutorial: an index in the partition, which lists employees by name and is never stale.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Employee is the entity: each exported field is a property of its row.
type Employee struct {
	tables.Meta
	Department string
	ID         int
	LastName   string
	Email      string
}

// keyOf returns where an employee is stored: in the partition of the department, under the id in six digits.
func keyOf(department string, id int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("empid", compoundkey.Int(id, 6))}
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	store, err := patterns.Open("contoso", nil)
	if err != nil {
		return err
	}
	byName := intrapartition.NewIndex("name", func(e *Employee) compoundkey.Folded { return compoundkey.Folded(e.LastName) }, nil)
	employees, err := patterns.NewRepository(store.Table("Employees"), patterns.Schema[Employee]{
		Key:    func(e *Employee) tables.Key { return keyOf(e.Department, e.ID) },
		Prefix: "empid",
	}, byName)
	if err != nil {
		return err
	}
	if err := store.Create(ctx); err != nil {
		return err
	}
	if _, err := store.Rebuild(ctx, nil); err != nil { // step 2 stored employees without the index
		return err
	}
	fmt.Println("Sales by name:")
	for e, err := range byName.In("Sales").Range(ctx) {
		if err != nil {
			return err
		}
		fmt.Println(" ", e.LastName, e.ID)
	}

	if _, err := employees.Update(ctx, keyOf("Sales", 223), func(e *Employee) error {
		e.LastName = "Zimmer"
		return nil
	}); err != nil {
		return err
	}
	fmt.Println("rows of Sales after the change:")
	return printRows(ctx, employees.Table())
}

// printRows prints the rows of the partition Sales as they are stored.
func printRows(ctx context.Context, table *tables.Table) error {
	for row, err := range table.Entities().Query().Partition("Sales").All(ctx) {
		if err != nil {
			return err
		}
		name, _ := row.Get("LastName").Text()
		fmt.Println(" ", row.Key.Row, name)
	}
	return nil
}
