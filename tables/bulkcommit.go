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

// commit writes one transaction. It leaves out units that exist already, and units that have to be written alone.
func (b *bulk) commit(ctx context.Context, units []*lanes.Unit[BulkUnit]) error {
	for len(units) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		etags, err := b.write(ctx, units)
		if err == nil {
			b.done(units, etags)
			return nil
		}
		if n := len(units); n > 1 && errors.Is(err, ErrTooLarge) {
			if err := b.commit(ctx, units[:n/2]); err != nil { // their patterns add too many rows for one transaction
				return err
			}
			units = units[n/2:]
			continue
		}
		if errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, ErrExists) && !errors.Is(err, ErrDuplicate) {
			return err
		}
		left := units
		if b.options.SkipExisting {
			var checkErr error
			if left, checkErr = b.withoutExisting(ctx, units); checkErr != nil {
				return checkErr
			}
		}
		if len(left) == len(units) {
			if left, err = b.writeAlone(ctx, units, err); err != nil {
				return err
			}
		}
		units = left
	}
	return nil
}

// write sends the rows of units. The ETags are nil for units that their repository writes together.
func (b *bulk) write(ctx context.Context, units []*lanes.Unit[BulkUnit]) ([]azcore.ETag, error) {
	if together := units[0].Value.Together; together != nil {
		values := make([]BulkUnit, len(units))
		for i, u := range units {
			values[i] = u.Value
		}
		return nil, together(ctx, values)
	}
	var writes []RawWrite
	for _, u := range units {
		writes = append(writes, u.Value.Writes...)
	}
	return b.table.commit(ctx, b.op, writes, rowwriter.NewWriteID())
}

// changes is how many changes of an error are of the unit.
func (u *BulkUnit) changes() int {
	if u.Together != nil {
		return 1
	}
	return len(u.Writes)
}

// writeAlone handles the unit that failed because an index key is taken: its Alone function can distinguish an
// orphaned copy from another entity's copy, and claim it. It returns the remaining units, or err if the failure has
// another cause.
func (b *bulk) writeAlone(ctx context.Context, units []*lanes.Unit[BulkUnit], err error) ([]*lanes.Unit[BulkUnit], error) {
	e := asError(err)
	if !errors.Is(err, ErrDuplicate) {
		return nil, err
	}
	first := 0 // change
	for i, u := range units {
		first += u.Value.changes()
		if e.Change > first {
			continue
		}
		if u.Value.Alone == nil {
			return nil, err
		}
		if err := u.Value.Alone(ctx); err != nil {
			return nil, relabel(b.op, b.table, err)
		}
		b.done([]*lanes.Unit[BulkUnit]{u}, nil)
		return slices.Concat(units[:i], units[i+1:]), nil
	}
	return nil, err
}

// withoutExisting leaves out the units whose entity exists.
func (b *bulk) withoutExisting(ctx context.Context, units []*lanes.Unit[BulkUnit]) ([]*lanes.Unit[BulkUnit], error) {
	there := make([]bool, len(units))
	keys := make([]Key, len(units))
	index := make(map[Key]int, len(units))
	for i, u := range units {
		keys[i] = u.Value.Writes[0].Key
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
	b.met(existing)
	return left, nil
}

// met counts units that exist already.
func (b *bulk) met(units []*lanes.Unit[BulkUnit]) {
	b.lanes.Done(units, func(resume int64) {
		b.progress.Unchanged += int64(len(units))
		b.progress.Resume = strconv.FormatInt(resume, 10)
	})
}

// done counts a committed transaction and reports it. etags are nil for a unit that was written by its Alone.
func (b *bulk) done(units []*lanes.Unit[BulkUnit], etags []azcore.ETag) {
	b.lanes.Done(units, func(resume int64) {
		at := 0
		for _, u := range units {
			if etags != nil {
				u.Value.Written(etags[at])
			}
			at += len(u.Value.Writes)
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
