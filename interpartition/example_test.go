package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
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
	byEmail   *interpartition.Index[Employee]
}

func openStaff(store *patterns.Store) (*staff, error) {
	s := &staff{byEmail: interpartition.NewIndex("email", func(e *Employee) compoundkey.Part {
		return compoundkey.String(e.Email)
	}, nil)}
	var err error
	s.employees, err = patterns.NewRepository(store.Table("Employees"), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
		},
		Rows: compoundkey.Starting("empid"),
	}, s.byEmail)
	return s, err
}

// hire stores an employee, finds her by email without her department, and moves her to another email. README.md shows it.
func (s *staff) hire(ctx context.Context) error {
	june := &Employee{Department: "Sales", ID: 223, LastName: "Jones", Email: "jonesj@contoso.com"}
	if err := s.employees.Insert(ctx, june); err != nil { // 5 requests: a message, the row, its copy, a second look, no message
		return err
	}
	found, err := s.byEmail.Get(ctx, compoundkey.String("jonesj@contoso.com")) // 1 request: a point query
	if err != nil {
		return err
	}
	found.Email = "june@contoso.com"
	return s.employees.Replace(ctx, found) // 7 requests: what the index says is checked first, and two copies change
}

func Example() {
	ctx := context.Background()
	store, err := patterns.NewStore(simulatedAccount(), "staff", nil)
	if err != nil {
		log.Fatal(err)
	}
	s, err := openStaff(store)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil { // the table, and the queue of intents
		log.Fatal(err)
	}
	if err := s.hire(ctx); err != nil {
		log.Fatal(err)
	}
	worker, err := eventual.NewWorker(eventual.Intents(store), nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := worker.Drain(ctx); err != nil { // a service calls eventual.Run, which finishes what a crash has left
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

// With Async, whoever writes does not wait for the index: workers enter what has changed. A read of Verified is never stale.
func ExampleIndex_Verified() {
	ctx := context.Background()
	store, err := patterns.NewStore(simulatedAccount(), "badges", nil)
	if err != nil {
		log.Fatal(err)
	}
	byEmail := interpartition.NewIndex("email", func(e *Employee) compoundkey.Part { return compoundkey.String(e.Email) }, &interpartition.Options[Employee]{ByPartition: true})
	employees, err := patterns.NewRepository(store.Table("ExampleVerified"), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key { return tables.Key{Partition: e.Department, Row: fmt.Sprint(e.ID)} },
	}, patterns.Async(byEmail))
	if err != nil {
		log.Fatal(err)
	}
	worker, err := eventual.NewWorker(eventual.Intents(store), nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	june := &Employee{Department: "Sales", ID: 223, Email: "jonesj@contoso.com"}
	if err := employees.Insert(ctx, june); err != nil {
		log.Fatal(err)
	}
	if _, err := worker.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	june.Email = "june@contoso.com"
	if err := employees.Replace(ctx, june); err != nil {
		log.Fatal(err)
	}
	_, err = byEmail.In("Sales").Get(ctx, compoundkey.String("jonesj@contoso.com"))
	fmt.Println("the index still has the old email:", err == nil)
	_, err = byEmail.In("Sales").Verified().Get(ctx, compoundkey.String("jonesj@contoso.com"))
	fmt.Println("the employee has it no longer:", errors.Is(err, tables.ErrNotFound))
	if _, err := worker.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	found, err := byEmail.In("Sales").Get(ctx, compoundkey.String("june@contoso.com"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("found:", found.Email)
	// Output:
	// the index still has the old email: true
	// the employee has it no longer: true
	// found: june@contoso.com
}

// With Unique, a key that another employee has refuses the write.
func ExampleOptions() {
	ctx := context.Background()
	store, err := patterns.NewStore(simulatedAccount(), "unique", nil)
	if err != nil {
		log.Fatal(err)
	}
	email := func(e *Employee) compoundkey.Part { return compoundkey.String(e.Email) }
	byEmail := interpartition.NewIndex("email", email, &interpartition.Options[Employee]{
		Unique: true,
	})
	employees, err := patterns.NewRepository(store.Table("ExampleUnique"), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key { return tables.Key{Partition: e.Department, Row: fmt.Sprint(e.ID)} },
	}, byEmail)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(employees.Insert(ctx, &Employee{Department: "Sales", ID: 223, Email: "jonesj@contoso.com"}))
	err = employees.Insert(ctx, &Employee{Department: "Marketing", ID: 5, Email: "jonesj@contoso.com"})
	var failed *tables.Error
	fmt.Println(errors.Is(err, tables.ErrDuplicate), errors.As(err, &failed) && failed.Pattern == "email")
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
