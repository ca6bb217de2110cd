// Command quickstart stores employees and finds them by email, in the account of AZURE_STORAGE_CONNECTION_STRING.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

type Employee struct {
	tables.Meta
	Department string
	ID         int
	Email      string
}

func main() {
	if err := run(context.Background(), nil); err != nil {
		log.Fatal(err)
	}
}

// declare says what is stored: employees by department and ID, and a copy under the email, which only one employee can have.
func declare(options *patterns.StoreOptions) (*patterns.Store, *patterns.Repository[Employee], *interpartition.Unique[Employee, compoundkey.Folded], error) {
	store, err := patterns.Open("staff", options) // by default in the account of the environment
	if err != nil {
		return nil, nil, nil, err
	}
	byEmail := interpartition.NewUnique("email", func(e *Employee) compoundkey.Folded { return compoundkey.Folded(e.Email) }, nil)
	employees, err := patterns.NewRepository(store.Table("Staff"), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
		},
		Prefix: "empid",
	}, byEmail)
	return store, employees, byEmail, err
}

func run(ctx context.Context, options *patterns.StoreOptions) error {
	store, employees, byEmail, err := declare(options)
	if err != nil {
		return err
	}
	stop, err := store.Start(ctx)
	if err != nil {
		return err
	}
	err = employees.Upsert(ctx, &Employee{Department: "Sales", ID: 223, Email: "June@contoso.com"})
	if err == nil {
		var june *Employee
		if june, err = byEmail.Get(ctx, "june@contoso.com"); err == nil {
			fmt.Println("found", june.Department, june.ID)
		}
	}
	return errors.Join(err, stop())
}
