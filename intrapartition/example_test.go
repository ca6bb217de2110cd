package intrapartition_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
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
	Tags       []string `table:",json,omitempty"`
}

// hire stores an employee, finds her by email and gives her another email. README.md shows it.
func hire(ctx context.Context, account *tables.Account) error {
	store, err := patterns.Open("contoso", &patterns.StoreOptions{Account: account})
	if err != nil {
		return err
	}
	byEmail := intrapartition.NewUnique("email", func(e *Employee) string { return e.Email }, nil)
	employees, err := patterns.NewRepository(store.Table("Employees"), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
		},
		Prefix: "empid",
	}, byEmail)
	if err != nil {
		return err
	}
	if err := store.Create(ctx); err != nil { // what does not exist yet: here the table
		return err
	}
	june := &Employee{Department: "Sales", ID: 223, LastName: "Jones", Email: "jonesj@contoso.com"}
	if err := employees.Insert(ctx, june); err != nil { // 1 request: rows empid_000223 and email_jonesj@contoso.com
		return err
	}
	found, err := byEmail.In("Sales").Get(ctx, "jonesj@contoso.com") // 1 request: a point query
	if err != nil {
		return err
	}
	found.Email = "june@contoso.com"
	return employees.Replace(ctx, found) // 2 requests: what an index says is checked first; then both rows, or a conflict
}

func Example() {
	ctx := context.Background()
	account := simulatedAccount()
	if err := hire(ctx, account); err != nil {
		log.Fatal(err)
	}
	for row, err := range account.Table("Employees").Entities().Query().Partition("Sales").All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		email, _ := row.Get("Email").Text()
		fmt.Println(row.Key.Row, email)
	}
	// Output:
	// email_june@contoso.com june@contoso.com
	// empid_000223 june@contoso.com
}

// staff opens a new table with the given indexes and three employees in it.
func staff(ctx context.Context, table string, indexes ...patterns.Pattern[Employee]) *patterns.Repository[Employee] {
	employees, err := patterns.NewRepository(simulatedAccount().Table(table), patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key {
			return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
		},
		Prefix: "empid",
	}, indexes...)
	if err != nil {
		log.Fatal(err)
	}
	if err := employees.Table().Create(ctx); err != nil {
		log.Fatal(err)
	}
	for _, e := range []*Employee{
		{Department: "Sales", ID: 10, LastName: "Kwok", Email: "kenk@contoso.com", Tags: []string{"remote"}},
		{Department: "Sales", ID: 11, LastName: "Abbott", Email: "ana@contoso.com"},
		{Department: "Sales", ID: 223, LastName: "Jones", Email: "jonesj@contoso.com", Tags: []string{"manager", "remote"}},
	} {
		if err := employees.Insert(ctx, e); err != nil {
			log.Fatal(err)
		}
	}
	return employees
}

// A range of an index comes in the order of the index.
func ExampleView_Range() {
	ctx := context.Background()
	byEmail := intrapartition.NewUnique("email", func(e *Employee) string { return e.Email }, nil)
	staff(ctx, "ExampleRange", byEmail)

	for e, err := range byEmail.In("Sales").Range(ctx, compoundkey.Prefix("a")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Email)
	}
	for e, err := range byEmail.In("Sales").Range(ctx, compoundkey.Through("a", "kenk@contoso.com")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Email)
	}
	// Output:
	// ana@contoso.com
	// ana@contoso.com
	// jonesj@contoso.com
	// kenk@contoso.com
}

// Several employees can have a name: an Index lists them one after another. Its copies hold only what a list shows.
func ExampleOptions() {
	ctx := context.Background()
	byName := intrapartition.NewIndex("name", func(e *Employee) string { return e.LastName }, &intrapartition.Options{Project: []string{"LastName", "ID"}})
	employees := staff(ctx, "ExampleKeep", byName)

	for e, err := range byName.In("Sales").Range(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %d %q\n", e.LastName, e.ID, e.Email)
	}
	for e, err := range byName.In("Sales").All(ctx, "Jones") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(errors.Is(employees.Replace(ctx, e), tables.ErrInvalid)) // it would remove what was not read
		whole, err := employees.Get(ctx, e.Key())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(whole.Email)
	}
	// Output:
	// Abbott 11 ""
	// Jones 223 ""
	// Kwok 10 ""
	// true
	// jonesj@contoso.com
}

// An employee is found under each of her tags. One without tags is not in the index.
func ExampleNewMulti() {
	ctx := context.Background()
	byTag := intrapartition.NewMulti("tag", func(e *Employee) []string { return e.Tags }, nil)
	staff(ctx, "ExampleMultiIndex", byTag)

	for e, err := range byTag.In("Sales").All(ctx, "remote") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.LastName)
	}
	// Output:
	// Kwok
	// Jones
}

// A key belongs to one entity of its partition.
func ExampleNewUnique() {
	ctx := context.Background()
	byEmail := intrapartition.NewUnique("email", func(e *Employee) string { return e.Email }, nil)
	employees := staff(ctx, "ExampleDuplicate", byEmail)

	err := employees.Insert(ctx, &Employee{Department: "Sales", ID: 224, LastName: "Jones", Email: "jonesj@contoso.com"})
	var failed *tables.Error
	fmt.Println(errors.Is(err, tables.ErrDuplicate), errors.As(err, &failed) && failed.Pattern == "email")
	_, err = employees.Get(ctx, tables.Key{Partition: "Sales", Row: "empid_000224"})
	fmt.Println(errors.Is(err, tables.ErrNotFound))
	// Output:
	// true true
	// true
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
