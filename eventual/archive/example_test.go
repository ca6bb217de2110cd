package archive_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Employee is an entity of the examples.
type Employee struct {
	tables.Meta
	Department string
	ID         int
	Name       string
}

func employeeKey(e *Employee) tables.Key {
	return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
}

// Those who have left are moved to a table of their own, and others into blobs.
func ExampleNew() {
	ctx := context.Background()
	store, err := patterns.Open("archiving", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	open := func(table string) *patterns.Repository[Employee] {
		repo, err := patterns.NewRepository(store.Table(table), patterns.Schema[Employee]{Key: employeeKey, Prefix: "empid"})
		if err != nil {
			log.Fatal(err)
		}
		return repo
	}
	employees, archived := open("CurrentEmployees"), open("ArchivedEmployees")
	blobs := blobstorage.Open(store, "archived-employees")
	toTable, err := archive.New(eventual.Intents(store), "archive-employees", employees, archive.ToRepository(archived, nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	blobName := func(e *Employee) string { return fmt.Sprintf("%s/%d.json", e.Department, e.ID) }
	toBlobs, err := archive.New(eventual.Intents(store), "export-employees", employees, archive.ToContainer(blobs, blobName), nil)
	if err != nil {
		log.Fatal(err)
	}

	if err := store.Create(ctx); err != nil { // two tables, the container and the queue
		log.Fatal(err)
	}

	june := &Employee{Department: "Sales", ID: 223, Name: "June Jones"}
	ken := &Employee{Department: "Sales", ID: 456, Name: "Ken Kwok"}
	for _, e := range []*Employee{june, ken} {
		if err := employees.Insert(ctx, e); err != nil {
			log.Fatal(err)
		}
	}
	if err := toTable.Move(ctx, june); err != nil {
		log.Fatal(err)
	}
	if err := toBlobs.Move(ctx, ken); err != nil {
		log.Fatal(err)
	}
	worker, err := eventual.NewWorker(eventual.Intents(store), nil, nil) // a service calls Store.Start
	if err != nil {
		log.Fatal(err)
	}
	if _, err := worker.Drain(ctx); err != nil {
		log.Fatal(err)
	}

	e, err := archived.Get(ctx, employeeKey(june))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Name)
	if e, err = archive.Read[Employee](ctx, blobs, "Sales/456.json"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Name)
	// Output:
	// June Jones
	// Ken Kwok
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
