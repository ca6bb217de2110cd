// Step 2 of the tutorial: what a query costs depends on the keys that it names.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
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
	employees, err := patterns.NewRepository(store.Table("Employees"), patterns.Schema[Employee]{
		Key:    func(e *Employee) tables.Key { return keyOf(e.Department, e.ID) },
		Prefix: "empid",
	})
	if err != nil {
		return err
	}
	if err := store.Create(ctx); err != nil {
		return err
	}
	for _, e := range []*Employee{
		{Department: "Sales", ID: 31, LastName: "Kwok", Email: "ken@contoso.com"},
		{Department: "Sales", ID: 223, LastName: "Jones", Email: "june@contoso.com"},
		{Department: "Sales", ID: 1044, LastName: "Abbott", Email: "ana@contoso.com"},
		{Department: "Support", ID: 7, LastName: "Jones", Email: "jim@contoso.com"},
	} {
		if err := employees.Upsert(ctx, e); err != nil { // inserts, or replaces what is there
			return err
		}
	}

	sales := employees.Query().Partition("Sales")
	if err := show(ctx, "one employee by both keys", sales.Row(keyOf("Sales", 223).Row)); err != nil {
		return err
	}
	ids := compoundkey.Between(compoundkey.Int(100, 6), compoundkey.Int(2000, 6)).Under("empid")
	if err := show(ctx, "ids of Sales from 100 to 1999", sales.Rows(ids)); err != nil {
		return err
	}
	jones := tables.Eq("LastName", "Jones")
	if err := show(ctx, "Jones in Sales", sales.Where(jones)); err != nil {
		return err
	}
	everywhere := employees.Query().Where(jones)
	if err := show(ctx, "Jones anywhere", everywhere); !errors.Is(err, tables.ErrTableScan) {
		return fmt.Errorf("got %v, want ErrTableScan", err)
	}
	fmt.Println("  refused, since it would read the whole table")
	return show(ctx, "Jones anywhere, allowed", everywhere.AllowTableScan())
}

// show prints how the service will search, and what it finds.
func show(ctx context.Context, question string, query tables.Query[Employee]) error {
	plan, err := query.Plan()
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", question, plan.Class)
	for e, err := range query.All(ctx) {
		if err != nil {
			return err
		}
		fmt.Println(" ", e.Department, e.ID, e.LastName)
	}
	return nil
}
