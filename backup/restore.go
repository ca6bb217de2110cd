package backup

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Target says where Restore writes a table of a backup.
type Target struct {
	Name string        // of the table in the backup
	To   *tables.Table // an existing table
}

// Restore writes tables of a backup into existing tables, with all properties as they were but for the marks of index copies: see the package
// comment. Existing rows are treated as Options.Existing says; other rows of the destination stay. It returns tables.ErrInvalid if Options select
// rows that are outside of a partial backup. It can be repeated, with or without Resume: rows that are there already count as Unchanged, or are
// written again with ReplaceExisting.
//
// Every chunk is checked before any of its rows is written; tables.ErrGarbled names a damaged one. A row that no table can store, or that the
// destination's service refuses for its content, is left out and passed to Options.Found: see LeftOut. Report.Estimate is the number of rows in the
// chunks to read, Report.Failed those that Backup or this run has left out: see TableSummary.LeftOut.
//
// Requests, without those for Options.Blobs: 1 for each transaction of up to 100 rows of a partition; if the vault is a container, also 1 for the
// manifest and 1 for each chunk. If a row exists or a response is lost, usually up to 2 more for that transaction. If the destination then has over
// 1,000 rows between the transaction's first and last key, up to 5 more, and 1 for each row that these requests do not find.
func (v *Vault) Restore(ctx context.Context, backup string, targets []Target, options *Options) (_ RestoreReport, err error) {
	o, err := options.checked(opRestore)
	if err != nil {
		return RestoreReport{}, err
	}
	c, err := v.read(ctx, opRestore, backup)
	if err != nil {
		return RestoreReport{}, err
	}
	if err := c.has(opRestore, o.ranges()); err != nil {
		return RestoreReport{}, err
	}
	writers, names := map[int]*writer{}, []string{}
	for _, t := range targets {
		if err := usable(opRestore, false, t.To); err != nil {
			return RestoreReport{}, err
		}
		index := c.table(t.Name)
		switch {
		case index < 0:
			return RestoreReport{}, errs.Invalidf(opRestore, "the backup has no table %q; Vault.Manifest lists its tables", t.Name)
		case writers[index] != nil:
			return RestoreReport{}, errs.Wiringf(opRestore, t.Name, "two targets name the table; restore it into one table, and then into the other")
		}
		for _, w := range writers {
			if w.table.Same(t.To) {
				return RestoreReport{}, errs.Wiringf(opRestore, t.To.Name(), "the table is the destination of two targets; give each a table of its own")
			}
		}
		writers[index] = &writer{table: t.To}
		names = append(names, t.Name+" "+nameOf(t.To))
	}
	if len(targets) == 0 {
		return RestoreReport{}, errs.Wiringf(opRestore, backup, "there are no targets; name a table of the backup and the table to write it to")
	}
	signals := (*core.Account)(targets[0].To.Account()).Telemetry()
	ctx, operation := signals.Begin(ctx, telemetry.Tables, opRestore, targets[0].To.Name())
	defer func() { operation.End(err) }()
	x := &restoring{run: newRun(signals, opRestore, o, "%s %q %d %t", c.Run, names, o.Existing, o.DryRun), vault: v}
	for _, w := range writers {
		w.run = x.run
	}
	x.plan(c, writers)
	if x.done, err = parseToken(x.run, x.valid); err != nil {
		return RestoreReport{}, err
	}
	if err = x.restoreBlobs(ctx, c); err == nil { // before the rows that name them
		err = x.all(pace.With(ctx, o.RowsPerSecond))
	}
	return tally.Of[RestoreReport](x.end(err == nil), err)
}

// plan finds the chunks to restore. writers has the tables to restore, by index in the backup.
func (x *restoring) plan(c *contents, writers map[int]*writer) {
	for i := range c.entries {
		e := &c.entries[i]
		w := writers[e.Table]
		if w == nil || !slices.ContainsFunc(x.options.ranges(), func(r rangescan.Range) bool { return meet(r, e.At) }) {
			continue
		}
		x.counts.Failed += e.Left
		if e.Rows > 0 {
			x.work = append(x.work, task{e, w})
			x.counts.Estimate += e.Rows
		}
	}
}

func meet(a, b rangescan.Range) bool {
	return (a.To == nil || a.To.Compare(b.From) > 0) && (b.To == nil || b.To.Compare(a.From) > 0)
}

type task struct {
	*entry
	to *writer
}

type restoring struct {
	*run
	vault *Vault
	work  []task

	done intervals // under run.calling
}

// intervals holds the numbers of finished tasks as sorted pairs of the first and the task after the last.
type intervals [][2]int

func (x *restoring) valid(done intervals) bool {
	last := -1
	for _, d := range done {
		if d[0] <= last || d[1] <= d[0] || d[1] > len(x.work) {
			return false
		}
		last = d[1]
	}
	return true
}

