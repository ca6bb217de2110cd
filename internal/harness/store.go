package harness

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// In returns the table as one of a store whose intents go over a queue, or over a runner of the test. With nil it is a table
// of no store.
func In(table *tables.Table, carrier any) *tables.Table {
	switch carrier := carrier.(type) {
	case nil:
		return table
	case *eventual.Queue:
		return patterns.InStore(rows.Open, table, Runner(carrier), eventual.RunnerOf(rows.Open, carrier, true))
	case intents.Runner:
		return patterns.InStore(rows.Open, table, carrier, carrier)
	}
	panic(fmt.Sprintf("intents carried by a %T", carrier))
}

// Runner returns what a store runs intents with whose queue this is.
func Runner(queue *eventual.Queue) intents.Runner {
	return eventual.RunnerOf(rows.Open, queue, false)
}
