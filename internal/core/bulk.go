package core

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/lanes"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// checkBulk returns the number of entities to skip.
func checkBulk(o *entity.BulkOptions) (skip int64, err error) {
	if o.Resume != "" {
		if skip, err = strconv.ParseInt(o.Resume, 10, 64); err != nil || skip < 0 {
			return 0, errs.Invalidf("", "BulkOptions.Resume is %q; it must be \"\" or Report.Resume of an earlier run", o.Resume)
		}
	}
	switch {
	case o.Verb > entity.BulkDelete:
		return 0, errs.Wiringf("", "", "BulkOptions.Verb is %d; it must be one of the constants from BulkInsert to BulkDelete", o.Verb)
	case o.Properties != nil && o.Verb != entity.BulkMerge && o.Verb != entity.BulkUpsertMerge:
		return 0, errs.Wiringf("", "", "BulkOptions.Properties is set, and only BulkMerge and BulkUpsertMerge use it; leave it nil")
	case o.Concurrency < 0:
		return 0, errs.Wiringf("", "", "BulkOptions.Concurrency is %d; it must be 0 (meaning %d) or more", o.Concurrency, defaultConcurrency)
	}
	if err := pace.Check("BulkOptions", o.RowsPerSecond); err != nil {
		return 0, errs.Wiringf("", "", "%w", err)
	}
	return skip, nil
}

// BulkNonAtomic writes any number of values, each as one row.
func (s *Source) BulkNonAtomic(ctx context.Context, values iter.Seq2[any, error], options *entity.BulkOptions) (entity.BulkReport, error) {
	return Bulk(ctx, s.Table, "BulkNonAtomic", values, options, entity.MaxTransactionOperations, s.bulkUnit(cmp.Or(options, &entity.BulkOptions{})))
}

// bulkUnit returns the function that plans the write of one value as one row.
func (s *Source) bulkUnit(o *entity.BulkOptions) func(any) (Unit, error) {
	return func(v any) (Unit, error) {
		verb := [...]wire.Verb{wire.VerbInsert, wire.VerbReplace, wire.VerbMerge, wire.VerbReplace, wire.VerbMerge, wire.VerbDelete}[o.Verb]
		var etag azcore.ETag
		if o.Verb == entity.BulkReplace || o.Verb == entity.BulkMerge || o.Verb == entity.BulkDelete {
			var err error
			if etag, err = s.Codec.etag(v); err != nil {
				return Unit{}, errs.Invalid("", err)
			}
		}
		w, err := s.Codec.write(verb, v, etag, o.Properties)
		if err != nil {
			return Unit{Key: w.Key}, err
		}
		return Unit{Key: w.Key, Writes: []tablerow.Row{w}, Written: func(etags []azcore.ETag, _ string) { s.Codec.written(verb, v, etags[0]) }}, nil
	}
}

const (
	// defaultConcurrency is the default of BulkOptions.Concurrency and ParallelOptions.Concurrency.
	defaultConcurrency = 8
	// batchOverhead is the number of bytes that an operation adds to a transaction besides its body, the endpoint and
	// the keys: headers, boundaries and the name of the table.
	batchOverhead = 512
	// maxBulkBytes limits the bytes of a bulk write's transaction; the rest of MaxTransactionSize is for the headers of
	// the transaction itself.
	maxBulkBytes = entity.MaxTransactionSize - 1024
	// existingConcurrency is how many rows are read at once, after a refused transaction, to find the entities that
	// exist already.
	existingConcurrency = 4
)

// bulk is one bulk write.
type bulk struct {
	table    *Table
	op       string
	options  entity.BulkOptions
	lanes    *lanes.Scheduler[Unit]
	started  time.Time
	scratch  []byte
	progress entity.BulkReport // while lanes runs, changed only in calls of lanes.Done
	calls    sync.Mutex        // held during a call of options.Refused
}

