package eventual

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Events hands events to a handler, each at least once, that a program has staged in transactions: an event exists if and only if its
// transaction was committed. Use it for what a change of an entity means, such as "ticket closed", which OnCommit cannot tell from the entity. An
// Events is safe for concurrent use.
type Events[E any] struct {
	name string
	rows *patterns.Repository[eventRow[E]]
}

// Event is a committed event, as the handler of NewEvents gets it.
type Event[E any] struct {
	ID        string // the same in all calls for the event: a handler that must act once stores it together with its effect
	Partition string // of the transaction
	Body      E
}

// EventsOptions are the options of NewEvents; nil is the same as the zero value.
type EventsOptions struct {
	// Async leaves the calls to the workers (default false: the writer calls the handler before Commit returns).
	Async bool
}

// eventRow is an event that was not handled yet.
type eventRow[E any] struct {
	tables.Meta
	PartitionKey, RowKey, ID string
	Body                     E `table:",json"`
}

// NewEvents returns the events of one kind in a table of a store. handle is called after the commit, by the writer or, if the writer dies or the call fails, by a
// worker of the store (see Store.Start). Calls can be duplicated, reordered and concurrent, with the same Event.ID. An error of handle does not fail the committed
// transaction: a worker calls handle again and, after WorkerOptions.MaxDequeues deliveries, puts the intent on the poison queue; the event stays stored.
//
// An event is a row in the partition of its transaction, with the RowKey name, "_" and the ID, until it is handled; so name must be the beginning of no other row keys of the
// table. It is stored in intents, too: do not change it. The row holds the JSON of E in the property Body, at most 32,768 UTF-16 units.
//
// Requests for each event, beside those of the transaction: 2 for the intent of the transaction, up to 2 to read the row, 1 to delete it.
func NewEvents[E any](table *tables.Table, name string, handle func(ctx context.Context, e Event[E]) error, options *EventsOptions) (*Events[E], error) {
	if handle == nil {
		return nil, errs.Wiringf("NewEvents", "", "the handler of the events %q is nil; give a function", name)
	}
	pattern := patterns.Pattern[eventRow[E]](OnCommit(name, func(ctx context.Context, c Commit[eventRow[E]]) error {
		if err := handle(ctx, Event[E]{ID: c.Entity.ID, Partition: c.Key.Partition, Body: c.Entity.Body}); err != nil {
			return err
		}
		if err := table.Entities().DeleteUnconditional(ctx, c.Key); err != nil && !errors.Is(err, tables.ErrNotFound) { // after another call
			return err
		}
		return nil
	}, &OutboxOptions{On: Inserts}))
	if options != nil && options.Async {
		pattern = patterns.Async(pattern)
	}
	rows, err := patterns.NewRepository(table, patterns.Schema[eventRow[E]]{Name: name, Prefix: name}, pattern)
	if err != nil {
		return nil, err
	}
	return &Events[E]{name: name, rows: rows}, nil
}

// Stage adds an event to a transaction on the table of the events, in the transaction's partition. An event that cannot be stored makes Commit return
// tables.ErrInvalid. Requests: 0; see NewEvents.
func (e *Events[E]) Stage(x *tables.Transaction, partition string, event E) {
	id := uuid.NewString()
	e.rows.StageInsert(x, &eventRow[E]{PartitionKey: partition, RowKey: compoundkey.Join(e.name, compoundkey.String(id)), ID: id, Body: event})
}
