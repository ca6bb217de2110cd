package dataseries_test

import (
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestForeignValue: a slot that somebody has given a value of another type is a typed error to whoever reads or adds.
func TestForeignValue(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		t.Fatal(err)
	}
	table := account.Table(s.TableName(t))
	if err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := dataseries.NewCounter[int32](table, "Count_", 24, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := tables.Key{Partition: "p", Row: "r"}
	if err := table.Entities().Insert(t.Context(), &tables.Entity{Key: key, Properties: tables.Properties{{Name: "Count_03", Value: tables.String("x")}}}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Read(t.Context(), key)
	for name, err := range map[string]error{"Read": err, "Add": c.Add(t.Context(), key, 3, 1)} {
		var e *tables.Error
		if !errors.Is(err, tables.ErrGarbled) || !errors.As(err, &e) || e.Op != name || e.Key != key {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Add(t.Context(), key, 4, 1); err != nil {
		t.Error(err)
	}
}
