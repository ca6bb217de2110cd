package widentities_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

// narrow has the properties of its fields alone.
type narrow struct {
	tables.Meta
	Team  string
	Email string
}

// TestFirstRowsThatCannotWork: what would find nothing later, or fit in no row, is refused when the repository is made.
func TestFirstRowsThatCannotWork(t *testing.T) {
	table := account(t, storagetest.Simulator(t, nil)).Table("Profiles")
	narrowSchema := patterns.Schema[narrow]{Key: func(n *narrow) tables.Key { return tables.Key{Partition: n.Team, Row: n.Email} }}
	refused := func(want string, err error) {
		t.Helper()
		if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, err := patterns.NewRepository(table, narrowSchema, widentities.New[narrow](&widentities.Options{FirstRow: []string{"Team", "Emial"}}))
	refused("FirstRow names property Emial, which narrow does not store", err)
	_, err = patterns.NewRepository(table, schema, widentities.New[profile](&widentities.Options{FirstRow: []string{"Email", "Team", "Email"}}))
	refused("property Email twice", err)
	many := make([]string, widentities.MaxNarrowProperties+1)
	for i := range many {
		many[i] = fmt.Sprintf("P%d", i)
	}
	_, err = patterns.NewRepository(table, schema, widentities.New[profile](&widentities.Options{FirstRow: many}))
	refused("the first row holds at most", err)
}

// TestFirstRowTooLarge: what FirstRow asks for and no row can hold is refused by the name of the largest, before any request.
func TestFirstRowTooLarge(t *testing.T) {
	s, n := harness.CountedService(storagetest.Simulator(t, nil))
	profiles, _ := program(t, s, "Profiles", []string{"Team", "Text"}, nil)
	err := profiles.Insert(t.Context(), withText(1, 40_000))
	if !errors.Is(err, tables.ErrTooLarge) || !strings.Contains(err.Error(), "the largest of them Text") || n.Count() != 0 {
		t.Errorf("%v after %d requests", err, n.Count())
	}
}

// TestLayoutOfOneRepository: a layout belongs to one repository, and is free again where that did not come to be.
func TestLayoutOfOneRepository(t *testing.T) {
	table := account(t, storagetest.Simulator(t, nil)).Table("Profiles")
	l := widentities.New[profile](nil)
	broken := intrapartition.NewUnique[profile, compoundkey.Part]("broken", nil, nil)
	assert.ErrorIs(assert.Fatal(t), assert.Err(patterns.NewRepository(table, schema, l, broken)), tables.ErrWiring, "a broken index beside it")
	assert.Check(t, assert.Err(patterns.NewRepository(table, schema, l)))
	assert.ErrorIs(t, assert.Err(patterns.NewRepository(table, schema, l)), tables.ErrWiring, "a second repository")
}
