package dataseries

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Number are the types of which slots can be added to.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Counter is a Series of numbers that are added to. Its Set and SetMany read first and write under the ETags of the rows, so that
// they undo no addition that was acknowledged before.
type Counter[V Number] struct {
	*Series[V]
}

// NewCounter is New for numbers.
func NewCounter[V Number](table *tables.Table, prefix string, slots int, o *Options) (*Counter[V], error) {
	s, err := New[V](table, prefix, slots, o)
	if err != nil {
		return nil, err
	}
	if rows, ok := s.shelf.(*rowShelf); ok {
		rows.counts = true
	}
	return &Counter[V]{s}, nil
}

// Add adds delta to a slot, which counts as zero where it is not there, and makes the series if it is not there. It reads the
// slot and writes it under the ETag of its row, and starts over when a rival was quicker, up to Options.MaxAttempts; then it
// is tables.ErrConflict, and nothing was added.
//
// Where an answer was lost and a rival has written since, it is unknown whether the delta is in the sum: that is
// tables.ErrUnknownOutcome, and an Add that is repeated then may count twice. AddOnce does not.
//
// A sum that V does not hold is tables.ErrInvalid and ErrOverflow. Floating-point numbers are added as V adds them; a sum of
// finite ones that is infinite overflows. Requests: 2, and 2 for each rival.
func (c *Counter[V]) Add(ctx context.Context, key tables.Key, slot int, delta V) error {
	const op = "Add"
	if _, err := c.adding(key, slot, delta); err != nil {
		return c.failed(op, key, err)
	}
	return c.failed(op, key, c.shelf.add(ctx, key, slot, c.sum(delta)))
}

// AddOnce is Add of an operation that has a name of its own: however often it is repeated, by whom and after what crash, the
// delta is counted once. counted tells that it was by this call; without an error, it was in any case.
//
// Beside the sum, in the same transaction, it leaves a marker with the name. SweepMarkers removes markers of a certain age; an
// operation that is repeated later than that counts again. A name belongs to one addition to one series: with another slot
// or delta it is tables.ErrExists and ErrOtherAddition. After tables.ErrUnknownOutcome, and any other error, it can be
// repeated.
//
// Requests: 2, and 2 for each rival; of one that was counted before, 3. In a blob 2, of one counted before 1.
func (c *Counter[V]) AddOnce(ctx context.Context, key tables.Key, slot int, delta V, operation string) (counted bool, err error) {
	const op = "AddOnce"
	m, err := c.mark(key, slot, delta, operation)
	if err != nil {
		return false, c.failed(op, key, err)
	}
	within, done := lease.Within(ctx, time.Now(), callTerm, errLateCall)
	defer done()
	counted, err = c.shelf.addOnce(within, m, c.sum(delta))
	if err != nil && lease.Lost(within, nil) && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", context.Cause(within), err) // the caller has cancelled nothing
	}
	return counted, c.failed(op, key, err)
}

// StageAddOnce puts an AddOnce into a transaction of the caller's own, so that the count moves with other rows of the
// partition or not at all. The transaction must be one of Table. It returns false where the operation was counted before:
// nothing is staged then, and what the operation wrote beside it is there.
//
// Nothing is written before the transaction is committed. Its tables.ErrConflict and ErrExists say that a rival was quicker:
// stage everything in a new transaction. So after tables.ErrUnknownOutcome, where staging tells what became of it.
// Each row of a series can be staged once in a transaction. A series in blobs is tables.ErrInvalid. Requests: 2.
func (c *Counter[V]) StageAddOnce(ctx context.Context, x *tables.Transaction, key tables.Key, slot int, delta V, operation string) (staged bool, err error) {
	const op = "StageAddOnce"
	m, err := c.mark(key, slot, delta, operation)
	if err != nil {
		return false, c.failed(op, key, err)
	}
	rows, ok := c.shelf.(*rowShelf)
	switch {
	case !ok:
		return false, c.failed(op, key, invalid(fmt.Errorf("the series are in blobs, which are in no transaction")))
	case x == nil || x.Table() == nil:
		return false, c.failed(op, key, invalid(fmt.Errorf("the transaction was not made by NewTransaction")))
	case !x.Table().Same(c.Table()):
		return false, c.failed(op, key, invalid(fmt.Errorf("the transaction is on another table")))
	}
	known, _, err := rows.known(ctx, m)
	if err != nil || known {
		return false, c.failed(op, key, err)
	}
	row, err := rows.added(ctx, key, slot, c.sum(delta))
	if err != nil {
		return false, c.failed(op, key, err)
	}
	m.stage(x, row)
	return true, nil
}

// adding checks an addition.
func (c *Counter[V]) adding(key tables.Key, slot int, delta V) (tables.Value, error) {
	if err := c.check(key, slot); err != nil {
		return tables.Value{}, err
	}
	return c.encode(delta)
}

func (c *Counter[V]) mark(key tables.Key, slot int, delta V, operation string) (*mark, error) {
	value, err := c.adding(key, slot, delta)
	if err != nil {
		return nil, err
	}
	return newMark(&c.layout, key, slot, value, operation)
}

// sum adds delta to what a slot holds.
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
		if err != nil { // an unsigned integer over the largest that is stored
			return tables.Value{}, overflow()
		}
		return value, nil
	}
}

func overflow() error { return invalid(ErrOverflow) }
