package logtail

import (
	"cmp"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ErrOutsideWindow means that the entry's time is further from now than half of Schema.Window, so followers could miss
// it. Nothing was written. errors.Is also matches tables.ErrInvalid.
var ErrOutsideWindow = errors.New("LoggedAt is too far from the current time; stamp the entry again, check the clock, or use AppendLate for a log without followers")

// DefaultWindow is the default of Schema.Window: 30 s for sending an entry, and 30 s for clock differences and
// requests that are on their way.
const DefaultWindow = time.Minute

// DefaultPrefix is the default of Schema.Prefix.
const DefaultPrefix = "log"

// Schema says how a Log stores entries of type T.
type Schema[T any] struct {
	// Name is patterns.Schema.Name (default: the table's name).
	Name string
	// Partition returns the partition key of an entry. It must be deterministic.
	Partition func(*T) string
	// Prefix is the text of the row keys before "_" and the time (default "log"). Other rows of the
	// partition, such as those of indexes, must have another prefix.
	Prefix string
	// Window limits how late an entry may become visible (default 1 minute: DefaultWindow). It must be the same for all
	// writers and followers of a log. To lengthen it, change the followers first; to shorten it, change the writers
	// first.
	Window time.Duration
	// Now returns the current time (default time.Now).
	Now func() time.Time
	// MaxAttempts limits the attempts of one change on conflict (default 10).
	MaxAttempts int
}

// Log stores entries newest first. T is a struct that embeds tables.Meta and Entry. A Log is safe for concurrent use.
type Log[T any] struct {
	repo   *patterns.Repository[T]
	host   driver.Host
	codec  *tables.Codec[T]
	schema Schema[T]
	page   int // number of entries that followers read at once; tests set it lower
	// uptime returns the time since New by the monotonic clock, independent of Schema.Now; tests replace it
	uptime func() time.Duration

	mu   sync.Mutex
	last time.Time // the last stamp
}

// New opens a log in the table, with the patterns attached to its entries. It makes no request. It returns
// tables.ErrWiring if the type, schema or patterns do not fit together, and for a table of Azure Cosmos DB: its
// queries have no order, so the first rows of a query are not the newest.
func New[T any](table *tables.Table, schema Schema[T], attached ...patterns.Pattern[T]) (*Log[T], error) {
	const op = "logtail.New"
	switch {
	case table == nil || schema.Partition == nil:
		return nil, errs.Wiringf(op, "", "the table or Schema.Partition is nil; give both")
	case table.Account().IsCosmos():
		return nil, errs.Wiringf(op, table.Name(), "the table is in Azure Cosmos DB, whose queries have no key order, so the newest entries cannot be found; use Azure Storage")
	case schema.Window < 0:
		return nil, errs.Wiringf(op, table.Name(), "Schema.Window is %v; it must be 0 (meaning 1m) or more", schema.Window)
	case entryOf(new(T)) == nil:
		return nil, errs.Wiringf(op, table.Name(), "%s does not embed logtail.Entry; embed it next to tables.Meta", reflect.TypeFor[T]())
	}
	schema.Prefix = cmp.Or(schema.Prefix, DefaultPrefix)
	schema.Window = cmp.Or(schema.Window, DefaultWindow)
	if schema.Now == nil {
		schema.Now = time.Now
	}
	codec, err := tables.NewCodec[T]()
	if err != nil {
		return nil, err
	}
	began := time.Now() // with a monotonic clock reading
	l := &Log[T]{codec: codec, schema: schema, page: tables.MaxPageSize, uptime: func() time.Duration { return time.Since(began) }}
	l.repo, err = patterns.NewRepository(table, patterns.Schema[T]{
		Name: schema.Name, Key: l.Key, Prefix: schema.Prefix, MaxAttempts: schema.MaxAttempts,
	}, attached...)
	if err != nil {
		return nil, err
	}
	l.host = patterns.HostOf(l.repo)
	return l, nil
}

// Repository returns the repository that stores the entries: use it for indexes, queries, changes, deletes, bulk loads
// and Verify. Stamp an entry before you insert it through the repository.
func (l *Log[T]) Repository() *patterns.Repository[T] { return l.repo }

// Table returns the log's table.
func (l *Log[T]) Table() *tables.Table { return l.repo.Table() }

// Key returns the key of an entry. For an entry that was not stamped it returns a key that cannot be stored.
func (l *Log[T]) Key(v *T) tables.Key {
	e := entryOf(v)
	return tables.Key{
		Partition: l.schema.Partition(v),
		Row:       compoundkey.Join(l.schema.Prefix, compoundkey.TimeDesc(e.LoggedAt), compoundkey.String(e.LogID)),
	}
}

// NewestFirst compares two entries in the order of a partition: it returns a negative number if a comes first. Use it
// as the Order of a query of several partitions (tables.ParallelOptions).
func (l *Log[T]) NewestFirst(a, b *T) int {
	return compoundkey.Compare(l.host.MetaOf(a).Key().Row, l.host.MetaOf(b).Key().Row)
}

// now returns the current time in UTC, rounded down to a tick.
func (l *Log[T]) now() time.Time { return l.schema.Now().UTC().Truncate(tick) }
