package indexentities_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Employee is stored by department and id.
type Employee struct {
	tables.Meta
	Department string
	ID         int
	FirstName  string
	LastName   string
	Tags       []string `table:",json,omitempty"`
}

func employeeKey(e *Employee) tables.Key {
	return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
}

func lastName(e *Employee) string { return e.LastName }

// Lists in the entities' own partition, the guide's option 2: never out of step.
func Example() {
	ctx, store := context.Background(), newStore("employees")
	byName := indexentities.NewInPartition("lastname", func(e *Employee) string { return e.LastName })
	employees, err := patterns.NewRepository(store.Table("Employees"), patterns.Schema[Employee]{Key: employeeKey, Prefix: "empid"}, byName)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil { // the table
		log.Fatal(err)
	}
	hire(ctx, employees)

	keys, err := byName.In("Sales").Keys(ctx, "Jones") // 1 request
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(keys)
	for e, err := range byName.In("Sales").Find(ctx, "Jones", nil) { // 1 request, and 1 for each
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.FirstName, e.LastName)
	}
	for v, err := range byName.In("Sales").Values(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(v.Key, v.Count)
	}
	// Output:
	// [{Sales empid_000152} {Sales empid_000223}]
	// Otto Jones
	// June Jones
	// Jones 2
	// Kwok 1
}

// One list for a name in the whole organisation, in a table of its own, the guide's option 3.
func ExampleNewInTable() {
	ctx, store := context.Background(), newStore("lastnames")
	byName := indexentities.NewInTable("lastname", lastName, store.Table("LastNames"), nil)
	employees, err := patterns.NewRepository(store.Table("Staff"), patterns.Schema[Employee]{Key: employeeKey, Prefix: "empid"}, byName)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil { // the two tables
		log.Fatal(err)
	}
	hire(ctx, employees)

	keys, err := byName.Keys(ctx, "Jones")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(keys)
	// Output:
	// [{Marketing empid_000007} {Sales empid_000152} {Sales empid_000223}]
}

// An entity is in the list of each of its tags, whatever their case.
func ExampleNewMultiInTable() {
	ctx, store := context.Background(), newStore("tags")
	byTag := indexentities.NewMultiInTable("tag", func(e *Employee) []compoundkey.Folded {
		var values []compoundkey.Folded
		for _, tag := range e.Tags {
			values = append(values, compoundkey.Folded(tag))
		}
		return values
	}, nil, nil)
	employees, err := patterns.NewRepository(store.Table("Tagged"), patterns.Schema[Employee]{Key: employeeKey, Prefix: "empid"}, byTag)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil { // the table
		log.Fatal(err)
	}
	hire(ctx, employees)

	for e, err := range byTag.Find(ctx, "REMOTE", nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.FirstName, e.Tags)
	}
	// Output:
	// Ken [Remote]
	// June [manager remote]
}

func hire(ctx context.Context, employees *patterns.Repository[Employee]) {
	for _, e := range []*Employee{
		{Department: "Sales", ID: 223, FirstName: "June", LastName: "Jones", Tags: []string{"manager", "remote"}},
		{Department: "Sales", ID: 152, FirstName: "Otto", LastName: "Jones"},
		{Department: "Sales", ID: 10, FirstName: "Ken", LastName: "Kwok", Tags: []string{"Remote"}},
		{Department: "Marketing", ID: 7, FirstName: "Ana", LastName: "Jones"},
	} {
		if err := employees.Insert(ctx, e); err != nil {
			log.Fatal(err)
		}
	}
}

// newStore opens a store on the service that the tests share.
func newStore(name string) *patterns.Store {
	store, err := patterns.Open(name, &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	return store
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
