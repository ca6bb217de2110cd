// Step 4 of the tutorial: a unique index across partitions.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
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
	byEmail := interpartition.NewUnique("email", func(e *Employee) compoundkey.Folded { return compoundkey.Folded(e.Email) }, nil)
	employees, err := patterns.NewRepository(store.Table("Employees"), patterns.Schema[Employee]{
		Key:    func(e *Employee) tables.Key { return keyOf(e.Department, e.ID) },
		Prefix: "empid",
	}, byName, byEmail)
	if err != nil {
		return err
	}
	stop, err := store.Start(ctx)
	if err != nil {
		return err
	}
	err = use(ctx, store, employees, byEmail)
	return errors.Join(err, stop()) // waits for what the last writes still do in the background
}

func use(ctx context.Context, store *patterns.Store, employees *patterns.Repository[Employee], byEmail *interpartition.Unique[Employee, compoundkey.Folded]) error {
	if _, err := store.Rebuild(ctx, nil); err != nil { // steps 2 and 3 stored employees without this index
		return err
	}
	june, err := byEmail.Get(ctx, "June@Contoso.com")
	if err != nil {
		return err
	}
	fmt.Println("june@contoso.com is", june.Department, june.ID)

	second := &Employee{Department: "Support", ID: 8, LastName: "June", Email: "june@contoso.com"}
	err = employees.Insert(ctx, second)
	fmt.Println("a second employee with this email is refused:", errors.Is(err, tables.ErrDuplicate))

	second.Email = "june2@contoso.com"
	explained, err := employees.Explain(ctx, driver.ChangeInsert, second)
	if err != nil {
		return err
	}
	fmt.Println("with another email, Insert would send:")
	for _, request := range explained.Requests {
		fmt.Println(" ", request)
	}
	return nil
}