// Bulk implements Internals.Bulk.
func Bulk(ctx context.Context, t *Table, op string, entities iter.Seq2[any, error], options *entity.BulkOptions, maxRows int, plan func(any) (Unit, error)) (_ entity.BulkReport, err error) {
	if entities == nil {
		return entity.BulkReport{}, relabel(op, t, errs.Wiringf("", "", "the sequence of entities is nil; give one"))
	}
	ctx, span := (&Source{Table: t}).begin(ctx, op)
	err = telemetry.ErrPanicked // the outcome if a callback panics
	defer func() { span.End(err) }()
	b := &bulk{table: t, op: op, started: time.Now(), options: *cmp.Or(options, &entity.BulkOptions{})}
	skip, invalid := checkBulk(&b.options)
	if invalid != nil {
		return entity.BulkReport{}, relabel(op, t, invalid)
	}
	b.options.Concurrency = cmp.Or(b.options.Concurrency, defaultConcurrency)
	b.progress.Resume = b.options.Resume
	b.lanes = lanes.New(pace.With(ctx, b.options.RowsPerSecond), lanes.Options[Unit]{
		Concurrency: b.options.Concurrency, Skip: skip,
		MaxRows: maxRows, MaxBytes: maxBulkBytes,
		Commit: func(ctx context.Context, units []*lanes.Unit[Unit]) error {
			d := &bulkDivision{bulk: b}
			d.sets = slices.ContainsFunc(units, func(u *lanes.Unit[Unit]) bool { return u.Value.Written == nil })
			if err := d.write(ctx, units); err != nil {
				return err
			}
			return d.refused
		},
	})
	err = lanes.Run(b.lanes, entities, func(v any, sequence int64) (*lanes.Unit[Unit], error) {
		var planned Unit
		err := error(errs.Invalidf("", "entity %d of the sequence is nil; leave it out", sequence))
		if v != nil {
			planned, err = plan(v)
		}
		if err == nil {
			var u *lanes.Unit[Unit]
			if u, err = b.unit(planned); err == nil {
				return u, nil
			}
		}
		u := &lanes.Unit[Unit]{Sequence: sequence, Value: Unit{Key: planned.Key}}
		e, ofEntity := b.located([]*lanes.Unit[Unit]{u}, 0, err)
		return nil, b.refuse(u, e, ofEntity)
	})
	if b.progress.Elapsed = time.Since(b.started); err == nil {
		b.progress.Resume = ""
	}
	return b.progress, err
}

// unit checks and measures the rows of an entity as if they were sent alone, so that an invalid entity fails without
// the others of its transaction.
func (b *bulk) unit(u Unit) (*lanes.Unit[Unit], error) {
	if e := CheckWrites(u.Writes); e != nil {
		return nil, e
	}
	out := &lanes.Unit[Unit]{Partition: u.Key.Partition, Rows: make([]string, 0, len(u.Writes)), Value: u}
	for i := range u.Writes {
		w := &u.Writes[i]
		var e *entity.Error
		if b.scratch, _, e = w.Encode(b.scratch[:0], tablerow.AnyWriteID); e != nil {
			return nil, e
		}
		out.Bytes += len(b.scratch) + batchOverhead + len(b.table.account.endpoints.Table) + 3*(len(w.Key.Partition)+len(w.Key.Row))
		if i > 0 && w.Verb == wire.VerbDelete && u.Written == nil {
			out.More++ // in a change set, the deleted row may become a row of another entity
			continue
		}
		out.Rows = append(out.Rows, w.Key.Row)
	}
	out.More += u.More
	if u.Single {
		out.Bytes = maxBulkBytes
	}
	return out, nil
}

// bulkDivision writes the units of one transaction, in several transactions if the service refuses them together.
type bulkDivision struct {
	*bulk
	sets    bool  // a repository writes the units as change sets, which can do more than write their rows, such as claim an orphaned copy
	refused error // error of the first refused unit that ends the run
}

