// Command tutorial is the program that docs/tutorial builds step by step: employees who are found by id and by email.
//
//	go run ./examples/tutorial
//
// It runs on a storage simulator in memory, so it needs neither an account nor Node.js.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Employee is the entity: its exported fields become properties of a row.
type Employee struct {
	tables.Meta
	Department string
	ID         int
	LastName   string
	Email      string
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run carries out the steps of the tutorial in their order.
func run(ctx context.Context, out io.Writer) error {
	store, err := openStore()
	if err != nil {
		return err
	}
	employees, byEmail, err := openEmployees(store)
	if err != nil {
		return err
	}
	if err := store.Create(ctx); err != nil { // the table Employees
		return err
	}
	if err := hire(ctx, employees); err != nil {
		return err
	}
	if err := printRows(ctx, out, employees.Table()); err != nil {
		return err
	}
	if err := changeEmail(ctx, out, employees, byEmail); err != nil {
		return err
	}
	if err := printRows(ctx, out, employees.Table()); err != nil {
		return err
	}
	return hireTwice(ctx, out, employees)
}

// openStore opens a store on a new simulator.
func openStore() (*patterns.Store, error) {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		return nil, err
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		return nil, err
	}
	return patterns.NewStore(account, "tutorial", nil)
}

// openEmployees declares how employees are stored: one row by id, and one by email.
func openEmployees(store *patterns.Store) (*patterns.Repository[Employee], *intrapartition.Index[Employee], error) {
	byEmail := intrapartition.NewIndex("email", func(e *Employee) compoundkey.Part {
		return compoundkey.String(e.Email)
	}, nil)
	employees, err := patterns.NewRepository(store.Table("Employees"), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
		},
		Rows: compoundkey.Starting("empid"),
	}, byEmail)
	return employees, byEmail, err
}

// hire inserts one employee.
func hire(ctx context.Context, employees *patterns.Repository[Employee]) error {
	june := &Employee{Department: "Sales", ID: 223, LastName: "Jones", Email: "jonesj@contoso.com"}
	return employees.Insert(ctx, june)
}

// printRows prints the rows of the partition Sales as they are stored.
func printRows(ctx context.Context, out io.Writer, table *tables.Table) error {
	for row, err := range table.Entities().Query().Partition("Sales").All(ctx) {
		if err != nil {
			return err
		}
		email, _ := row.Get("Email").Text()
		fmt.Fprintln(out, "row", row.Key.Row, "has", email)
	}
	return nil
}

// changeEmail finds the employee by email, and stores another email.
func changeEmail(ctx context.Context, out io.Writer, employees *patterns.Repository[Employee], byEmail *intrapartition.Index[Employee]) error {
	found, err := byEmail.Get(ctx, "Sales", compoundkey.String("jonesj@contoso.com"))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "found", found.LastName)
	found.Email = "june@contoso.com"
	return employees.Replace(ctx, found)
}

// hireTwice tries to give a second employee the email of the first.
func hireTwice(ctx context.Context, out io.Writer, employees *patterns.Repository[Employee]) error {
	err := employees.Insert(ctx, &Employee{Department: "Sales", ID: 224, LastName: "Kwok", Email: "june@contoso.com"})
	if !errors.Is(err, tables.ErrDuplicate) {
		return fmt.Errorf("insert a second employee with the same email: got %v, want ErrDuplicate", err)
	}
	fmt.Fprintln(out, "the second employee is refused, since the email is taken")
	return nil
}
