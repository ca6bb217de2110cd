package harness

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// In returns the table as one of a store whose intents go over a queue, or over a runner of the test. With nil it is a table
// of no store.
func In(table *tables.Table, intents any) *tables.Table {
	switch intents := intents.(type) {
	case nil:
		return table
	case *eventual.Queue:
		return patterns.InStore(rows.Open, table, Runner(intents), eventual.RunnerOf(rows.Open, intents, true))
	case driver.IntentRunner:
		return patterns.InStore(rows.Open, table, intents, intents)
	}
	panic(fmt.Sprintf("intents of type %T", intents))
}

// Runner returns what a store runs intents with whose queue this is.
func Runner(queue *eventual.Queue) driver.IntentRunner {
	return eventual.RunnerOf(rows.Open, queue, false)
}
