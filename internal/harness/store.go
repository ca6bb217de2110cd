package harness

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// In returns the table with a queue, or a runner of the test, for the intents of its repositories, as a store's table has one.
// With nil it is a table without.
func In(table *tables.Table, carrier any) *tables.Table {
	switch carrier := carrier.(type) {
	case nil:
		return table
	case *eventual.Queue:
		return owned(table, eventual.RunnersOf(rows.Open, carrier))
	case intents.Runner:
		return owned(table, intents.Runners{Sync: carrier, Async: carrier})
	}
	panic(fmt.Sprintf("intents carried by a %T", carrier))
}

func owned(table *tables.Table, runners intents.Runners) *tables.Table {
	copied := *table
	*tables.OwnerOf(rows.Open, &copied) = runners
	return &copied
}

// Runner returns what a store runs intents with whose queue this is.
func Runner(queue *eventual.Queue) intents.Runner {
	return eventual.RunnersOf(rows.Open, queue).Sync
}
