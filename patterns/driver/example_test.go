package driver_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// lastChange is a pattern of a third party: the row "lastchange" of each partition names the entity that changed last.
type lastChange[T any] struct{}

// Attach implements patterns.Pattern.
func (lastChange[T]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	// Rows writes the row under the ETag it was read with. If another writer was faster, the change is planned again.
	rows := func(ctx context.Context, changes []*driver.Change) ([]driver.RowOperation, error) {
		last := changes[len(changes)-1]
		if last.Kind == driver.ChangeTouch { // which is no news
			return nil, nil
		}
		verb, key := driver.ReplaceRow, tables.Key{Partition: last.Key.Partition, Row: "lastchange"}
		row, err := host.Table().Entities().Get(ctx, key)
		if errors.Is(err, tables.ErrNotFound) {
			verb, row, err = driver.InsertRow, &tables.Entity{Key: key}, nil
		}
		if err != nil {
			return nil, err
		}
		row.Set("Entity", tables.String(last.Key.Row))
		return []driver.RowOperation{{Verb: verb, Row: row}}, nil
	}
	return driver.Implementation{Name: "lastchange", Rows: rows}, nil
}

type member struct {
	tables.Meta
	Team, Name string
}

// A pattern contributes to the plan of each change; the repository writes the plan in one transaction.
func Example() {
	ctx := context.Background()
	members, err := patterns.NewRepository(simulatedTable("ExampleDriver"), patterns.Schema[member]{
		Key: func(m *member) tables.Key { return tables.Key{Partition: m.Team, Row: m.Name} },
	}, lastChange[member]{})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"ann", "bob"} {
		if err := members.Insert(ctx, &member{Team: "red", Name: name}); err != nil {
			log.Fatal(err)
		}
	}
	row, err := members.Table().Entities().Get(ctx, tables.Key{Partition: "red", Row: "lastchange"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(row.Get("Entity").Text())
	// Output: bob true
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

// simulatedTable returns a new table on a new simulator.
func simulatedTable(name string) *tables.Table {
	table := simulatedAccount().Table(name)
	if err := table.Create(context.Background()); err != nil {
		log.Fatal(err)
	}
	return table
}
