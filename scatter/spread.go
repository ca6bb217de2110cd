package scatter

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Schema says how entities of type T are spread. Its functions must be pure.
type Schema[T any] struct {
	// Name begins the partition keys and names the record (default: the Order's prefix). Spreads in one table need
	// different names and prefixes.
	Name string
	// Order says how row keys rise.
	Order Order
	// Row returns the row key, which identifies the entity: it must be unique.
	Row func(*T) string
	// Partitions is n for a table that has no record yet (default 8). After that only Resize changes n.
	Partitions int
	// MaxAttempts limits how often a change of an entity or of the record is tried on conflict (default 10).
	MaxAttempts int
}

// Options are the options of New and NewNatural; nil is the same as the zero value.
type Options struct {
	// Meter counts the written entities, if it is not nil.
	Meter *Meter
	// Now is the clock for Ahead (default time.Now).
	Now func() time.Time
	// Ahead is how far in the future the time of an entity may be (default 15 minutes). Beyond it, a write
	// returns tables.ErrInvalid: the horizon would move so far that no new n could apply before that time.
	Ahead time.Duration
}

const (
	defaultPartitions = 8
	defaultAttempts   = 10
	defaultAhead      = 15 * time.Minute
	bucketDigits      = 3
)

// Spread stores entities with rising keys over n partitions. It is safe for concurrent use.
type Spread[T any] struct {
	Writer[T]
	name     string
	order    Order
	row      func(*T) string
	first    int // number of partitions if there is no record
	attempts int
	now      func() time.Time
	ahead    time.Duration
	records  *tables.Rows[record]
	known    atomic.Pointer[layout] // nil before the first read; an old layout stays correct below its horizon
	moving   chan struct{}          // a lock: the goroutine that moves the horizon holds it
}

// New opens the spread entities of a table, with their patterns. It returns tables.ErrWiring for an inconsistent schema
// or pattern. Requests: 0.
func New[T any](table *tables.Table, schema Schema[T], options *Options, attached ...patterns.Pattern[T]) (*Spread[T], error) {
	const op = "scatter.New"
	if options == nil {
		options = &Options{}
	}
	s := &Spread[T]{name: schema.Name, order: schema.Order, row: schema.Row, first: schema.Partitions, attempts: schema.MaxAttempts,
		now: options.Now, ahead: options.Ahead, moving: make(chan struct{}, 1)}
	if err := s.check(table); err != nil {
		return nil, miswired(op, table, err)
	}
	var err error
	if s.records, err = tables.RowsOf[record](table); err != nil {
		return nil, err
	}
	repository, err := patterns.NewRepository(table, patterns.Schema[T]{Name: repositoryName(table, s.name), Key: s.keyOf, Prefix: s.order.prefix,
		MaxAttempts: schema.MaxAttempts}, attached...)
	if err != nil {
		return nil, err
	}
	s.Writer = newWriter(repository, options.Meter)
	s.Writer.reach, s.Writer.check = s.reachEntity, s.reachStored
	return s, nil
}

func (s *Spread[T]) check(table *tables.Table) error {
	s.name = cmp.Or(s.name, s.order.prefix)
	s.first = cmp.Or(s.first, defaultPartitions)
	s.attempts = cmp.Or(s.attempts, defaultAttempts)
	if s.now == nil {
		s.now = time.Now
	}
	s.ahead = cmp.Or(s.ahead, defaultAhead)
	switch {
	case table == nil:
		return errors.New("the table is nil; make it with Account.Table")
	case s.row == nil:
		return errors.New("Schema.Row is nil; set it to a function that returns the row key")
	case s.order.limit == 0:
		return errors.New("Schema.Order is not set; make it with ByTime, ByTimeDesc or ByNumber")
	case s.order.err != nil:
		return s.order.err
	case s.attempts < 0 || s.ahead < 0:
		return fmt.Errorf("Schema.MaxAttempts is %d and Options.Ahead %v; both must be 0 (meaning the default) or more", s.attempts, s.ahead)
	}
	if _, err := compoundkey.Encode(s.name); err != nil {
		return err
	}
	return checkPartitions(s.first)
}

func checkPartitions(n int) error {
	if n < 1 || n > MaxPartitions {
		return fmt.Errorf("the number of partitions is %d; it must be 1 to %d", n, MaxPartitions)
	}
	return nil
}

// keyOf is the Key function of the repository's schema. At or above the known horizon it returns the key in Meta if the
// entity was read, otherwise a key that every operation refuses.
func (s *Spread[T]) keyOf(v *T) tables.Key {
	row := s.row(v)
	position, err := s.order.position(row)
	if err != nil {
		return tables.Key{Partition: poisoned(err.Error()), Row: row}
	}
	if l := s.known.Load(); l.covers(position) {
		return s.place(l, position, row)
	}
	// An entity that was read has its partition in Meta. So Repository.Verify does not need the record.
	if s.Repository() != nil {
		if key := patterns.HostOf(s.Repository()).MetaOf(v).Key(); key.Row == row && key.Partition != "" {
			return key
		}
	}
	return tables.Key{Partition: poisoned("the row key is at or above the horizon that this program knows; write with the Spread, or call Prepare first"), Row: row}
}

// place returns the key of a row that the layout covers.
func (s *Spread[T]) place(l *layout, position int64, row string) tables.Key {
	return tables.Key{Partition: s.partition(Bucket(row, l.partitions(position))), Row: row}
}

func (s *Spread[T]) partition(bucket int) string {
	return compoundkey.Join(s.name, compoundkey.Int(bucket, bucketDigits))
}

// repositoryName is unique in intents: a queue may serve several tables, and a table may have several Spreads.
func repositoryName(table *tables.Table, name string) string { return table.Name() + "." + name }

// poisoned returns a key that every operation refuses with the message, like compoundkey's for illegal values.
func poisoned(message string) string { return "\x00scatter: " + message + "\x00" }

func invalid(op string, table *tables.Table, err error) error {
	return failure(op, table, tables.ErrInvalid, err)
}

func miswired(op string, table *tables.Table, err error) error {
	return failure(op, table, tables.ErrWiring, err)
}

func failure(op string, table *tables.Table, kind, err error) error {
	e := &tables.Error{Op: op, Kind: kind, Err: err}
	if table != nil {
		e.Table = table.Name()
	}
	return e
}

// MaxPartitions is the largest n.
const MaxPartitions = 1000

// Bucket returns the number of the partition, 0 to n-1, of a text: the first 8 bytes of SHA-256 of the text in
// UTF-8, as a big-endian number, modulo n. Stored data depend on it, so it never changes; n must be 1 or more.
func Bucket(text string, n int) int {
	sum := sha256.Sum256([]byte(text))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}
