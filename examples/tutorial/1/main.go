// Step 1 of the tutorial: connect to a storage account, store an employee, and read her by her keys.
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
	store, err := patterns.Open("contoso", nil) // in the account of AZURE_STORAGE_CONNECTION_STRING
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
	if err := store.Create(ctx); err != nil { // the table, if it does not exist
		return err
	}

	june := &Employee{Department: "Sales", ID: 223, LastName: "Jones", Email: "june@contoso.com"}
	switch err := employees.Insert(ctx, june); {
	case err == nil:
		fmt.Println("inserted", june.Key())
	case errors.Is(err, tables.ErrExists):
		fmt.Println("there is an employee 223 in Sales already")
	default:
		return err
	}

	found, err := employees.Get(ctx, keyOf("Sales", 223))
	if err != nil {
		return err
	}
	fmt.Println("read", found.LastName, found.Email)
	return nil
}
