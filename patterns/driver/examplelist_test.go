package driver_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// roster is a list elsewhere: a row for each team, in a table of its own, with the names of its members.
type roster struct{ table *tables.Table }

// Attach implements patterns.Pattern.
func (l roster) Attach(_ driver.Host, _ *member) (driver.Implementation, error) {
	return driver.Implementation{Name: "roster", Tables: []*tables.Table{l.table}, Intents: eventual.IntentQueue(nil, nil),
		Prior:  func(v any, _ tables.Properties) ([]string, error) { return []string{v.(*member).Team}, nil },
		Effect: driver.Effect{OutsideKeys: l.teams, Reconcile: driver.ReconcileEach(l.reconcile)}}, nil
}

// teams names the rows that a change may touch. The library stores them in an intent before it writes.
func (l roster) teams(_ context.Context, c *driver.Change) ([]string, error) {
	if c.Kind == driver.ChangeDelete {
		return c.Prior, nil
	}
	return slices.Compact(append(slices.Clone(c.Prior), c.Entity.(*member).Team)), nil
}

// reconcile may run several times, late, and beside another one: it brings the rows to the entity's present state.
func (l roster) reconcile(ctx context.Context, r *driver.Reconciliation) error {
	for _, team := range r.Keys {
		err := r.Edit(ctx, team, l.table, func() ([]driver.RowOperation, error) {
			verb, key := driver.ReplaceRow, tables.Key{Partition: "roster", Row: team}
			row, err := l.table.Entities().Get(ctx, key)
			if errors.Is(err, tables.ErrNotFound) {
				verb, row, err = driver.InsertRow, &tables.Entity{Key: key}, nil
			}
			if err != nil {
				return nil, err
			}
			text, _ := row.Get("Members").Text()
			names := slices.DeleteFunc(strings.Fields(text), func(name string) bool { return name == r.Key.Row })
			if v := driver.As[member](r.Entity); v != nil && v.Team == team {
				names = append(names, v.Name)
			}
			row.Set("Members", tables.String(strings.Join(names, " ")))
			return []driver.RowOperation{{Verb: verb, Row: row}}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// What a pattern stores in other partitions is named in an intent on a queue, so that a worker finishes it if the writer dies.
func ExampleEffect() {
	ctx := context.Background()
	store, err := patterns.Open("teams", &patterns.StoreOptions{Account: simulatedAccount()})
	if err != nil {
		log.Fatal(err)
	}
	list := roster{store.Table("Roster")}
	members, err := patterns.NewRepository(store.Table("Members"), patterns.Schema[member]{
		Key: func(m *member) tables.Key { return tables.Key{Partition: "members", Row: m.Name} },
	}, list)
	if err != nil {
		log.Fatal(err)
	}
	stop, err := store.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"ann", "bob"} {
		if err := members.Insert(ctx, &member{Team: "red", Name: name}); err != nil {
			log.Fatal(err)
		}
	}
	row, err := list.table.Entities().Get(ctx, tables.Key{Partition: "roster", Row: "red"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(row.Get("Members").Text())
	if err := stop(); err != nil {
		log.Fatal(err)
	}
	// Output: ann bob true
}
