package tables

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/lanes"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
)

// bulkDivision writes the units of one transaction, in several transactions if the service refuses them together.
type bulkDivision struct {
	*bulk
	sets    bool  // a repository writes the units as change sets, which can do more than their rows, such as claim an orphaned copy
	refused error // of the first unit that ends the run
}

// write writes units in one transaction if possible. If the service's error names a unit, write sends the others first, then that unit
// alone. If it names none, or the units are too large for one transaction, write halves them. It returns only an error that ends the
// run at once.
func (d *bulkDivision) write(ctx context.Context, units []*lanes.Unit[BulkUnit]) error {
	if len(units) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	err := d.send(ctx, units)
	if err == nil {
		return nil
	}
	at, e := -1, asError(err)
	if len(units) == 1 {
		at = 0
	} else if e != nil {
		at = lanes.Named(units, e.Change, func(u BulkUnit) int {
			if d.sets {
				return 1
			}
			return len(u.Writes)
		})
	}
	located, ofEntity := d.located(units, at, err)
	if !ofEntity || ctx.Err() != nil {
		return located
	}
	if d.options.SkipExisting && d.options.Verb == BulkInsert && (errors.Is(err, ErrExists) || errors.Is(err, ErrDuplicate)) {
		left, err := d.withoutExisting(ctx, units)
		if err != nil {
			return err
		}
		if len(left) < len(units) {
			return d.write(ctx, left)
		}
	}
	final := len(units) == 1 && (d.sets || units[0].Value.Together == nil)
	if at >= 0 && e.Pattern == "" && slices.Contains([]error{ErrConflict, ErrExists, ErrNotFound}, KindOf(err)) && e.Key == units[at].Value.Key && !units[at].Value.Again {
		final = true // the entity's own row does not meet the write's condition, so writing the entity by itself would fail in the same way
	}
	if final {
		if err := d.refuse(units[at], located, true); err != nil && d.refused == nil {
			d.refused = err
		}
		return d.write(ctx, slices.Concat(units[:at], units[at+1:]))
	}
	d.lanes.Done(nil, func(int64) { d.progress.Conflicts++ })
	switch middle := len(units) / 2; {
	case !d.sets && units[0].Value.Together != nil && (len(units) == 1 || errors.Is(err, ErrDuplicate)):
		d.sets = true
		return d.write(ctx, units)
	case at < 0 || errors.Is(err, ErrTooLarge):
		if err := d.write(ctx, units[:middle]); err != nil {
			return err
		}
		return d.write(ctx, units[middle:])
	}
	if err := d.write(ctx, slices.Concat(units[:at], units[at+1:])); err != nil {
		return err
	}
	d.sets = d.sets || units[at].Value.Together != nil
	return d.write(ctx, units[at:at+1])
}

// send sends one transaction with all units.
func (d *bulkDivision) send(ctx context.Context, units []*lanes.Unit[BulkUnit]) error {
	if d.sets {
		values := make([]BulkUnit, len(units))
		for i, u := range units {
			values[i] = u.Value
		}
		err := values[0].Together(ctx, values)
		if err == nil {
			d.done(units, nil, "")
		}
		return err
	}
	var writes []RawWrite
	for _, u := range units {
		writes = append(writes, u.Value.Writes...)
	}
	writeID := rowwriter.NewWriteID()
	etags, err := d.table.commit(ctx, d.op, writes, writeID)
	if err == nil {
		d.done(units, etags, writeID)
	}
	return err
}

// located adds to an error the key of its entity and its position in the sequence; at is -1 for an error of the whole
// transaction. ofEntity reports whether the error is about an entity, so that others can be written without it.
func (b *bulk) located(units []*lanes.Unit[BulkUnit], at int, err error) (located *Error, ofEntity bool) {
	located = &Error{Err: err}
	if e, ok := err.(*Error); ok {
		*located = *e
	}
	located.Op, located.Table, located.Change = b.op, b.table.name, 0
	if at >= 0 {
		located.Change = int(units[at].Sequence)
		if located.Key == (Key{}) {
			located.Key = Loggable(rows.Open, units[at].Value.Key)
		}
	}
	return located, slices.Contains([]error{ErrExists, ErrDuplicate, ErrConflict, ErrNotFound, ErrMissingReference, ErrInvalid, ErrTooLarge, ErrGarbled}, KindOf(err))
}

// refuse passes the error of an entity that cannot be written to BulkOptions.Refused. It returns the error that ends
// the run.
func (b *bulk) refuse(u *lanes.Unit[BulkUnit], e *Error, ofEntity bool) error {
	if b.options.Refused == nil || !ofEntity {
		return e
	}
	b.calls.Lock()
	defer b.calls.Unlock()
	if err := b.options.Refused(e); err != nil {
		return err
	}
	b.lanes.Done([]*lanes.Unit[BulkUnit]{u}, func(resume int64) {
		b.progress.Failed++
		b.progress.Resume = strconv.FormatInt(resume, 10)
	})
	return nil
}

// withoutExisting leaves out the units whose entity exists, and counts them as done.
func (b *bulk) withoutExisting(ctx context.Context, units []*lanes.Unit[BulkUnit]) ([]*lanes.Unit[BulkUnit], error) {
	there := make([]bool, len(units))
	keys := make([]Key, len(units))
	index := make(map[Key]int, len(units))
	for i, u := range units {
		keys[i] = u.Value.Key
		index[keys[i]] = i
	}
	for row, err := range GetManyOf(ctx, rows.Open, b.table.rawRows(), keys, &ParallelOptions[RawRow]{Concurrency: existingConcurrency}) {
		if err != nil {
			return nil, err
		}
		there[index[row.Key]] = true
	}
	var left, existing []*lanes.Unit[BulkUnit]
	for i, u := range units {
		if there[i] {
			existing = append(existing, u)
		} else {
			left = append(left, u)
		}
	}
	b.lanes.Done(existing, func(resume int64) {
		b.progress.Unchanged += int64(len(existing))
		b.progress.Resume = strconv.FormatInt(resume, 10)
	})
	return left, nil
}

// done counts a committed transaction and reports it. etags are nil for units that their repository has written together.
func (b *bulk) done(units []*lanes.Unit[BulkUnit], etags []azcore.ETag, writeID string) {
	b.lanes.Done(units, func(resume int64) {
		at := 0
		for _, u := range units {
			after := at + len(u.Value.Writes)
			if etags != nil {
				u.Value.Written(etags[at:after], writeID)
			}
			at = after
		}
		b.progress.Written += int64(len(units))
		b.progress.Rows += int64(at)
		b.progress.Transactions++
		b.progress.Resume = strconv.FormatInt(resume, 10)
		b.progress.Elapsed = time.Since(b.started)
		if b.options.Progress != nil {
			b.options.Progress(b.progress)
		}
	})
}
