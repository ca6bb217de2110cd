package backup

import (
	"bytes"
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablescan"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Compare compares the rows of two tables, including the library's own properties but not ETag and Timestamp,
// and gives each row that differs to Options.Found. Report.Read counts the rows of the first table, Rows
// those of both, Findings the differences. A comparison that runs concurrently with writers is not a
// snapshot: it may report a row that changes meanwhile. It returns tables.ErrWiring if a table is on Azure
// Cosmos DB, which returns rows in no order.
//
// Requests: 1 for each 1,000 rows of each table, and for each page of the first up to 3 more of the second.
func Compare(ctx context.Context, first, second *tables.Table, options *Options) (_ tables.Report, err error) {
	o, err := options.checked(opCompare)
	if err == nil {
		err = usable(opCompare, true, first, second)
	}
	if err != nil {
		return tables.Report{}, err
	}
	ctx, span := tables.TelemetryOf(rows.Open, first.Account()).Begin(ctx, telemetry.Tables, opCompare, first.Name())
	defer func() { span.End(err) }()
	r := newRun(opCompare, o, "%s %s", nameOf(first), nameOf(second))
	ranges := o.ranges()
	at, err := parseToken(r, func(s tablescan.State) bool { return s.Valid(len(ranges)) })
	if err != nil {
		return tables.Report{}, err
	}
	ctx = pace.With(ctx, o.RowsPerSecond)
	scan := scanLines(first, ranges, o.Concurrency)
	scan.Work = func(ctx context.Context, at rangescan.Range, p *page) error {
		return r.compare(ctx, p.lines, &reading{second, at})
	}
	for p, err := range scan.Pages(ctx, at) {
		if err != nil {
			return r.end(false).Report, err
		}
		if err := r.found(p.Content.left...); err != nil {
			return r.end(false).Report, err
		}
		r.progress(func(t *Result) {
			t.Read += int64(len(p.Content.lines))
			t.Rows += int64(len(p.Content.lines))
			t.Resume = encodeToken(r, p.Rest)
		})
	}
	return r.end(true).Report, nil
}

// reading reads a range of a table in the order of its keys.
type reading struct {
	table *tables.Table
	at    rangescan.Range
}

// Pages yields the pages of the range. An error is yielded once, as the last element. Requests: 1 for each 1,000 rows, up to 2 more.
func (g *reading) Pages(ctx context.Context) iter.Seq2[*page, error] {
	return func(yield func(*page, error) bool) {
		for p, err := range scanLines(g.table, []rangescan.Range{g.at}, 1).Pages(ctx, tablescan.State{}) {
			if !yield(p.Content, err) || err != nil {
				return
			}
		}
	}
}

// compare compares lines with the rows of a table in the same range, both in the order of their keys.
func (r *run) compare(ctx context.Context, lines []line, second *reading) error {
	var differ []Difference
	add := func(kind DifferenceKind, key rangescan.Key, names []string) {
		differ = append(differ, Difference{Kind: kind, Table: second.table.Name(), Key: tables.Key(key), Properties: names})
	}
	for p, err := range second.Pages(ctx) {
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
		r.count(func(t *Result) { t.Rows += int64(len(p.lines)) })
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

// before reports whether a row comes before another in the order of a table.
func before(a, b rangescan.Key) bool {
	if c := compoundkey.Compare(a.Partition, b.Partition); c != 0 {
		return c < 0
	}
	return compoundkey.Compare(a.Row, b.Row) < 0
}
