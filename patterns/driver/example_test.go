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
type lastChange[T any] struct{ repository driver.Binding }

// Attach implements patterns.Pattern.
func (p *lastChange[T]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	return driver.Implementation{Name: "lastchange", Binding: &p.repository,
		// Rows writes the row under the ETag it was read with. If another writer was faster, the change is planned again.
		Rows: func(ctx context.Context, changes []*driver.Change) ([]driver.RowOperation, error) {
			var last tables.Key
			for _, c := range changes {
				if c.Kind != driver.ChangeTouch { // which is no news
					last = c.Key
				}
			}
			if last == (tables.Key{}) {
				return nil, nil
			}
			verb := driver.ReplaceRow
			row, err := lastRow(ctx, host, last.Partition)
			if errors.Is(err, tables.ErrNotFound) {
				verb, row, err = driver.InsertRow, &tables.Entity{Key: lastKey(last.Partition)}, nil
			}
			if err != nil {
				return nil, err
			}
			row.Set("Entity", tables.String(last.Row))
			return []driver.RowOperation{{Verb: verb, Row: row}}, nil
		}}, nil
}

// In returns the row key of the entity that changed last in a partition.
func (p *lastChange[T]) In(ctx context.Context, partition string) (string, error) {
	host, err := p.repository.Host("In", "lastchange")
	if err != nil {
		return "", err
	}
	row, err := lastRow(ctx, host, partition)
	if err != nil {
		return "", err
	}
	entity, _ := row.Get("Entity").Text()
	return entity, nil
}

func lastKey(partition string) tables.Key { return tables.Key{Partition: partition, Row: "lastchange"} }

func lastRow(ctx context.Context, host driver.Host, partition string) (*tables.Entity, error) {
	return host.Table().Entities().Get(ctx, lastKey(partition))
}

type member struct {
	tables.Meta
	Team, Name string
}

// A pattern contributes to the plan of each change; the repository writes the plan in one transaction.
func Example() {
	ctx := context.Background()
	last := &lastChange[member]{}
	members, err := patterns.NewRepository(simulatedTable("ExampleDriver"), patterns.Schema[member]{
		Key: func(m *member) tables.Key { return tables.Key{Partition: m.Team, Row: m.Name} },
	}, last)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"ann", "bob"} {
		if err := members.Insert(ctx, &member{Team: "red", Name: name}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(last.In(ctx, "red"))
	// Output: bob <nil>
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
