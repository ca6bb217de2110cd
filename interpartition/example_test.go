package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Employee is stored by department and id.
type Employee struct {
	tables.Meta
	Department string
	ID         int
	LastName   string
	Email      string
}

// staff are the employees of a table, found by email wherever they work.
type staff struct {
	employees *patterns.Repository[Employee]
	byEmail   *interpartition.Unique[Employee, string]
}

func openStaff(store *patterns.Store) (*staff, error) {
	s := &staff{byEmail: interpartition.NewUnique("email", func(e *Employee) string { return e.Email }, nil)}
	var err error
	s.employees, err = patterns.NewRepository(store.Table("Employees"), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
		},
		Prefix: "empid",
	}, s.byEmail)
	return s, err
}

// hire stores an employee, finds her by email without her department, and moves her to another email. README.md shows it.
func (s *staff) hire(ctx context.Context) error {
	june := &Employee{Department: "Sales", ID: 223, LastName: "Jones", Email: "jonesj@contoso.com"}
	if err := s.employees.Insert(ctx, june); err != nil { // 3 requests: the copy is marked, the row written, and the copy settled
		return err
	}
	found, err := s.byEmail.Get(ctx, "jonesj@contoso.com") // 1 request: a point query
	if err != nil {
		return err
	}
	found.Email = "june@contoso.com"
	return s.employees.Replace(ctx, found) // 3 requests: both copies are marked, the row written, and the copies settled
}

func Example() {
	ctx := context.Background()
	store, err := patterns.Open("staff", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	s, err := openStaff(store)
	if err != nil {
		log.Fatal(err)
	}
	stop, err := store.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.hire(ctx); err != nil {
		log.Fatal(err)
	}
	if err := stop(); err != nil { // waits for what is settled in the background
		log.Fatal(err)
	}
	for e, err := range s.byEmail.Range(ctx, compoundkey.Prefix("j")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Email, e.Department, e.ID)
	}
	// Output:
	// june@contoso.com Sales 223
}

// Employees share a name: All finds those who have it. The index holds only whose it is, so that a change which keeps the name costs nothing.
func ExampleIndex_All() {
	ctx := context.Background()
	store, err := patterns.Open("names", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	byName := interpartition.NewIndex("name", func(e *Employee) compoundkey.Folded { return compoundkey.Folded(e.LastName) },
		&interpartition.Options[Employee]{Project: []string{}})
	employees, err := patterns.NewRepository(store.Table("ExampleNames"), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key { return tables.Key{Partition: e.Department, Row: fmt.Sprint(e.ID)} },
	}, byName)
	if err != nil {
		log.Fatal(err)
	}
	stop, err := store.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range []*Employee{{Department: "Sales", ID: 223, LastName: "Jones"}, {Department: "Legal", ID: 7, LastName: "Jones"}, {Department: "Sales", ID: 5, LastName: "Otto"}} {
		if err := employees.Insert(ctx, e); err != nil {
			log.Fatal(err)
		}
	}
	for e, err := range byName.All(ctx, "jones") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.LastName, e.Department, e.ID)
	}
	if err := stop(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Jones Legal 7
	// Jones Sales 223
}

// A write that needs a key of another employee is refused.
func ExampleNewUnique() {
	ctx := context.Background()
	store, err := patterns.Open("unique", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	byEmail := interpartition.NewUnique("email", func(e *Employee) string { return e.Email }, nil)
	employees, err := patterns.NewRepository(store.Table("ExampleUnique"), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key { return tables.Key{Partition: e.Department, Row: fmt.Sprint(e.ID)} },
	}, byEmail)
	if err != nil {
		log.Fatal(err)
	}
	stop, err := store.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(employees.Insert(ctx, &Employee{Department: "Sales", ID: 223, Email: "jonesj@contoso.com"}))
	err = employees.Insert(ctx, &Employee{Department: "Marketing", ID: 5, Email: "jonesj@contoso.com"})
	var failed *tables.Error
	fmt.Println(errors.Is(err, tables.ErrDuplicate), errors.As(err, &failed) && failed.Pattern == "email")
	if err := stop(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// <nil>
	// true true
}

// simulatedAccount returns an account on a new simulator in memory. A program calls tables.NewAccount or tables.NewAccountFromEnv.
func simulatedAccount() *tables.Account {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	return account
}
