package driver_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// lastChange is a pattern of a third party: the row "lastchange" of each partition names the entity that changed last.
type lastChange struct{ table *tables.Table }

// PatternName is stored in the row as its owner.
func (*lastChange) PatternName() string { return "lastchange" }

// Attach learns the table; a nil host releases the pattern.
func (p *lastChange) Attach(host driver.Host) error {
	p.table = nil
	if host != nil {
		p.table = host.Table()
	}
	return nil
}

// Remember is nothing: the row follows from the change alone.
func (*lastChange) Remember(any, tables.Properties) ([]string, error) { return nil, nil }

// ContributeRows writes the row under the ETag it was read with. If another writer was faster, the change is planned again.
func (p *lastChange) ContributeRows(ctx context.Context, change *driver.Change) ([]driver.RowOperation, error) {
	key := tables.Key{Partition: change.Key.Partition, Row: "lastchange"}
	row, err := p.table.Entities().Get(ctx, key)
	verb := driver.ReplaceRow
	switch {
	case errors.Is(err, tables.ErrNotFound):
		verb, row = driver.InsertRow, &tables.Entity{Key: key}
	case err != nil:
		return nil, err
	}
	row.Set("Entity", tables.String(change.Key.Row))
	return []driver.RowOperation{{Verb: verb, Row: row}}, nil
}

type member struct {
	tables.Meta
	Team, Name string
}

// A pattern contributes to the plan of each change; the repository writes the plan in one transaction.
func Example() {
	ctx := context.Background()
	last := &lastChange{}
	members, err := patterns.NewRepository(harness.ExampleTable("ExampleDriver"), patterns.Schema[member]{
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
	row, err := last.table.Entities().Get(ctx, tables.Key{Partition: "red", Row: "lastchange"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(row.Get("Entity").Text())
	// Output: bob true
}
