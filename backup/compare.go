package backup

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Compare compares the rows of two tables, with the library's own properties but not ETag and Timestamp, and gives each difference to
// Options.Found. Index copies in other partitions count as Copy writes them, whatever their marks. Report.Read counts the rows of the first table,
// Rows those of both, Findings the differences. It is not a snapshot: a row that changes meanwhile may be reported. Compare returns
// tables.ErrWiring for a table on Azure Cosmos DB, which returns rows in no order.
//
// Requests: 1 for each 1,000 rows of each table, and up to 3 more for each page of the first table.
func Compare(ctx context.Context, first, second *tables.Table, options *Options) (_ CompareReport, err error) {
	o, err := options.checked(opCompare)
	if err == nil {
		err = usable(opCompare, true, first, second)
	}
	if err != nil {
		return CompareReport{}, err
	}
	signals := (*core.Account)(first.Account()).Telemetry()
	ctx, span := signals.Begin(ctx, telemetry.Tables, opCompare, first.Name())
	defer func() { span.End(err) }()
	r := newRun(signals, opCompare, o, "%s %s", nameOf(first), nameOf(second))
	ranges := o.ranges()
	at, err := parseToken(r, func(s tablescan.State) bool { return s.Valid(ranges) })
	if err != nil {
		return CompareReport{}, err
	}
	ctx = pace.With(ctx, o.RowsPerSecond)
	scan := scanLines(first, ranges, o.Concurrency, asCopied)
	scan.Work = func(ctx context.Context, at rangescan.Range, p *page) error {
		return r.compare(ctx, p.lines, second, at)
	}
	for p, err := range scan.Pages(ctx, at) {
		if err != nil {
			return tally.Of[CompareReport](r.end(false), err)
		}
		if err := r.found(p.Content.left...); err != nil {
			return tally.Of[CompareReport](r.end(false), err)
		}
		r.progress(func(t *counts) {
			t.Read += int64(len(p.Content.lines))
			t.Rows += int64(len(p.Content.lines))
			t.Resume = encodeToken(r, p.Rest)
		})
	}
	return tally.Of[CompareReport](r.end(true), nil)
}

// readRange yields the rows of a range, page by page, in order, and at most one error, at the end. Requests: 1 for each 1,000 rows, up to 2 more.
func readRange(ctx context.Context, table *tables.Table, at rangescan.Range) iter.Seq2[*page, error] {
	return func(yield func(*page, error) bool) {
		for p, err := range scanLines(table, []rangescan.Range{at}, 1, asCopied).Pages(ctx, tablescan.State{}) {
			if !yield(p.Content, err) || err != nil {
				return
			}
		}
	}
}

// compare compares lines with the rows of a table in the same range.
func (r *run) compare(ctx context.Context, lines []line, second *tables.Table, at rangescan.Range) error {
	var differ []Difference
	add := func(kind DifferenceKind, key rangescan.Key, names []string) {
		differ = append(differ, Difference{Kind: kind, Table: second.Name(), Key: tables.Key(key), Properties: names})
	}
	for p, err := range readRange(ctx, second, at) {
		if err != nil {
			return err
		}
		differ = append(differ, p.left...)
		for _, l := range p.lines {
			for len(lines) > 0 && before(lines[0].key, l.key) {
				add(Missing, lines[0].key, nil)
				lines = lines[1:]
			}
			switch {
			case len(lines) == 0 || lines[0].key != l.key:
				add(Additional, l.key, nil)
				continue
			case !bytes.Equal(lines[0].text, l.text):
				add(Different, l.key, differing(lines[0].text, l.text))
			}
			lines = lines[1:]
		}
		r.count(func(t *counts) { t.Rows += int64(len(p.lines)) })
		if err := r.found(differ...); err != nil {
			return err
		}
		differ = nil
	}
	for _, l := range lines {
		add(Missing, l.key, nil)
	}
	return r.found(differ...)
}

func before(a, b rangescan.Key) bool {
	if c := compoundkey.Compare(a.Partition, b.Partition); c != 0 {
		return c < 0
	}
	return compoundkey.Compare(a.Row, b.Row) < 0
}

