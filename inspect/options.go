package inspect

import (
	"cmp"

	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/tables"
)

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
	// some 20 bytes each. Further keys are not compared, and Schema.KeysNotCompared counts them.
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
		return c, tables.Wiringf(op, "", "the table is nil; open it with Account.Table or Store.Table")
	}
	if c.Concurrency < 0 || c.MaxPartitions < 0 || c.MaxProperties < 0 || c.MaxKeys < 0 {
		return c, tables.Wiringf(op, table.Name(), "Options.Concurrency is %d, MaxPartitions %d, MaxProperties %d and MaxKeys %d; none may be negative",
			c.Concurrency, c.MaxPartitions, c.MaxProperties, c.MaxKeys)
	}
	if err := pace.Check("Options", c.RowsPerSecond); err != nil {
		return c, tables.Wiringf(op, table.Name(), "%w", err)
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
	Blob     float64 `json:"blob"` // price of writes, which are the most expensive requests
	Currency string  `json:"currency"`
	// Source names the price list and its date.
	Source string `json:"source"`
}

// DefaultPrices returns assumed prices: in US dollars 0.00036 for tables, 0.004 for queues and 0.05 for
// blobs, as for general-purpose v2 accounts with locally redundant storage in a region of the United States.
// Prices differ by region, redundancy and contract, and change: take yours from Azure's price list.
func DefaultPrices() *Prices {
	return &Prices{Table: 0.00036, Queue: 0.004, Blob: 0.05, Currency: "USD",
		Source: "an assumption of January 2025: general-purpose v2, locally redundant, United States; see Azure's price list for yours"}
}
