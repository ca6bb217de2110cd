package inspect

import (
	"context"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Table scans a table and reports its rows, partitions, properties and sizes.
//
// It reads what the service returns at the time: rows that other programs write meanwhile may be counted or not. If the run ends early,
// because of the context or an error, it returns the report of what it has read, whose Complete is false, beside the error. A run cannot be
// resumed, since the report of the rest could not be added to it; it writes nothing, so run it again.
//
// Requests: those of tables.Query.AllParallel for the table, 1 for each 1,000 rows or less.
func Table(ctx context.Context, table *tables.Table, options *Options) (*Report, error) {
	return inspect(ctx, "inspect.Table", table, options, nil)
}

// inspect is a run. judge is what As and Repository find out more, nil for nothing.
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
	err = s.run(ctx, func(ctx context.Context, row *tables.RawRow) error {
		kind := c.add(row)
		if judge == nil {
			return nil
		}
		return judge.row(ctx, row, kind)
	}, func() {
		if judge != nil {
			judge.page()
		}
		if o.Progress != nil {
			o.Progress(tables.Report{Read: c.entities, Rows: c.rows, Elapsed: time.Since(began)})
		}
	})
	if err == nil && judge != nil {
		err = judge.confirm(ctx, s)
	}
	return report(err == nil), err
}

// judge finds out more about the rows of a run. Its functions are called one at a time.
type judge interface {
	row(ctx context.Context, row *tables.RawRow, kind kind) error // row is not changed after the call
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

// run gives each row to visit, and calls paged after the last row of each page.
func (s *scan) run(ctx context.Context, visit func(context.Context, *tables.RawRow) error, paged func()) error {
	ctx = pace.With(ctx, s.options.RowsPerSecond)
	query := tables.RawOf(rows.Open, s.table).Query().AllowTableScan()
	if s.table.Account() != nil && s.table.Account().IsCosmos() {
		return s.oneByOne(ctx, query, visit, paged)
	}
	parallel := &tables.ParallelOptions[tables.RawRow]{Concurrency: s.options.Concurrency, Unordered: true, Progress: func(tables.Report) {
		s.pages++
		paged()
	}}
	all := query.AllParallel(ctx, parallel)
	if s.options.Partitions != nil {
		all = query.AllPartitions(ctx, s.options.Partitions, parallel)
	}
	for row, err := range all {
		if err == nil {
			err = visit(ctx, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// oneByOne is run with one reader, for Azure Cosmos DB, which returns rows in no order of keys.
func (s *scan) oneByOne(ctx context.Context, query tables.Query[tables.RawRow], visit func(context.Context, *tables.RawRow) error, paged func()) error {
	queries := []tables.Query[tables.RawRow]{query}
	if s.options.Partitions != nil {
		queries = nil
		for _, p := range s.options.Partitions {
			queries = append(queries, query.Partition(p))
		}
	}
	for _, q := range queries {
		for token := ""; ; {
			page, err := q.Page(ctx, token)
			if err != nil {
				return err
			}
			for _, row := range page.Items {
				if err := visit(ctx, row); err != nil {
					return err
				}
			}
			s.pages++
			paged()
			if token = page.Next; token == "" {
				break
			}
		}
	}
	return nil
}
