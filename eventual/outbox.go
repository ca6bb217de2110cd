package eventual

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/sharedlocks"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Outbox is the pattern that OnCommit returns, for patterns.NewRepository.
type Outbox[T any] struct {
	name       string
	handle     func(ctx context.Context, c Commit[T]) error
	options    OutboxOptions
	repository driver.Binding
	turns      sharedlocks.Locks // one lock for each entity, so that the calls of this process do not compete for the lock row
}

// OutboxOptions are the options of OnCommit; nil is the same as the zero value.
type OutboxOptions struct {
	// Deletes makes the outbox also call the handler, with a nil Entity, after a delete, and for an entity that was deleted before the call.
	// Without it, a delete needs no intent for the outbox.
	Deletes bool
	// Ordered makes the calls for one entity follow one another, in all processes: no call gets an earlier state than one before it. While a call
	// fails, later calls for the entity fail, too, and their intents can go to the poison queue. When the cause is gone, requeue all of them; if
	// the intent of the failed call was purged, call Unlock. A call that has waited 15 to 30 s for another is left to a worker, and so is the call
	// for a change that the handler makes of its own entity. Two calls with one Commit.ID can still overlap, if the put of the intent got no
	// response and was repeated. Requests for each call: 3 more, for a lock row beside the entity.
	Ordered bool
}

// Commit is a committed change of an entity, as the handler of OnCommit gets it.
type Commit[T any] struct {
	// ID identifies a change of one entity for one outbox, in all its calls and processes. A handler that must act once for each change stores it
	// together with its effect. It has 32 characters, all allowed in keys and file names.
	ID  string
	Key tables.Key
	// Entity is the entity when the handler is called: with the change, and possibly later ones. It can be a shallow copy of the caller's value: do
	// not change what it points to. It is nil, only with OutboxOptions.Deletes, if the entity does not exist.
	Entity *T
}

// OnCommit returns an outbox: a pattern that calls handle at least once after each committed insert, replace or merge of an entity of the
// repository, and with OutboxOptions.Deletes after each delete. The writer calls handle before the verb returns; with patterns.Async, or if the
// writer dies or the call fails, a worker of the Store calls it. Rebuild, Repair, Upgrade and Reencrypt do not call it. name is stored in intents;
// do not change it while such intents are on the queue.
//
// An error or a panic of the handler does not fail the committed change. It is logged, and a worker calls the handler again, as a Handler: after
// WorkerOptions.MaxDequeues deliveries the intent goes to the poison queue. The repository's other patterns have done their work before the call,
// unless another entity owns one of the entity's index keys: then each delivery calls the handler and fails.
//
// Calls can be duplicated, reordered and concurrent: see Commit.ID and OutboxOptions.Ordered. If the entity changes during a call, the handler is
// called again with the same ID and the later state, at most Schema.MaxAttempts times in a delivery; then a later delivery continues, which is no
// failure. A handler that changes its own entity is called for that change, too. A handler that overwrites a destination with the entity's state
// leaves the last state there, if all its requests have ended when it returns; an abandoned request can arrive later and overwrite a newer state. A
// worker also calls the handler again if another pattern has work left, for example with patterns.Async.
//
// The handler's context ends as that of a Handler. Send all requests under it.
//
// After a crash the handler may be called for a change that was not committed; it still gets only committed states. A worker knows that a change
// was not committed if the stored entity has the write ID from before it. If the entity was written since, was never there, or has no write ID
// because another program wrote it, or if another pattern added the change to the caller's, the worker calls the handler with the current entity,
// or with nil if there is none and Deletes is set.
//
// Requests: none beyond those of the intent, which a repository with other effects outside of its partition has anyway: 1 to put it, 1 to read the
// entity again, 1 to delete it.
func OnCommit[T any](name string, handle func(ctx context.Context, c Commit[T]) error, options *OutboxOptions) *Outbox[T] {
	o := &Outbox[T]{name: name, handle: handle}
	if options != nil {
		o.options = *options
	}
	return o
}

// Attach implements patterns.Pattern.
func (o *Outbox[T]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	if o.handle == nil {
		return driver.Implementation{Name: o.name}, errors.New("OnCommit was given a nil handler; give it a function")
	}
	return driver.Implementation{Name: o.name, Binding: &o.repository, Pattern: o, Intents: IntentQueue(nil), Effect: driver.Effect{Last: true, OutsideKeys: o.namePrior,
		Reconcile: func(ctx context.Context, all []*driver.Reconciliation) error {
			o.reconcile(ctx, host, all)
			return nil
		}}}, nil
}