func (d intervals) has(task int) bool {
	return slices.ContainsFunc(d, func(i [2]int) bool { return i[0] <= task && task < i[1] })
}

func (d intervals) with(task int) intervals {
	all := append(slices.Clone(d), [2]int{task, task + 1})
	slices.SortFunc(all, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	joined := all[:1]
	for _, i := range all[1:] {
		if last := &joined[len(joined)-1]; last[1] == i[0] {
			last[1] = i[1]
		} else {
			joined = append(joined, i)
		}
	}
	return joined
}

type loaded struct {
	index   int
	writes  []tablerow.Row
	outside int64
	left    []Difference // rows that cannot be restored
	err     error
}

// all writes the chunks in order, with up to Concurrency transactions at once, and meanwhile reads and decompresses the next one.
func (x *restoring) all(parent context.Context) error {
	group, ctx := errgroup.WithContext(parent)
	group.SetLimit(x.options.Concurrency)
	ahead := make(chan loaded)
	reading, stop := context.WithCancel(ctx)
	var reader sync.WaitGroup
	earlier := x.done // of earlier runs
	reader.Go(func() {
		defer close(ahead)
		for i := range x.work {
			if earlier.has(i) {
				continue
			}
			l := x.load(reading, i)
			select {
			case ahead <- l:
			case <-reading.Done():
				return
			}
		}
	})
	defer reader.Wait()
	defer stop()
	var failed error
	for l := range ahead {
		if failed = l.err; failed == nil {
			failed = x.leaveOut(ctx, l.left...)
		}
		if failed != nil || ctx.Err() != nil {
			break
		}
		to := x.work[l.index].to
		var open atomic.Int64 // unfinished transactions of the chunk, and 1 until all have begun
		open.Add(1)
		finish := func() {
			if open.Add(-1) == 0 {
				x.finished(l)
			}
		}
		for some := range transactions(l.writes) {
			open.Add(1)
			group.Go(func() error {
				if err := to.commit(ctx, some); err != nil {
					return err
				}
				finish()
				return nil
			})
		}
		finish()
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return parent.Err()
}

func (x *restoring) finished(l loaded) {
	x.progress(func(r *counts) {
		x.done = x.done.with(l.index)
		r.Read += int64(len(l.writes))
		r.Outside += l.outside
		r.Resume = encodeToken(x.run, x.done)
	})
}

// load checks all of a chunk, and returns the rows that the options select.
func (x *restoring) load(ctx context.Context, index int) loaded {
	l := loaded{index: index}
	t := x.work[index]
	ranges := x.options.ranges()
	lines, err := x.vault.lines(ctx, x.op, t.entry)
	if err != nil {
		l.err = err
		return l
	}
	var all []tablerow.Row
	l.err = x.vault.rows(x.op, t.entry, lines, func(row *tablerow.Row) error {
		if !slices.ContainsFunc(ranges, func(r rangescan.Range) bool { return r.Covers(rangescan.Key(row.Key)) }) {
			return nil
		}
		row = marked(row)
		if why := uncopied(row); why != nil {
			l.left = append(l.left, Difference{Kind: LeftOut, Table: t.to.table.Name(), Key: row.Key, Err: why})
			return nil
		}
		if isOutside(row) {
			l.outside++
		}
		all = append(all, t.to.row(row))
		return nil
	})
	l.writes = all
	return l
}

// lines reads and checks the lines of an entry. Requests: 1.
func (v *Vault) lines(ctx context.Context, op string, e *entry) ([]byte, error) {
	stored, err := v.getChunk(ctx, op, e.Chunk, e.Stored)
	if err != nil {
		return nil, err
	}
	lines, err := v.codecs.decompress(stored, e.Bytes)
	if err == nil && sum(lines) != e.Lines {
		err = errors.New("the SHA-256 of the rows is not the one in the manifest")
	}
	if err != nil {
		return nil, damaged(op, chunkName(e.Chunk), "%v", err)
	}
	return lines, nil
}

// rows calls each for the rows of an entry, and refuses wrong ranges, order or number; a single row that cannot be read is left to each.
func (v *Vault) rows(op string, e *entry, lines []byte, each func(*tablerow.Row) error) error {
	n := int64(0)
	var last rangescan.Key
	var stopped error
	err := eachRow(lines, func(row *tablerow.Row) error {
		key := rangescan.Key(row.Key)
		switch {
		case !e.At.Covers(key):
			return errors.New("a row is outside of the range in the manifest")
		case n > 0 && !before(last, key):
			return errors.New("the rows are not in the order of their keys")
		}
		n, last = n+1, key
		stopped = each(row)
		return stopped
	})
	if err == nil && n != e.Rows {
		err = errors.New("the number of rows is not the one in the manifest")
	}
	if err == nil || stopped != nil {
		return stopped
	}
	return damaged(op, chunkName(e.Chunk), "%v", err)
}
