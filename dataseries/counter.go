package dataseries

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Number is the set of types to which Counter can add.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Counter is a Series of numbers to which a program can add. Its Set and SetMany read first and write under
// the rows' ETags, so that a late request of theirs never undoes an acknowledged addition.
type Counter[V Number] struct {
	*Series[V]
}

// NewCounter does what New does, for a series of numbers.
func NewCounter[V Number](table *tables.Table, prefix string, slots int, options *Options) (*Counter[V], error) {
	s, err := New[V](table, prefix, slots, options)
	if err != nil {
		return nil, err
	}
	if shelf, ok := s.shelf.(*rowShelf); ok {
		shelf.counts = true
	}
	return &Counter[V]{s}, nil
}

// Add adds delta to a slot; a missing slot counts as zero, and a missing series is created. Add reads the slot and
// writes it under its row's ETag. On conflict it tries again, in at most Options.MaxAttempts attempts (default 20).
// Then it returns tables.ErrConflict, and nothing was added.
//
// If a response was lost and a concurrent writer has written since, it is unknown whether the delta was added: Add
// returns tables.ErrUnknownOutcome, and a repeated Add may count twice. AddOnce does not.
//
// Add returns tables.ErrInvalid with the cause ErrOverflow for a sum that V cannot hold. Floating-point numbers are
// added in V; an infinite sum of finite numbers overflows. Requests: 2, and 2 for each conflict.
func (c *Counter[V]) Add(ctx context.Context, key tables.Key, slot int, delta V) error {
	const op = "Add"
	if _, err := c.adding(key, slot, delta); err != nil {
		return c.failed(op, key, err)
	}
	return c.failed(op, key, c.shelf.add(ctx, key, slot, c.sum(delta)))
}

// AddOnce adds like Add, for an operation with an ID. However often the call is repeated, by any process and after
// any crash, the delta is counted once. counted reports whether this call counted the delta. If err is nil, this call
// or an earlier one has counted it.
//
// In the transaction that writes the sum, AddOnce also inserts a marker with the ID. SweepMarkers removes old
// markers; an operation repeated after that counts again. An ID has 1 to 512 UTF-16 units. Each series has its
// own IDs: if the series has counted the ID with another slot or delta, AddOnce returns tables.ErrExists with the
// cause ErrOtherAddition. A call ends within 50 minutes. After tables.ErrUnknownOutcome, or any other error, repeat the
// call with the same ID.
//
// Requests: 2, and 2 for each conflict; 3 for an operation that was counted before. In a blob 2, or 1 if it was
// counted before.
func (c *Counter[V]) AddOnce(ctx context.Context, key tables.Key, slot int, delta V, operation string) (counted bool, err error) {
	const op = "AddOnce"
	m, err := c.mark(key, slot, delta, operation)
	if err != nil {
		return false, c.failed(op, key, err)
	}
	within, done := lease.Term{Since: time.Now(), Lasts: callTerm, Cause: errLateCall}.Context(ctx)
	defer done()
	counted, err = c.shelf.addOnce(within, m, c.sum(delta))
	if err != nil && lease.Lost(within, nil) && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", context.Cause(within), err) // the caller has not cancelled ctx
	}
	return counted, c.failed(op, key, err)
}

// StageAddOnce puts an AddOnce into the caller's transaction, so that it is applied together with other rows of the
// partition. The transaction must be on the counter's own table. staged is false if the operation was counted before:
// nothing is staged then, and the rows written with the operation exist.
//
// Nothing is written before the transaction is committed. If Commit returns tables.ErrConflict, ErrExists,
// ErrUnknownOutcome, or ErrNotFound because the series was deleted meanwhile, stage everything in a new transaction; after
// ErrUnknownOutcome, StageAddOnce finds out whether the operation was counted. Each row of a series can be staged once in a
// transaction. For a series in blobs it returns tables.ErrWiring. Requests: 2; 1 if the operation was counted before.
func (c *Counter[V]) StageAddOnce(ctx context.Context, x *tables.Transaction, key tables.Key, slot int, delta V, operation string) (staged bool, err error) {
	const op = "StageAddOnce"
	m, err := c.mark(key, slot, delta, operation)
	if err != nil {
		return false, c.failed(op, key, err)
	}
	shelf, ok := c.shelf.(*rowShelf)
	switch {
	case !ok:
		return false, c.failed(op, key, errs.Wiringf("", "", "the series are in blobs, which a transaction cannot contain; use AddOnce, or declare the series in rows"))
	case x == nil || x.Table() == nil:
		return false, c.failed(op, key, errs.Wiringf("", "", "the transaction is nil or the zero value; make it with Table().NewTransaction"))
	case !x.Table().Same(c.Table()):
		return false, c.failed(op, key, errs.Wiringf("", "", "the transaction is on another table; make it with Table().NewTransaction"))
	}
	known, _, err := shelf.known(ctx, m)
	if err != nil || known {
		return false, c.failed(op, key, err)
	}
	row, err := shelf.added(ctx, key, slot, c.sum(delta))
	if err != nil {
		return false, c.failed(op, key, err)
	}
	m.stage(x, row)
	return true, nil
}

