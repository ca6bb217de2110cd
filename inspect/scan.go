package inspect

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Table scans a table and reports its rows, partitions, properties and sizes.
//
// The report is not a snapshot: rows that other programs write during the run may or may not be counted. If
// the context or an error ends the run early, Table returns the error together with the report of the rows
// that it has read, with Complete false. A run cannot be resumed, since two partial reports cannot be added;
// it writes nothing, so run it again.
//
// Requests: those of tables.Query.AllParallel for the table, 1 for each 1,000 rows or less. On Azure Cosmos DB Report.Requests is a lower
// bound.
func Table(ctx context.Context, table *tables.Table, options *Options) (*Report, error) {
	return inspect(ctx, "inspect.Table", table, options, nil)
}

// inspect is a run. judge collects the additional results of As and Repository; it is nil for Table.
func inspect(ctx context.Context, op string, table *tables.Table, options *Options, judge judge) (*Report, error) {
	o, err := options.checked(op, table)
	if err != nil {
		return nil, err
	}
	s := &scan{table: table, options: o}
	c := newCollector(&o)
	began := time.Now()
	report := func(complete bool) *Report {
		r := c.report()
		r.Version, r.Table, r.Began, r.Elapsed, r.Complete, r.Requests = 1, table.Name(), began.UTC(), Seconds(time.Since(began).Seconds()), complete, s.pages
		if judge != nil {
			judge.report(r)
		}
		warn(r)
		return r
	}
	err = s.run(ctx, &visitor{
		row: func(ctx context.Context, row *tables.RawRow) error {
			kind := c.add(row)
			if judge == nil {
				return nil
			}
			return judge.row(ctx, row, kind)
		},
		garbled: func(e *tables.Error) {
			c.garble(e.Key)
			if judge != nil {
				judge.garbled(e)
			}
		},
		page: func() {
			if judge != nil {
				judge.page()
			}
			if o.Progress != nil {
				o.Progress(tables.Report{Read: c.entities, Rows: c.rows, Elapsed: time.Since(began)})
			}
		},
	})
	if err == nil && judge != nil {
		err = judge.confirm(ctx, s)
	}
	return report(err == nil), err
}

// judge collects the additional results of As and Repository. The scan calls its methods one at a time.
type judge interface {
	row(ctx context.Context, row *tables.RawRow, kind kind) error // row stays unchanged after the call
	garbled(e *tables.Error)                                      // for a row with a value that cannot be read
	page()                                                        // after the last row of a page
	confirm(ctx context.Context, s *scan) error                   // after the last page; it may scan again
	report(r *Report)
}

// scan reads the rows of a run.
type scan struct {
	table   *tables.Table
	options Options
	pages   int64
}

// visitor receives the rows of a scan, one call at a time.
type visitor struct {
	row     func(context.Context, *tables.RawRow) error
	garbled func(*tables.Error) // a row with a value that cannot be read, by its key; may be nil
	page    func()              // after the last row of a page
}

// run passes the rows to a visitor.
func (s *scan) run(ctx context.Context, v *visitor) error {
	ctx = pace.With(ctx, s.options.RowsPerSecond)
	query := tables.RawOf(rows.Open, s.table).Query().AllowTableScan()
	parallel := &tables.ParallelOptions[tables.RawRow]{Concurrency: s.options.Concurrency, Unordered: true, Progress: func(tables.Report) {
		s.pages++
		v.page()
	}}
	var all iter.Seq2[*tables.RawRow, error]
	switch cosmos := s.table.Account() != nil && s.table.Account().IsCosmos(); {
	case cosmos:
		return s.oneByOne(ctx, query, v)
	case s.options.Partitions != nil:
		all = query.AllPartitions(ctx, s.options.Partitions, parallel)
	default:
		all = query.AllParallel(ctx, parallel)
	}
	for row, err := range all {
		if err := v.take(ctx, row, err); err != nil {
			return err
		}
	}
	return nil
}

// take passes a row to the visitor. For a row with a value that cannot be read, err names its key; take
// passes err to garbled, and the scan continues.
func (v *visitor) take(ctx context.Context, row *tables.RawRow, err error) error {
	if err == nil {
		return v.row(ctx, row)
	}
	e, ok := errors.AsType[*tables.Error](err)
	if !ok || !e.OfRow {
		return err
	}
	if v.garbled != nil {
		v.garbled(e)
	}
	return nil
}

// oneByOne does what run does with one reader, for Azure Cosmos DB, which returns rows in no order of keys.
// It counts a page for each 1,000 rows, since it does not see the pages of the service.
func (s *scan) oneByOne(ctx context.Context, query tables.Query[tables.RawRow], v *visitor) error {
	queries := []tables.Query[tables.RawRow]{query}
	if s.options.Partitions != nil {
		queries = nil
		for _, p := range s.options.Partitions {
			queries = append(queries, query.Partition(p))
		}
	}
	for _, q := range queries {
		n := 0
		for row, err := range q.All(ctx) {
			if err := v.take(ctx, row, err); err != nil {
				return err
			}
			if n++; n%tables.MaxPageSize == 0 {
				s.pages++
				v.page()
			}
		}
		s.pages++
		v.page()
	}
	return nil
}
