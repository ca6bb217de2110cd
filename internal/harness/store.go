package harness

import (
	"context"
	"fmt"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// In returns a handle of the table that, like a table of a store, has a carrier for the intents of its
// repositories: a queue, or a runner of the test. A nil carrier means none.
func In(table *tables.Table, carrier any) *tables.Table {
	switch carrier := carrier.(type) {
	case nil:
		return table
	case *eventual.Queue:
		return owned(table, eventual.RunnerOf(rows.Open, carrier, 0))
	case intents.Runner:
		return owned(table, carrier)
	}
	panic(fmt.Sprintf("intents carried by a %T", carrier))
}

func owned(table *tables.Table, runner intents.Runner) *tables.Table {
	copied := *table
	*tables.OwnerOf(rows.Open, &copied) = runner
	return &copied
}

// Runner returns the runner of intents that a store with this queue uses.
func Runner(queue *eventual.Queue) intents.Runner {
	return eventual.RunnerOf(rows.Open, queue, 0)
}

// AsyncIf wraps those patterns that have effects outside of the partition in patterns.Async, and returns the others unchanged.
func AsyncIf[T any](async bool, all ...patterns.Pattern[T]) []patterns.Pattern[T] {
	if !async {
		return all
	}
	asynchronous := make([]patterns.Pattern[T], len(all))
	for i, p := range all {
		asynchronous[i] = perhapsAsync[T]{p}
	}
	return asynchronous
}

// perhapsAsync is a pattern whose effects outside of the partition, if it has any, are left to workers.
type perhapsAsync[T any] struct{ patterns.Pattern[T] }

// Attach implements patterns.Pattern.
func (p perhapsAsync[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	i, err := p.Pattern.Attach(host)
	i.Async = i.Outside != nil || i.OutsideKeys != nil
	return i, err
}

// ApplyAndClose returns a function that applies the effects of a change and closes its intent.
func ApplyAndClose(apply func(context.Context) (intents.Rest, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		rest, err := apply(ctx)
		if err == nil && rest.Close != nil {
			err = rest.Close(ctx)
		}
		return err
	}
}