// Verify reads all of a backup and checks the manifest, and for every chunk its checksum and the number, order and range of its rows. Options.Found
// gets each damaged chunk, and each file that cannot be read. Then, or if the manifest is damaged, it returns tables.ErrGarbled, which names the
// first damaged object. Report.Read counts the rows of undamaged chunks that Restore can write, Report.Failed those that Backup has left out or
// Restore would leave out; Found gets the latter, too.
//
// Requests: 1 for the manifest and 1 for each chunk if the vault is a container.
func (v *Vault) Verify(ctx context.Context, backup string, options *Options) (CompareReport, error) {
	o, err := options.checked(opVerify)
	if err != nil {
		return CompareReport{}, err
	}
	c, err := v.read(ctx, opVerify, backup)
	if err != nil {
		return CompareReport{}, err
	}
	r := newRun(nil, opVerify, o, "%s", c.Run)
	for i := range c.entries {
		r.counts.Failed += c.entries[i].Left
	}
	var mu sync.Mutex
	var first error
	check := func(table string, key rangescan.Point, chunk string, n int64, err error) error {
		switch {
		case err == nil:
			r.progress(func(t *counts) { t.Read += n })
			return nil
		case errors.Is(err, tables.ErrGarbled):
		case ctx.Err() == nil && unreadableFile(err):
			err = damaged(opVerify, chunkName(chunk), "the file cannot be read: %v", err)
		default:
			return err
		}
		mu.Lock()
		if first == nil {
			first = err
		}
		mu.Unlock()
		return r.found(Difference{Kind: Damaged, Table: table, Key: tables.Key{Partition: key.Partition, Row: key.Row}, Object: chunkName(chunk), Err: err})
	}
	if err := each(ctx, storers, len(c.entries), func(ctx context.Context, i int) error {
		e := &c.entries[i]
		if e.Rows == 0 {
			return nil
		}
		n, err := r.verify(ctx, v, c.Tables[e.Table], e)
		return check(c.Tables[e.Table], e.At.From, e.Chunk, n, err)
	}); err != nil {
		return tally.Of[CompareReport](r.end(false), err)
	}
	if err := each(ctx, storers, len(c.blobs), func(ctx context.Context, i int) error {
		for _, p := range c.blobs[i].Parts {
			_, err := v.part(ctx, opVerify, p)
			if err := check(c.Blobs[c.blobs[i].Set], rangescan.Point{}, p.Chunk, 0, err); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return tally.Of[CompareReport](r.end(false), err)
	}
	return tally.Of[CompareReport](r.end(true), first)
}

// verify checks a chunk, and counts the rows that Restore can write.
func (r *run) verify(ctx context.Context, v *Vault, table string, e *entry) (n int64, err error) {
	lines, err := v.lines(ctx, opVerify, e)
	if err != nil {
		return 0, err
	}
	err = v.rows(opVerify, e, lines, func(row *tablerow.Row) error {
		if why := uncopied(marked(row)); why != nil {
			return r.leaveOut(ctx, Difference{Kind: LeftOut, Table: table, Key: row.Key, Err: why})
		}
		n++
		return nil
	})
	return n, err
}

// Compare compares a table of a backup with an existing table, as the function Compare does; the backup is the first. It returns tables.ErrInvalid
// if Options select rows that are outside of a partial backup.
//
// Requests: 1 for each 1,000 rows of the table, and up to 3 more for each chunk; if the vault is a container, also 1 for the manifest and 1 for
// each chunk.
func (v *Vault) Compare(ctx context.Context, backup, name string, table *tables.Table, options *Options) (_ CompareReport, err error) {
	o, err := options.checked(opCompare)
	if err == nil {
		err = usable(opCompare, true, table)
	}
	if err != nil {
		return CompareReport{}, err
	}
	c, err := v.read(ctx, opCompare, backup)
	if err != nil {
		return CompareReport{}, err
	}
	if err := c.has(opCompare, o.ranges()); err != nil {
		return CompareReport{}, err
	}
	index := c.table(name)
	if index < 0 {
		return CompareReport{}, errs.Invalidf(opCompare, "the backup has no table %q; Vault.Manifest lists its tables", name)
	}
	signals := (*core.Account)(table.Account()).Telemetry()
	ctx, operation := signals.Begin(ctx, telemetry.Tables, opCompare, table.Name())
	defer func() { operation.End(err) }()
	r := newRun(signals, opCompare, o, "%s %s %s", c.Run, name, nameOf(table))
	var parts []part
	for _, whole := range o.ranges() {
		for _, e := range c.of(index) {
			if at := intersection(whole, e.At); meet(whole, e.At) {
				parts = append(parts, part{e, at})
			}
		}
	}
	from, err := parseToken(r, func(from int) bool { return from >= 0 && from <= len(parts) })
	if err != nil {
		return CompareReport{}, err
	}
	ctx = pace.With(ctx, o.RowsPerSecond)
	return r.parts(ctx, v, parts, from, table)
}

type part struct {
	*entry
	at rangescan.Range
}

func intersection(a, b rangescan.Range) rangescan.Range {
	if b.From.Compare(a.From) > 0 {
		a.From = b.From
	}
	if a.To == nil || b.To != nil && b.To.Compare(*a.To) < 0 {
		a.To = b.To
	}
	return a
}

// parts compares parts of a backup with a table, several concurrently. The token is the number of the first part that is not done; later ones may
// be done, too, and are compared again.
func (r *run) parts(ctx context.Context, v *Vault, parts []part, from int, table *tables.Table) (CompareReport, error) {
	done := intervals{}
	if from > 0 {
		done = intervals{{0, from}}
	}
	err := each(ctx, r.options.Concurrency, len(parts)-from, func(ctx context.Context, i int) error {
		i += from
		p := parts[i]
		var lines []line
		if p.Rows > 0 {
			text, err := v.lines(ctx, r.op, p.entry)
			if err != nil {
				return err
			}
			if err := v.rows(r.op, p.entry, text, func(row *tablerow.Row) error {
				key := rangescan.Key(row.Key)
				if !p.at.Covers(key) {
					return nil
				}
				row, why := asCopied(row)
				if why != nil {
					return r.found(Difference{Kind: LeftOut, Table: table.Name(), Key: row.Key, Err: why})
				}
				lines = append(lines, line{key, appendLine(nil, key.Partition, key.Row, row.Properties)})
				return nil
			}); err != nil {
				return err
			}
		}
		if err := r.compare(ctx, lines, table, p.at); err != nil {
			return err
		}
		r.progress(func(t *counts) {
			t.Read += int64(len(lines))
			t.Rows += int64(len(lines))
			if done = done.with(i); done[0][0] == 0 {
				t.Resume = encodeToken(r, done[0][1])
			}
		})
		return nil
	})
	return tally.Of[CompareReport](r.end(err == nil), err)
}
