package backup

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// maxTransaction limits the estimated size of a transaction in bytes.
	maxTransaction = tables.MaxTransactionSize - 64<<10
	// operationOverhead is what an operation adds to a transaction besides its row: headers, boundaries and the account's address.
	operationOverhead = 1024
	// maxRounds limits how often a transaction is sent if concurrent writers or lost responses interfere.
	maxRounds = 8
	// maxLook limits the pages of the destination that there reads to find the rows of a transaction.
	maxLook = 4
)

// writer writes rows unchanged into a table.
type writer struct {
	*run
	table *tables.Table
}

// row returns the write of a row. The caller must not use properties afterwards.
func (w *writer) row(key tables.Key, properties tables.Properties) tables.RawWrite {
	verb := wire.VerbInsert
	if w.options.Existing == ReplaceExisting {
		verb = wire.VerbReplace // without an ETag, a replace inserts the row or overwrites any version
	}
	return tables.RawWrite{Verb: verb, Key: key, Properties: properties, Plain: true}
}

// sizeOf estimates what a write adds to a transaction.
func sizeOf(w *tables.RawWrite, scratch []byte) (int, []byte) {
	scratch = appendLine(scratch[:0], w.Key.Partition, w.Key.Row, w.Properties)
	return len(scratch) + operationOverhead + 3*(len(w.Key.Partition)+len(w.Key.Row)), scratch
}

// divide splits writes, which are in the order of their keys, into transactions, and calls each for one after another.
func divide(all []tables.RawWrite, each func([]tables.RawWrite) error) error {
	var scratch []byte
	begin, size := 0, 0
	for i := range all {
		var more int
		more, scratch = sizeOf(&all[i], scratch)
		if i > begin && (all[i].Key.Partition != all[begin].Key.Partition || i-begin == tables.MaxTransactionOperations || size+more > maxTransaction) {
			if err := each(all[begin:i:i]); err != nil {
				return err
			}
			begin, size = i, 0
		}
		size += more
	}
	if begin == len(all) {
		return nil
	}
	return each(all[begin:])
}

// commit writes the rows of one transaction. A row that already exists with the same content counts as written, whoever wrote it. That also
// resolves a lost response, since the rows keep their write IDs.
//
// Requests: 1. If a row exists or the response is lost: 1 for each 1,000 rows of the destination between the first and the last key, at
// most 4; then 1 for each row not found by these; and 1 for the remaining writes.
func (w *writer) commit(ctx context.Context, writes []tables.RawWrite) (err error) {
	for round := range maxRounds {
		if round > 0 || w.options.DryRun {
			if writes, err = w.left(ctx, writes); err != nil || len(writes) == 0 {
				return err
			}
			if w.options.DryRun {
				w.count(func(r *Result) { r.Written += int64(len(writes)) })
				return nil
			}
		}
		_, err = tables.RawOf(rows.Open, w.table).Commit(ctx, w.op, writes, rowwriter.NewWriteID())
		switch {
		case err == nil:
			w.count(func(r *Result) {
				r.Transactions++
				r.Rows += int64(len(writes))
				r.Written += int64(len(writes))
			})
			return nil
		case errors.Is(err, tables.ErrTooLarge) && len(writes) > 1: // the estimate was too low
			middle := len(writes) / 2
			if err := w.commit(ctx, writes[:middle]); err != nil {
				return err
			}
			return w.commit(ctx, writes[middle:])
		case !errors.Is(err, tables.ErrExists) && !errors.Is(err, tables.ErrConflict) && !errors.Is(err, tables.ErrUnknownOutcome):
			return err
		case ctx.Err() != nil: // the next run will find out which rows exist
			return &tables.Error{Op: w.op, Table: w.table.Name(), Err: ctx.Err()}
		}
		w.count(func(r *Result) { r.Conflicts++ })
	}
	return err
}

// left reads the destination and returns the writes that remain to be made.
func (w *writer) left(ctx context.Context, writes []tables.RawWrite) ([]tables.RawWrite, error) {
	there, err := w.there(ctx, writes)
	if err != nil {
		return nil, err
	}
	var left []tables.RawWrite
	var scratch []byte
	var differ []Difference
	unchanged := 0
	for _, write := range writes {
		scratch = appendLine(scratch[:0], write.Key.Partition, write.Key.Row, write.Properties)
		text, exists := there[write.Key.Row]
		switch {
		case !exists:
			left = append(left, write)
			continue
		case bytes.Equal(text, scratch):
			unchanged++
			continue
		}
		var names []string
		if text != nil { // the destination's row exists and can be read
			names = differing(scratch, text)
		}
		if w.options.DryRun || w.options.Existing == SkipExisting {
			differ = append(differ, Difference{Kind: Different, Table: w.table.Name(), Key: write.Key, Properties: names})
		}
		switch w.options.Existing {
		case ReplaceExisting:
			left = append(left, write)
		case SkipExisting:
			unchanged++
		default:
			if !w.options.DryRun {
				return nil, w.exists(write.Key)
			}
		}
	}
	w.count(func(r *Result) { r.Unchanged += int64(unchanged) })
	return left, w.found(differ...)
}

// there reads the rows of the destination under the keys of writes, and returns their lines by row key. A row
// that cannot be read has a nil line: it exists and differs. If the destination has many other rows between
// these keys, there reads the rows one by one.
func (w *writer) there(ctx context.Context, writes []tables.RawWrite) (map[string][]byte, error) {
	wanted := make(map[string]bool, len(writes))
	for i := range writes {
		wanted[writes[i].Key.Row] = true
	}
	there := map[string][]byte{}
	pages := 0
	read := func(first, last tables.Key) error {
		between := rangescan.Range{
			From: rangescan.Point{Partition: first.Partition, Row: first.Row},
			To:   &rangescan.Point{Partition: last.Partition, Row: last.Row, Side: rangescan.After},
		}
		for p, err := range w.destination(between).Pages(ctx) {
			if err != nil {
				return err
			}
			for _, l := range p.lines {
				if wanted[l.key.Row] {
					there[l.key.Row] = l.text
				}
			}
			for _, d := range p.left {
				if wanted[d.Key.Row] {
					there[d.Key.Row] = nil
				}
			}
			if pages++; pages == maxLook {
				break
			}
		}
		return nil
	}
	if err := read(writes[0].Key, writes[len(writes)-1].Key); err != nil || pages < maxLook {
		return there, err
	}
	for i := range writes {
		key := writes[i].Key
		if _, known := there[key.Row]; known {
			continue
		}
		pages = 0
		if err := read(key, key); err != nil {
			return nil, err
		}
	}
	return there, nil
}

// destination reads the rows of a range of the table in the order of their keys.
func (w *writer) destination(at rangescan.Range) *reading { return &reading{w.table, at} }

// exists returns the error for a row that must not be overwritten.
func (w *writer) exists(key tables.Key) error {
	return &tables.Error{Op: w.op, Table: w.table.Name(), Key: key, Kind: tables.ErrExists,
		Err: errors.New("the destination has a row with this key and other properties; set Options.Existing to SkipExisting or ReplaceExisting, or use an empty table")}
}

// all writes rows in the order of their keys, one transaction after another.
func (w *writer) all(ctx context.Context, writes []tables.RawWrite) error {
	return divide(writes, func(some []tables.RawWrite) error { return w.commit(ctx, some) })
}

// clone copies the properties of a row that the reader will use again.
func clone(properties tables.Properties) tables.Properties { return slices.Clone(properties) }