// adding checks an addition and returns its delta.
func (c *Counter[V]) adding(key tables.Key, slot int, delta V) (tables.Value, error) {
	if err := c.check(key, slot); err != nil {
		return tables.Value{}, err
	}
	return c.encode(delta)
}

// sum returns a function that adds delta to a slot's value.
func (c *Counter[V]) sum(delta V) sum {
	return func(old tables.Value) (tables.Value, error) {
		if old.IsNull() {
			return c.encode(delta)
		}
		v, err := c.decode(old)
		if err != nil {
			return tables.Value{}, err
		}
		total := v + delta
		infinite := math.IsInf(float64(total), 0) && !math.IsInf(float64(v), 0) && !math.IsInf(float64(delta), 0)
		if delta > 0 && total < v || delta < 0 && total > v || infinite {
			return tables.Value{}, overflow()
		}
		value, err := c.encode(total)
		if err != nil { // an unsigned integer larger than the largest integer that a table can store
			return tables.Value{}, overflow()
		}
		return value, nil
	}
}

func overflow() error { return errs.Invalid("", ErrOverflow) }

const (
	// markerPrefix begins the row keys of markers. compoundkey writes U+FFFC only after a '.', so markers sort after all
	// keys that it makes, and never between the rows of a series.
	markerPrefix = "\uFFFConce_"
	behindPrefix = "\uFFFConce`" // the character after '_'

	markerSeries    = "Series"    // row key of the series
	markerSlot      = "Slot"      // name of the slot's property
	markerOperation = "Operation" // the operation's ID
	markerDelta     = "Delta"
	markerCall      = "Call" // ID of the call that counted

	longestOperation = 512 // UTF-16 units
)

// mark records that an operation was counted.
type mark struct {
	key       tables.Key
	slot      int
	property  string
	operation string
	delta     tables.Value
	call      string
	hash      string
}

// mark checks an addition with an operation's ID, and returns its mark.
func (c *Counter[V]) mark(key tables.Key, slot int, delta V, operation string) (*mark, error) {
	value, err := c.adding(key, slot, delta)
	if err != nil {
		return nil, err
	}
	if operation == "" {
		return nil, errs.Invalidf("", "the operation's ID is empty; give each operation its own ID")
	}
	if n := edm.Units(operation); n > longestOperation {
		return nil, errs.Invalid("", &edm.SizeError{What: "the name of an operation", Size: n, Limit: longestOperation, Unit: "UTF-16 units"})
	}
	if err := edm.String(operation).Check(); err != nil {
		return nil, errs.Invalid("", err)
	}
	return &mark{key: key, slot: slot, property: c.layout.property(slot), operation: operation, delta: value, call: rand.Text(),
		hash: rows.Hash(c.layout.prefix, key.Row, operation)}, nil
}

// row returns the key of the marker.
func (m *mark) row() tables.Key {
	return tables.Key{Partition: m.key.Partition, Row: markerPrefix + m.hash}
}

// stage adds the marker and the slot's row to a transaction. The marker is first, so that the transaction's error
// names the marker if the operation was counted before.
func (m *mark) stage(x *tables.Transaction, row *tables.Entity) {
	x.Insert(&tables.Entity{Key: m.row(), Properties: tables.Properties{
		{Name: markerSeries, Value: tables.String(m.key.Row)},
		{Name: markerSlot, Value: tables.String(m.property)},
		{Name: markerOperation, Value: tables.String(m.operation)},
		{Name: markerDelta, Value: m.delta},
		{Name: markerCall, Value: tables.String(m.call)},
	}})
	if row.ETag == "" {
		x.Insert(row)
	} else {
		x.Merge(row)
	}
}

// same compares the slot and the delta of the stored mark. It returns an error if the mark belongs to another
// addition with the same operation ID.
func (m *mark) same(slot, delta tables.Value) error {
	if slot != tables.String(m.property) || delta != m.delta {
		return &tables.Error{Key: m.key, Kind: tables.ErrExists, Err: ErrOtherAddition}
	}
	return nil
}
