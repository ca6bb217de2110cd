package inspect

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
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

// inspect scans a table and makes the report. judge is nil for Table.
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
		row: func(ctx context.Context, row *tablerow.Row) error {
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

// judge makes the parts of the report that only As or Repository has. The scan calls its methods one at a time.
type judge interface {
	row(ctx context.Context, row *tablerow.Row, kind kind) error // row stays unchanged after the call
	garbled(e *tables.Error)                                     // for a row with a value that cannot be read
	page()                                                       // after the last row of a page
	confirm(ctx context.Context, s *scan) error                  // after the last page; it may scan again
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
	row     func(context.Context, *tablerow.Row) error
	garbled func(*tables.Error) // gets the error, with the key, of a row with a value that cannot be read; may be nil
	page    func()              // after the last row of a page
}

// run passes the rows to a visitor.
func (s *scan) run(ctx context.Context, v *visitor) error {
	ctx = pace.With(ctx, s.options.RowsPerSecond)
	query := tables.Query[tablerow.Row]((*core.Table)(s.table).Query()).AllowTableScan()
	parallel := &tables.ParallelOptions[tablerow.Row]{Concurrency: s.options.Concurrency, Unordered: true, Progress: func(tables.Report) {
		s.pages++
		v.page()
	}}
	var all iter.Seq2[*tablerow.Row, error]
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

// take passes a row to the visitor. If err is about one row, which has a value that cannot be read, take passes the
// error to garbled, and the scan goes on.
func (v *visitor) take(ctx context.Context, row *tablerow.Row, err error) error {
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

// oneByOne scans a table of Azure Cosmos DB with one reader, since rows in no order of keys cannot be divided among several. It counts a page
// for each 1,000 rows, since it does not see the service's pages.
func (s *scan) oneByOne(ctx context.Context, query tables.Query[tablerow.Row], v *visitor) error {
	queries := []tables.Query[tablerow.Row]{query}
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

// Options are the options of a run; nil is the same as the zero value.
type Options struct {
	// Partitions are the partitions to read; nil is the whole table. No option to allow a table scan is needed.
	Partitions []string
	// Concurrency is the maximum number of requests in flight (default 8).
	Concurrency int
	// RowsPerSecond limits how many rows the run reads in a second, on average (default 0: no limit), to leave the throughput of
	// the table to other programs.
	RowsPerSecond int
	// Progress is called after each page of rows, one call at a time, with Rows and Elapsed. The run waits for it.
	Progress func(tables.Report)
	// Prices are the prices from which Repository computes the cost of Rebuild; nil is DefaultPrices.
	Prices *Prices

	// MaxPartitions is how many partitions are counted exactly (default 10,000), with up to 2.5 KiB each. For
	// a table with more partitions, the report gives bounds for the largest partitions, and an estimate of
	// their number.
	MaxPartitions int
	// MaxProperties is how many names of properties are counted one by one (default 1,000).
	MaxProperties int
	// MaxKeys is how many keys of index copies and rows Repository remembers to find those that two rows want (default 10,000,000), with
	// 12 bits each. Further keys are not compared, and Schema.KeysNotCompared counts them.
	MaxKeys int
}

const (
	defaultPartitions = 10_000
	defaultProperties = 1_000
	defaultKeys       = 10_000_000

	mostListed   = 10 // entries in the lists of largest partitions and rows
	mostExamples = 10 // keys that are shown for one problem
	mostProblems = 200
)

// checked returns the options with defaults set.
func (o *Options) checked(op string, table *tables.Table) (Options, error) {
	c := Options{}
	if o != nil {
		c = *o
	}
	if table == nil {
		return c, errs.Wiringf(op, "", "the table is nil; open it with Account.Table or Store.Table")
	}
	if c.Concurrency < 0 || c.MaxPartitions < 0 || c.MaxProperties < 0 || c.MaxKeys < 0 {
		return c, errs.Wiringf(op, table.Name(), "Options.Concurrency is %d, MaxPartitions %d, MaxProperties %d and MaxKeys %d; none may be negative",
			c.Concurrency, c.MaxPartitions, c.MaxProperties, c.MaxKeys)
	}
	if err := pace.Check("Options", c.RowsPerSecond); err != nil {
		return c, errs.Wiringf(op, table.Name(), "%w", err)
	}
	c.MaxPartitions = cmp.Or(c.MaxPartitions, defaultPartitions)
	c.MaxProperties = cmp.Or(c.MaxProperties, defaultProperties)
	c.MaxKeys = cmp.Or(c.MaxKeys, defaultKeys)
	if c.Prices == nil {
		c.Prices = DefaultPrices()
	}
	return c, nil
}

// Prices are what 10,000 requests cost, by service.
type Prices struct {
	Table    float64 `json:"table"`
	Queue    float64 `json:"queue"`
	Currency string  `json:"currency"`
	// Source names the price list and its date.
	Source string `json:"source"`
}

// DefaultPrices returns assumed prices: in US dollars 0.00036 for tables and 0.004 for queues, as for general-purpose v2 accounts with locally redundant storage in a region of the United States.
// Prices differ by region, redundancy and contract, and change: take yours from Azure's price list.
func DefaultPrices() *Prices {
	return &Prices{Table: 0.00036, Queue: 0.004, Currency: "USD",
		Source: "an assumption of January 2025: general-purpose v2, locally redundant, United States; see Azure's price list for yours"}
}
