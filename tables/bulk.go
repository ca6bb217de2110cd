package tables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/lanes"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// BulkVerb is what a bulk write does with each entity.
type BulkVerb uint8

// The verbs of BulkNonAtomic.
const (
	// BulkInsert adds entities that must not exist; with SkipExisting it skips those that do.
	BulkInsert BulkVerb = iota
	// BulkReplace overwrites entities that were read, each under its ETag.
	BulkReplace
	// BulkMerge merges BulkOptions.Properties of entities that were read, each under its ETag.
	BulkMerge
	// BulkUpsert inserts entities, or overwrites them whatever their version. A Repository reads the stored entities
	// first.
	BulkUpsert
	// BulkUpsertMerge inserts rows, or merges into them whatever their version. Only Rows supports BulkUpsertMerge,
	// since what patterns write depends on the whole entity.
	BulkUpsertMerge
	// BulkDelete deletes entities that were read, each under its ETag.
	BulkDelete
)

// BulkOptions are the options of BulkNonAtomic of Rows and of Repository; nil is the same as the zero value.
type BulkOptions struct {
	// Verb is what BulkNonAtomic does with each entity (default BulkInsert).
	Verb BulkVerb
	// Properties are the names of the properties that BulkMerge and BulkUpsertMerge write (default all), each of which must
	// have a value, as with Rows.Merge. With any other verb it must be nil.
	Properties []string
	// Concurrency is the maximum number of transactions in flight (default 8). A partition has only one transaction in
	// flight at a time, so its entities are written in the order of the sequence.
	Concurrency int
	// RowsPerSecond limits how many rows the job reads and writes in tables in a second, on average (default 0: no limit), to leave
	// the throughput of the tables to other programs. The job never waits within a change: a change that exceeds the limit delays
	// the next one.
	RowsPerSecond int
	// Resume is Report.Resume of an earlier run over the same entities in the same order: the number of entities to skip at
	// the beginning of the sequence, as decimal digits.
	Resume string
	// SkipExisting makes BulkInsert count an entity that already exists as done, whoever inserted it. A run that resumes an earlier
	// one needs it: the earlier run may have written entities after its Resume. The other verbs ignore it.
	SkipExisting bool
	// Refused is called with the error for each entity that cannot be written: Error.Change is its position in the
	// sequence, from 1, and Error.Key names it. Calls do not overlap. If Refused returns nil, the entity counts in
	// Report.Failed and the run continues; if Refused returns an error, the run ends with that error. A nil Refused
	// ends the run with the first such error. The other entities of its transaction are written in each case.
	Refused func(*Error) error
	// Progress is called after each committed transaction, one call at a time. A slow call delays the other
	// transactions.
	Progress func(Report)
}

// check returns the number of entities to skip.
func (o *BulkOptions) check() (skip int64, err error) {
	if o.Resume != "" {
		if skip, err = strconv.ParseInt(o.Resume, 10, 64); err != nil || skip < 0 {
			return 0, Invalidf("", "BulkOptions.Resume is %q; it must be \"\" or Report.Resume of an earlier run", o.Resume)
		}
	}
	switch {
	case o.Verb > BulkDelete:
		return 0, Wiringf("", "", "BulkOptions.Verb is %d; it must be one of the constants from BulkInsert to BulkDelete", o.Verb)
	case o.Properties != nil && o.Verb != BulkMerge && o.Verb != BulkUpsertMerge:
		return 0, Wiringf("", "", "BulkOptions.Properties is set, and only BulkMerge and BulkUpsertMerge use it; leave it nil")
	case o.Concurrency < 0:
		return 0, Wiringf("", "", "BulkOptions.Concurrency is %d; it must be 0 (meaning %d) or more", o.Concurrency, defaultConcurrency)
	}
	if err := pace.Check("BulkOptions", o.RowsPerSecond); err != nil {
		return 0, Wiringf("", "", "%w", err)
	}
	return skip, nil
}

// Report counts what a long job has done. Every job over entities or rows returns one, even together with an error, and passes one to
// its Progress. A count that a job does not have is 0.
type Report struct {
	Read         int64 // entities read
	Rows         int64 // rows that the scans of Verify and Repair have read, or that a bulk write has written, including those of indexes
	Transactions int64 // committed by a bulk write
	Written      int64 // entities written; for BulkDelete, entities deleted
	Deleted      int64 // rows or records deleted by a job other than a bulk write
	Unchanged    int64 // entities that needed no write; for a bulk write with SkipExisting, those that exist already
	Conflicts    int64 // attempts that ended in a conflict, a lost response or a lost lease, and were made again
	Failed       int64 // entities that could not be read or written, and were skipped

	Candidates int64 // differences that Verify or Repair has rechecked
	Findings   int64 // differences passed to the option Found
	Repaired   int64 // findings that Repair has repaired

	// Unmatched names the repositories, separated by ", ", whose table has rows but no entities: Rows, Mine or Where of
	// the schema may be wrong. Verify, Repair and Rebuild of whole tables set it. They leave it "" if one request
	// cannot read all rows that meet Rows and Where: with Mine, if more than 1,000 do.
	Unmatched string

	// PartitionsDone is how many of the partitions in the options are done; 0 without a list of partitions.
	PartitionsDone int
	// Estimate is the number of Rows that the complete job is expected to have, ETA the remaining time; both are 0 if
	// unknown.
	Estimate int64
	ETA      time.Duration
	// Elapsed is the duration of this run, without the earlier runs that it resumes.
	Elapsed time.Duration

	// Resume continues the job after an error or a crash: give it to a later call as Resume of its options. It is "" in
	// the report of a complete job, and until a job that resumes no earlier one has done something.
	Resume string
}

