// Command inserttrace inserts one entity with an index in another partition. It writes coverage data about
// this insert to the directory that its argument names. Its test builds it with coverage, and counts the
// functions that ran.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"runtime/coverage"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type employee struct {
	tables.Meta
	Department, ID, Email string
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("give the directory for the coverage data")
	}
	calls, err := trace(context.Background(), os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(calls)
}

// trace returns how often the index's key function was called by the insert.
func trace(ctx context.Context, dir string) (calls int, err error) {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		return 0, err
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		return 0, err
	}
	store, err := patterns.Open("trace", &patterns.StoreOptions{Account: account})
	if err != nil {
		return 0, err
	}
	byEmail := interpartition.NewIndex("email", func(e *employee) compoundkey.Folded { calls++; return compoundkey.Folded(e.Email) }, &interpartition.Options[employee]{ByPartition: true})
	employees, err := patterns.NewRepository(store.Table("Employees"), patterns.Schema[employee]{
		Key: func(e *employee) tables.Key { return tables.Key{Partition: e.Department, Row: e.ID} },
	}, byEmail)
	if err != nil {
		return 0, err
	}
	stop, err := store.Start(ctx)
	if err != nil {
		return 0, err
	}
	// The first insert, which is not counted, does the work that is needed once for each type.
	if err := employees.Insert(ctx, &employee{Department: "Sales", ID: "1", Email: "a@contoso.com"}); err != nil {
		return 0, err
	}
	calls = 0
	if err := coverage.ClearCounters(); err != nil {
		return 0, err
	}
	if err := employees.Insert(ctx, &employee{Department: "Sales", ID: "2", Email: "b@contoso.com"}); err != nil {
		return 0, err
	}
	if err := stop(); err != nil { // wait for the copies, which are settled in the background
		return 0, err
	}
	if err := coverage.WriteMetaDir(dir); err != nil {
		return 0, err
	}
	return calls, coverage.WriteCountersDir(dir)
}
