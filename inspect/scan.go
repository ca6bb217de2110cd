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

// Table scans a table and reports its rows, partitions, properties and sizes. It is not a snapshot. If it ends early, it returns the error and the
// report of the rows read, with Complete false; run it again, since it cannot be resumed.
//
// Requests: those of tables.Query.AllParallel for the table, 1 for each 1,000 rows or less. On Azure Cosmos DB Report.Requests is a lower bound.
func Table(ctx context.Context, table *tables.Table, options *Options) (*Report, error) {
	return inspect(ctx, "inspect.Table", table, options, nil)
}

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
				o.Progress(tables.Progress{Run: tables.Run{Elapsed: time.Since(began)}, Read: c.entities, Rows: c.rows})
			}
		},
	})
	if err == nil && judge != nil {
		err = judge.confirm(ctx, s)
	}
	return report(err == nil), err
}

// judge makes the parts of the report that only As or Repository has, one call at a time.
type judge interface {
	row(ctx context.Context, row *tablerow.Row, kind kind) error // row does not change later
	garbled(e *tables.Error)                                     // of an unreadable row
	page()                                                       // after the last row of a page
	confirm(ctx context.Context, s *scan) error                  // after the last page; may scan again
	report(r *Report)
}

type scan struct {
	table   *tables.Table
	options Options
	pages   int64
}

// visitor gets the rows of a scan, one call at a time.
type visitor struct {
	row     func(context.Context, *tablerow.Row) error
	garbled func(*tables.Error) // for an unreadable row, with its key; may be nil
	page    func()              // after each page
}

func (s *scan) run(ctx context.Context, v *visitor) error {
	ctx = pace.With(ctx, s.options.RowsPerSecond)
	query := tables.Query[tablerow.Row]((*core.Table)(s.table).Query()).AllowTableScan()
	parallel := &tables.ParallelOptions[tablerow.Row]{Concurrency: s.options.Concurrency, Unordered: true, Progress: func(tables.Progress) {
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

// take passes a row to the visitor. An error about one row goes to garbled, and the scan goes on.
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

// oneByOne scans a table of Azure Cosmos DB, whose rows in no order several readers cannot divide. It counts a page for each 1,000 rows, since it
// does not see the service's.
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
	// Partitions are the partitions to read (default the whole table). No option to allow a table scan is needed.
	Partitions []string
	// Concurrency limits the requests in flight (default 8).
	Concurrency int
	// RowsPerSecond limits the rows read in a second, on average (default 0: no limit).
	RowsPerSecond int
	// Progress is called after each page, one call at a time, with Rows and Elapsed.
	Progress func(tables.Progress)
	// Prices are for the cost of Rebuild (default DefaultPrices).
	Prices *Prices

	// MaxPartitions is how many partitions are counted exactly (default 10,000), with up to 2.5 KiB each. Beyond it, the report has bounds for the
	// largest ones and an estimate of their number.
	MaxPartitions int
	// MaxProperties is how many properties are counted one by one (default 1,000).
	MaxProperties int
	// MaxKeys is how many keys of copies and rows Repository compares (default 10,000,000), with 12 bits each; Schema.KeysNotCompared counts the
	// others.
	MaxKeys int
}

const (
	defaultPartitions = 10_000
	defaultProperties = 1_000
	defaultKeys       = 10_000_000

	mostListed   = 10 // largest partitions, and rows
	mostExamples = 10 // keys for one problem
	mostProblems = 200
)

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

// DefaultPrices returns assumed prices: in US dollars 0.00036 for tables and 0.004 for queues, as for general-purpose v2 accounts with locally
// redundant storage in a region of the United States. Prices differ by region, redundancy and contract, and change: take yours from Azure's price
// list.
func DefaultPrices() *Prices {
	return &Prices{Table: 0.00036, Queue: 0.004, Currency: "USD",
		Source: "an assumption of January 2025: general-purpose v2, locally redundant, United States; see Azure's price list for yours"}
}
