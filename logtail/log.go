package logtail

import (
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ErrOutsideWindow: the entry's time is further from the present than half of Schema.Window, so that followers could miss it.
// Nothing was written. It is a tables.ErrInvalid, too.
var ErrOutsideWindow = errors.New("the entry's time is outside of the log's window")

// DefaultWindow is Schema.Window where it is not set: 30 s to send an entry, and 30 s for clocks that differ and requests that
// are on their way.
const DefaultWindow = time.Minute

// DefaultPrefix is Schema.Prefix where it is not set.
const DefaultPrefix = "log"

// Schema says how a Log keeps entries of type T.
type Schema[T any] struct {
	// Name is patterns.Schema.Name.
	Name string
	// Partition is the partition key of an entry. It is pure.
	Partition func(*T) string
	// Prefix is what row keys begin with, "log" for "". Other rows of the partition, such as those of indexes, have another.
	Prefix string
	// Window bounds how late an entry may become visible, DefaultWindow for 0. Writers and followers of a log have the same; a
	// longer one is for the followers first, a shorter one for the writers.
	Window time.Duration
	// Now is the clock, time.Now for nil.
	Now func() time.Time
	// Intents and MaxAttempts are those of patterns.Schema.
	Intents     driver.IntentRunner
	MaxAttempts int
}

// Log keeps entries newest first. T is a struct that embeds tables.Meta and Entry. A Log is safe for concurrent use.
type Log[T any] struct {
	repo   *patterns.Repository[T]
	host   driver.Host[T]
	codec  *tables.Codec[T]
	schema Schema[T]
	page   int // entries that followers read at once; tests have smaller ones
	// uptime is the time that has passed for this process, whatever was done to Schema.Now; tests have one of their own.
	uptime func() time.Duration

	mu   sync.Mutex
	last time.Time // what was stamped last
}

// New opens a log in the table, with the patterns attached to its entries. It makes no request. What does not fit together is
// tables.ErrInvalid, and so is a table of Azure Cosmos DB: its queries have no order, and the first rows of one are not the
// newest.
func New[T any](table *tables.Table, schema Schema[T], attached ...patterns.Pattern[T]) (*Log[T], error) {
	const op = "logtail.New"
	switch {
	case table == nil || schema.Partition == nil:
		return nil, tables.InvalidIn(op, "", "it needs a table and a Schema.Partition")
	case table.Account().IsCosmos():
		return nil, tables.InvalidIn(op, table.Name(), "queries of Azure Cosmos DB come back in no key order, so that nothing tells the newest entries")
	case schema.Window < 0:
		return nil, tables.InvalidIn(op, table.Name(), "a Schema.Window of %v", schema.Window)
	case entryOf(new(T)) == nil:
		return nil, tables.InvalidIn(op, table.Name(), "%s does not embed logtail.Entry", reflect.TypeFor[T]())
	}
	if schema.Prefix == "" {
		schema.Prefix = DefaultPrefix
	}
	if schema.Window == 0 {
		schema.Window = DefaultWindow
	}
	if schema.Now == nil {
		schema.Now = time.Now
	}
	codec, err := tables.NewCodec[T]()
	if err != nil {
		return nil, err
	}
	began := time.Now() // with its monotonic reading, which the calendar's ticks do not have
	l := &Log[T]{codec: codec, schema: schema, page: tables.MaxPageSize, uptime: func() time.Duration { return time.Since(began) }}
	l.repo, err = patterns.NewRepository(table, patterns.Schema[T]{
		Name: schema.Name, Key: l.keyOf, RowPrefix: schema.Prefix, Intents: schema.Intents, MaxAttempts: schema.MaxAttempts,
	}, attached...)
	if err != nil {
		return nil, err
	}
	l.host = patterns.HostOf(l.repo)
	return l, nil
}

// Repository returns what keeps the entries: for indexes, queries, changes, deletes, bulk loads and checks. What is inserted
// through it must have been stamped.
func (l *Log[T]) Repository() *patterns.Repository[T] { return l.repo }

// Table returns the log's table.
func (l *Log[T]) Table() *tables.Table { return l.repo.Table() }

// Key returns the key of a stamped entry.
func (l *Log[T]) Key(v *T) tables.Key { return l.keyOf(v) }

// keyOf makes the key. An entry that was never stamped has a time that no property can hold, and is refused when written.
func (l *Log[T]) keyOf(v *T) tables.Key {
	e := entryOf(v)
	return tables.Key{
		Partition: l.schema.Partition(v),
		Row:       compoundkey.Join(l.schema.Prefix, compoundkey.TimeDesc(e.LoggedAt), compoundkey.String(e.LogID)),
	}
}

// timeOf reads the time of an entry from its row key, which every projection has.
func (l *Log[T]) timeOf(row string) (time.Time, error) {
	var t time.Time
	err := compoundkey.Parse(row, l.schema.Prefix, compoundkey.ToTimeDesc(&t), compoundkey.ToString(nil))
	return t, err
}

// NewestFirst compares two entries as a partition holds them: below zero where a comes first. It is the Order of a query of
// several partitions (tables.ParallelOptions).
func (l *Log[T]) NewestFirst(a, b *T) int {
	return compoundkey.Compare(l.host.MetaOf(a).Key().Row, l.host.MetaOf(b).Key().Row)
}

// now is the present in ticks.
func (l *Log[T]) now() time.Time { return l.schema.Now().UTC().Truncate(tick) }