// unknownPrior stands in an intent for the write ID of an entity that is absent or has none: no worker can then prove that the change was not
// committed.
const unknownPrior = "-"

// namePrior puts the prior write ID into the intent: as long as the stored entity has it, the change is not committed.
func (o *Outbox[T]) namePrior(_ context.Context, c *driver.Change) ([]string, error) {
	switch {
	case c.Kind == driver.ChangeTouch, c.Rewritten, c.Kind == driver.ChangeDelete && !o.options.Deletes:
		return nil, nil
	case c.PriorWriteID == "":
		return []string{unknownPrior}, nil
	}
	return []string{c.PriorWriteID}, nil
}

const callsAtOnce = 8

func (o *Outbox[T]) reconcile(ctx context.Context, host driver.Host, all []*driver.Reconciliation) {
	if len(all) == 1 {
		all[0].Err = o.reconcileOne(ctx, host, all[0])
		return
	}
	var calls errgroup.Group
	calls.SetLimit(callsAtOnce)
	for _, r := range all {
		r.Err = o.failure(r.Key, errGoexit) // until the call returns
		calls.Go(func() error {
			r.Err = o.reconcileOne(ctx, host, r)
			return nil
		})
	}
	_ = calls.Wait() // no call returns an error to the group
}

// reconcileOne calls the handler for an entity, unless its change is known not to be committed.
func (o *Outbox[T]) reconcileOne(ctx context.Context, host driver.Host, r *driver.Reconciliation) error {
	if r.Entity != nil && host.MetaOf(r.Entity).WriteID() == r.Keys[0] {
		return nil
	}
	c := Commit[T]{ID: rows.Hash(o.name, r.ChangeID, r.Key.Partition, r.Key.Row), Key: r.Key}
	if o.options.Ordered {
		return o.inTurn(ctx, host, c)
	}
	return o.callWith(ctx, c, driver.As[T](r.Entity))
}

// callWith calls the handler with a copy of the entity.
func (o *Outbox[T]) callWith(ctx context.Context, c Commit[T], entity *T) (err error) {
	if entity != nil {
		v := *entity
		c.Entity = &v
	} else if !o.options.Deletes {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = o.failure(c.Key, &panicError{value: p, stack: string(debug.Stack())})
		}
	}()
	if err := o.handle(telemetry.Outside(ctx), c); err != nil {
		return o.failure(c.Key, err)
	}
	return nil
}

// failure hides the kind of the handler's own error, which is not about this entity.
func (o *Outbox[T]) failure(key tables.Key, err error) error {
	f := &callError{text: "the handler of OnCommit failed: " + errorText(err)}
	f.panicked, _ = err.(*panicError)
	return &tables.Error{Key: key, Pattern: o.name, Err: f}
}

type callError struct {
	text     string
	panicked *panicError // the panic, or nil if the handler has returned
}

func (e *callError) Error() string { return e.text }

// As finds the panic, whose stack goes into the entry on the poison queue.
func (e *callError) As(target any) bool {
	p, ok := target.(**panicError)
	if ok && e.panicked != nil {
		*p = e.panicked
	}
	return ok && e.panicked != nil
}

func (o *Outbox[T]) inTurn(ctx context.Context, host driver.Host, c Commit[T]) error {
	turn := turnKey{&o.turns, c.Key}
	if ctx.Value(turn) != nil {
		return &tables.Error{Op: "Reconcile", Table: host.Table().Name(), Key: c.Key, Pattern: o.name, Kind: tables.ErrConflict,
			Err: fmt.Errorf("%w: the handler has changed the entity for which it is called; a worker calls it for that change", errTurn)}
	}
	over, err := o.takeTurn(ctx, c.Key)
	if err != nil {
		return err
	}
	defer over()
	ctx = context.WithValue(ctx, turn, true)
	lock := o.lockOf(c.Key)
	if err := lock.acquire(ctx, host.Table(), c.ID); err != nil {
		return err
	}
	entity, err := driver.Got[T](host.Get(ctx, c.Key))
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return err
	}
	if err := o.callWith(ctx, c, entity); err != nil {
		return err
	}
	return lock.release(ctx, host.Table())
}