// String formats the counts that are not 0, without Resume, which may be long.
func (r Report) String() string {
	var parts []string
	for _, c := range []struct {
		n    int64
		name string
	}{
		{r.Read, "read"}, {r.Rows, "rows"}, {r.Written, "written"}, {r.Transactions, "transactions"}, {r.Deleted, "deleted"}, {r.Unchanged, "unchanged"},
		{r.Conflicts, "conflicts"}, {r.Failed, "failed"}, {r.Candidates, "candidates"}, {r.Findings, "findings"}, {r.Repaired, "repaired"},
		{int64(r.PartitionsDone), "partitions done"},
	} {
		if c.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.name))
		}
	}
	if r.Unmatched != "" {
		parts = append(parts, "no row of the table is an entity of "+r.Unmatched)
	}
	if r.Resume != "" {
		parts = append(parts, "to be resumed")
	}
	return fmt.Sprintf("%s in %v", strings.Join(parts, ", "), r.Elapsed.Round(time.Millisecond))
}

// BulkNonAtomic writes any number of rows with one verb. It groups them by partition, packs each group into entity group transactions,
// and sends those of several partitions at once. Each transaction is atomic; the whole is not: if BulkNonAtomic ends early, because of
// the context or an error, any of the rows after Report.Resume may have been written. It then waits for the transactions that were sent,
// and returns the first error. The Report counts Written, Unchanged, Failed, Conflicts, Rows and Transactions of this run, without the
// runs that it resumes.
//
// If the service refuses a transaction because of one row, BulkNonAtomic writes the other rows without that row and
// passes the row's error to BulkOptions.Refused. So one row that is too large, or that another writer has changed, does
// not prevent the others from being written. A failure of the service, or an unknown outcome, ends the run. Values with
// the same key are written in the order of the sequence, each in a different transaction.
//
// It holds at most 20,000 rows in memory. If these rows are spread over so many partitions that no transaction fills,
// it sends smaller transactions. The properties and the ETag of a value are copied when it is taken from the sequence.
// New ETags are set later, by other goroutines: do not use the values before BulkNonAtomic returns.
//
// Requests: at least 1 for each 100 rows of a partition, and at least 1 more for each refused row.
func (r *Rows[T]) BulkNonAtomic(ctx context.Context, values iter.Seq2[*T, error], options *BulkOptions) (Report, error) {
	o := *cmp.Or(options, &BulkOptions{})
	return runBulk(ctx, r.src.Table, "BulkNonAtomic", streams.Untyped(values), options, MaxTransactionOperations, r.src.bulkUnit(&o))
}