// write writes units in one transaction if possible. If the error names a unit, write sends the others first, then that
// unit alone unless it would certainly fail again. If the error names none, or the units are too large for one
// transaction, write sends each half by itself. It returns only an error that ends the run at once.
func (d *bulkDivision) write(ctx context.Context, units []*lanes.Unit[Unit]) error {
	if len(units) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	err := d.send(ctx, units)
	if err == nil {
		return nil
	}
	at, e := -1, errs.Of(err)
	if len(units) == 1 {
		at = 0
	} else if e != nil {
		at = lanes.Named(units, e.Change, func(u Unit) int {
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
	if d.options.SkipExisting && d.options.Verb == entity.BulkInsert && (errors.Is(err, entity.ErrExists) || errors.Is(err, entity.ErrDuplicate)) {
		left, err := d.withoutExisting(ctx, units)
		if err != nil {
			return err
		}
		if len(left) < len(units) {
			return d.write(ctx, left)
		}
	}
	final := len(units) == 1 && (d.sets || units[0].Value.Together == nil)
	if at >= 0 && e.Pattern == "" && slices.Contains([]error{entity.ErrConflict, entity.ErrExists, entity.ErrNotFound}, entity.KindOf(err)) && e.Key == units[at].Value.Key && !units[at].Value.Again {
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
	case !d.sets && units[0].Value.Together != nil && (len(units) == 1 || errors.Is(err, entity.ErrDuplicate)):
		d.sets = true
		return d.write(ctx, units)
	case at < 0 || errors.Is(err, entity.ErrTooLarge):
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
func (d *bulkDivision) send(ctx context.Context, units []*lanes.Unit[Unit]) error {
	if d.sets {
		values := make([]Unit, len(units))
		for i, u := range units {
			values[i] = u.Value
		}
		err := values[0].Together(ctx, values)
		if err == nil {
			d.done(units, nil, "")
		}
		return err
	}
	var writes []tablerow.Row
	for _, u := range units {
		writes = append(writes, u.Value.Writes...)
	}
	etags, writeID, err := d.table.Commit(ctx, d.op, writes...)
	if err == nil {
		d.done(units, etags, writeID)
	}
	return err
}

// located adds to an error the entity's key and position in the sequence; at is -1 for an error of the whole transaction. ofEntity
// reports whether the error concerns single entities, so that the others can be written.
func (b *bulk) located(units []*lanes.Unit[Unit], at int, err error) (located *entity.Error, ofEntity bool) {
	located = &entity.Error{Err: err}
	if e, ok := err.(*entity.Error); ok {
		*located = *e
	}
	located.Op, located.Table, located.Change = b.op, b.table.name, 0
	if at >= 0 {
		located.Change = int(units[at].Sequence)
		if located.Key == (entity.Key{}) {
			located.Key = errs.Loggable(units[at].Value.Key)
		}
	}
	return located, slices.Contains([]error{entity.ErrExists, entity.ErrDuplicate, entity.ErrConflict, entity.ErrNotFound, entity.ErrMissingReference, entity.ErrInvalid, entity.ErrTooLarge, entity.ErrGarbled}, entity.KindOf(err))
}

// refuse passes the error of an entity that cannot be written to BulkOptions.Refused. It returns the error that ends
// the run, or nil.
func (b *bulk) refuse(u *lanes.Unit[Unit], e *entity.Error, ofEntity bool) error {
	if b.options.Refused == nil || !ofEntity {
		return e
	}
	b.calls.Lock()
	defer b.calls.Unlock()
	if err := b.options.Refused(e); err != nil {
		return err
	}
	b.lanes.Done([]*lanes.Unit[Unit]{u}, func(resume int64) {
		b.progress.Failed++
		b.progress.Resume = strconv.FormatInt(resume, 10)
	})
	return nil
}

// withoutExisting returns the units whose entity does not exist, and counts the others as done.
func (b *bulk) withoutExisting(ctx context.Context, units []*lanes.Unit[Unit]) ([]*lanes.Unit[Unit], error) {
	there := make([]bool, len(units))
	keys := make([]entity.Key, len(units))
	index := make(map[entity.Key]int, len(units))
	for i, u := range units {
		keys[i] = u.Value.Key
		index[keys[i]] = i
	}
	for row, err := range streams.Typed[tablerow.Row](b.table.rawRows().GetMany(ctx, keys, existingConcurrency)) {
		if err != nil {
			return nil, err
		}
		there[index[row.Key]] = true
	}
	var left, existing []*lanes.Unit[Unit]
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

// done counts a committed transaction and calls BulkOptions.Progress. etags are nil if the repository of the units has
// written them together.
func (b *bulk) done(units []*lanes.Unit[Unit], etags []azcore.ETag, writeID string) {
	b.lanes.Done(units, func(resume int64) {
		at := 0
		for _, u := range units {
			after := at + len(u.Value.Writes)
			if etags != nil {
				u.Value.Written(etags[at:after], writeID)
			}
			at = after
		}
		if b.options.Verb == entity.BulkDelete {
			b.progress.Deleted += int64(len(units))
		} else {
			b.progress.Written += int64(len(units))
		}
		b.progress.Rows += int64(at)
		b.progress.Transactions++
		b.progress.Resume = strconv.FormatInt(resume, 10)
		b.progress.Elapsed = time.Since(b.started)
		if b.options.Progress != nil {
			b.options.Progress(b.progress)
		}
	})
}