// Unlock removes the lock of an Ordered outbox on an entity, after the intent of the failed call was purged from the poison queue. While the intent
// is there, requeue it instead. Requests: 2.
func (o *Outbox[T]) Unlock(ctx context.Context, key tables.Key) error {
	host, err := o.repository.Host("Unlock", o.name)
	if err != nil {
		return err
	}
	lock := o.lockOf(key)
	row, err := lock.read(ctx, host.Table())
	if err != nil {
		return err
	}
	lock.row = row
	return lock.release(ctx, host.Table())
}

func (o *Outbox[T]) lockOf(key tables.Key) *entityLock {
	return &entityLock{key: tables.Key{Partition: key.Partition, Row: lockRow + rows.Hash(o.name, key.Row)}}
}

// errTurn means that another call for the entity is under way: the intent waits for its next delivery.
var errTurn = errors.New("another call for the entity is under way")

// turnWait limits how long a call waits for another in this process. Without it, two handlers that change each other's entities would wait forever.
const turnWait = 30 * time.Second

// turnKey marks the context of a handler with the entity whose lock it holds.
type turnKey struct {
	of  *sharedlocks.Locks
	key tables.Key
}

func (o *Outbox[T]) takeTurn(ctx context.Context, key tables.Key) (over func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, turnWait-backoff.Jitter(turnWait/2), errTurn)
	defer cancel()
	over, err = o.turns.Acquire(ctx, []string{rows.Hash(key.Partition, key.Row)})
	if err != nil {
		return nil, &tables.Error{Op: "Reconcile", Key: key, Kind: tables.ErrConflict,
			Err: fmt.Errorf("the wait for the handler of another change of the entity ended: %w", context.Cause(ctx))}
	}
	return over, nil
}

const (
	// lockOwner is the value of _tpShared in the lock rows of ordered outboxes.
	lockOwner = "outbox"
	// lockRow is the prefix of the row keys of lock rows.
	lockRow = "\uFFFCoutboxlock_"
	// lockHolder is the property of a lock row that holds the Commit.ID of the call that has the lock.
	lockHolder = "Commit"
	// lockAttempts limits how often a call tries to acquire a lock before a later delivery does.
	lockAttempts = 10
)

// entityLock is the lock row of an ordered outbox for one entity. It belongs to a change, not to a process: if the process dies, the next holder of
// the change's message uses it.
type entityLock struct {
	key tables.Key
	row *tables.Entity // as inserted or read
}

// acquire inserts the lock row, unless the change already holds it. Requests: 1; if the row exists 2, repeated while another change holds it.
func (l *entityLock) acquire(ctx context.Context, table *tables.Table, id string) error {
	return backoff.Retry(ctx, lockAttempts, func() (again bool, err error) {
		l.row = &tables.Entity{Key: l.key}
		l.row.Set(lockHolder, tables.String(id))
		inserted := driver.Beside{Owner: lockOwner, Rows: []driver.RowOperation{{Verb: driver.InsertRow, Row: l.row}}}
		err = inserted.Write(ctx, table)
		if err == nil && l.row.ETag != "" || !errors.Is(err, tables.ErrExists) && err != nil {
			return false, err
		}
		there, err := l.read(ctx, table)
		switch {
		case errors.Is(err, tables.ErrNotFound):
			return true, l.taken(table, errors.New("another change held the lock and has just released it; a later delivery tries again"))
		case err != nil:
			return false, err
		}
		if holder, _ := there.Get(lockHolder).Text(); holder != id {
			return true, l.taken(table, fmt.Errorf("the change with Commit.ID %q holds the lock until its handler succeeds; requeue its intent if that is on the poison queue, or call Outbox.Unlock if it was purged", holder))
		}
		l.row = there
		return false, nil
	})
}

func (l *entityLock) taken(table *tables.Table, why error) error {
	return &tables.Error{Op: "Reconcile", Table: table.Name(), Key: l.key, Kind: tables.ErrConflict, Err: fmt.Errorf("%w: %w", errTurn, why)}
}

func (l *entityLock) read(ctx context.Context, table *tables.Table) (*tables.Entity, error) {
	return table.Entities().Get(ctx, l.key)
}

// release deletes the lock row. Requests: 1.
func (l *entityLock) release(ctx context.Context, table *tables.Table) error {
	deleted := driver.Beside{Owner: lockOwner, Rows: []driver.RowOperation{{Verb: driver.DeleteRow, Row: l.row}}}
	err := deleted.Write(ctx, table)
	if errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrConflict) {
		return nil // an earlier attempt, or Unlock, has deleted it
	}
	return err
}