// bulkUnit returns the function that plans the write of one value as one row. It is not inlined, so that the function is compiled
// once for all types.
//
//go:noinline
func (s *RawSource) bulkUnit(o *BulkOptions) func(any) (RawUnit, error) {
	return func(v any) (RawUnit, error) {
		verb := [...]wire.Verb{wire.VerbInsert, wire.VerbReplace, wire.VerbMerge, wire.VerbReplace, wire.VerbMerge, wire.VerbDelete}[o.Verb]
		var etag azcore.ETag
		if o.Verb == BulkReplace || o.Verb == BulkMerge || o.Verb == BulkDelete {
			var err error
			if etag, err = s.Codec.etag(v); err != nil {
				return RawUnit{}, Invalid("", err)
			}
		}
		w, err := s.Codec.write(verb, v, etag, o.Properties)
		if err != nil {
			return RawUnit{Key: w.Key}, err
		}
		return RawUnit{Key: w.Key, Writes: []RawWrite{w}, Written: func(etags []azcore.ETag, _ string) { s.Codec.written(verb, v, etags[0]) }}, nil
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
	maxBulkBytes = MaxTransactionSize - 1024
	// existingConcurrency is how many rows are read at once, after a refused transaction, to find the entities that
	// exist already.
	existingConcurrency = 4
)

// bulk is one bulk write.
type bulk struct {
	table    *Table
	op       string
	options  BulkOptions
	lanes    *lanes.Scheduler[RawUnit]
	started  time.Time
	scratch  []byte
	progress Report     // while lanes runs, changed only in calls of lanes.Done
	calls    sync.Mutex // held during a call of options.Refused
}

// runBulk implements Internals.Bulk.
func runBulk(ctx context.Context, t *Table, op string, entities iter.Seq2[any, error], options *BulkOptions, maxRows int, plan func(any) (RawUnit, error)) (_ Report, err error) {
	if entities == nil {
		return Report{}, relabel(op, t, Wiringf("", "", "the sequence of entities is nil; give one"))
	}
	ctx, span := (&RawSource{Table: t}).begin(ctx, op)
	err = telemetry.ErrPanicked // the outcome if a callback panics
	defer func() { span.End(err) }()
	b := &bulk{table: t, op: op, started: time.Now(), options: *cmp.Or(options, &BulkOptions{})}
	skip, invalid := b.options.check()
	if invalid != nil {
		return Report{}, relabel(op, t, invalid)
	}
	b.options.Concurrency = cmp.Or(b.options.Concurrency, defaultConcurrency)
	b.progress.Resume = b.options.Resume
	b.lanes = lanes.New(pace.With(ctx, b.options.RowsPerSecond), lanes.Options[RawUnit]{
		Concurrency: b.options.Concurrency, Skip: skip,
		MaxRows: maxRows, MaxBytes: maxBulkBytes,
		Commit: func(ctx context.Context, units []*lanes.Unit[RawUnit]) error {
			d := &bulkDivision{bulk: b}
			d.sets = slices.ContainsFunc(units, func(u *lanes.Unit[RawUnit]) bool { return u.Value.Written == nil })
			if err := d.write(ctx, units); err != nil {
				return err
			}
			return d.refused
		},
	})
	err = lanes.Run(b.lanes, entities, func(v any, sequence int64) (*lanes.Unit[RawUnit], error) {
		var planned RawUnit
		err := error(Invalidf("", "entity %d of the sequence is nil; leave it out", sequence))
		if v != nil {
			planned, err = plan(v)
		}
		if err == nil {
			var u *lanes.Unit[RawUnit]
			if u, err = b.unit(planned); err == nil {
				return u, nil
			}
		}
		u := &lanes.Unit[RawUnit]{Sequence: sequence, Value: RawUnit{Key: planned.Key}}
		e, ofEntity := b.located([]*lanes.Unit[RawUnit]{u}, 0, err)
		return nil, b.refuse(u, e, ofEntity)
	})
	if b.progress.Elapsed = time.Since(b.started); err == nil {
		b.progress.Resume = ""
	}
	return b.progress, err
}

// unit checks and measures the rows of an entity as if they were sent alone, so that an invalid entity fails without
// the others of its transaction.
func (b *bulk) unit(u RawUnit) (*lanes.Unit[RawUnit], error) {
	if e := checkWrites(u.Writes); e != nil {
		return nil, e
	}
	out := &lanes.Unit[RawUnit]{Partition: u.Key.Partition, Rows: make([]string, 0, len(u.Writes)), Value: u}
	for i := range u.Writes {
		w := &u.Writes[i]
		size, e := w.Check()
		if e != nil {
			return nil, e
		}
		b.scratch = b.scratch[:0]
		if w.Verb != wire.VerbDelete {
			b.scratch, _ = w.row().Append(b.scratch, accessProperty, size, rowwriter.AnyWriteID)
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
func (d *bulkDivision) write(ctx context.Context, units []*lanes.Unit[RawUnit]) error {
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
		at = lanes.Named(units, e.Change, func(u RawUnit) int {
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
func (d *bulkDivision) send(ctx context.Context, units []*lanes.Unit[RawUnit]) error {
	if d.sets {
		values := make([]RawUnit, len(units))
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

// located adds to an error the entity's key and position in the sequence; at is -1 for an error of the whole transaction. ofEntity
// reports whether the error concerns single entities, so that the others can be written.
func (b *bulk) located(units []*lanes.Unit[RawUnit], at int, err error) (located *Error, ofEntity bool) {
	located = &Error{Err: err}
	if e, ok := err.(*Error); ok {
		*located = *e
	}
	located.Op, located.Table, located.Change = b.op, b.table.name, 0
	if at >= 0 {
		located.Change = int(units[at].Sequence)
		if located.Key == (Key{}) {
			located.Key = loggable(units[at].Value.Key)
		}
	}
	return located, slices.Contains([]error{ErrExists, ErrDuplicate, ErrConflict, ErrNotFound, ErrMissingReference, ErrInvalid, ErrTooLarge, ErrGarbled}, KindOf(err))
}

// refuse passes the error of an entity that cannot be written to BulkOptions.Refused. It returns the error that ends
// the run, or nil.
func (b *bulk) refuse(u *lanes.Unit[RawUnit], e *Error, ofEntity bool) error {
	if b.options.Refused == nil || !ofEntity {
		return e
	}
	b.calls.Lock()
	defer b.calls.Unlock()
	if err := b.options.Refused(e); err != nil {
		return err
	}
	b.lanes.Done([]*lanes.Unit[RawUnit]{u}, func(resume int64) {
		b.progress.Failed++
		b.progress.Resume = strconv.FormatInt(resume, 10)
	})
	return nil
}

// withoutExisting returns the units whose entity does not exist, and counts the others as done.
func (b *bulk) withoutExisting(ctx context.Context, units []*lanes.Unit[RawUnit]) ([]*lanes.Unit[RawUnit], error) {
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
	var left, existing []*lanes.Unit[RawUnit]
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
func (b *bulk) done(units []*lanes.Unit[RawUnit], etags []azcore.ETag, writeID string) {
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
