package scatter

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Schema says how entities of type T are spread. Its functions are pure.
type Schema[T any] struct {
	// Name is what partition keys begin with, and the name of the record; the Order's prefix for "". Spreads in one table
	// have different names and prefixes.
	Name string
	// Order says how row keys rise.
	Order Order
	// Row makes the row key, the entity's identity: no two entities have the same.
	Row func(*T) string
	// Partitions is n for a table that has no record yet, 8 for 0. After that Resize changes it.
	Partitions int
	// Intents is that of patterns.Schema.
	Intents driver.IntentRunner
	// MaxAttempts bounds how often a change starts over on conflict, of entities and of the record; 10 for 0.
	MaxAttempts int
}

// Options are the options of New and NewNatural; nil is the same as the zero value.
type Options struct {
	// Meter, if there is one, counts what is written.
	Meter *Meter
	// Now is the clock that Ahead is measured by, time.Now for nil.
	Now func() time.Time
	// Ahead is how far in the future the time of an entity may be that moves the horizon, 15 minutes for 0. One further ahead
	// would hold up the next n until then, for all programs, and is tables.ErrInvalid.
	Ahead time.Duration
}

const (
	defaultPartitions = 8
	defaultAttempts   = 10
	defaultAhead      = 15 * time.Minute
	bucketDigits      = 3
)

// Spread keeps entities whose keys rise, spread over n partitions. It is safe for concurrent use.
type Spread[T any] struct {
	Writer[T]
	name     string
	order    Order
	row      func(*T) string
	first    int // n without a record
	attempts int
	now      func() time.Time
	ahead    time.Duration
	records  *tables.Rows[record]
	known    atomic.Pointer[layout] // nil before the first look; what it says of a row key holds for ever
	turn     chan struct{}          // held by the one goroutine that moves the horizon
}

// New opens the spread entities of a table, with the patterns to keep in step with them. It makes no request. What does not
// fit together is tables.ErrInvalid.
func New[T any](table *tables.Table, schema Schema[T], options *Options, attached ...driver.Pattern) (*Spread[T], error) {
	const op = "scatter.New"
	if options == nil {
		options = &Options{}
	}
	s := &Spread[T]{name: schema.Name, order: schema.Order, row: schema.Row, first: schema.Partitions, attempts: schema.MaxAttempts,
		now: options.Now, ahead: options.Ahead, turn: make(chan struct{}, 1)}
	if err := s.check(table); err != nil {
		return nil, invalid(op, table, err)
	}
	var err error
	if s.records, err = tables.RowsOf[record](table); err != nil {
		return nil, err
	}
	repository, err := patterns.NewRepository(table, patterns.Schema[T]{Name: repositoryName(table, s.name), Key: s.keyOf, RowPrefix: s.order.prefix,
		Intents: schema.Intents, MaxAttempts: schema.MaxAttempts}, attached...)
	if err != nil {
		return nil, err
	}
	s.Writer = newWriter(repository, options.Meter)
	s.Writer.reach, s.Writer.look = s.reachEntity, s.lookAtEntity
	return s, nil
}

// check fills in defaults, and tells what is wrong with the schema.
func (s *Spread[T]) check(table *tables.Table) error {
	if s.name == "" {
		s.name = s.order.prefix
	}
	if s.first == 0 {
		s.first = defaultPartitions
	}
	if s.attempts == 0 {
		s.attempts = defaultAttempts
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.ahead == 0 {
		s.ahead = defaultAhead
	}
	switch {
	case table == nil:
		return errors.New("it needs a table")
	case s.row == nil:
		return errors.New("it needs a Schema.Row")
	case s.order.limit == 0:
		return errors.New("it needs a Schema.Order")
	case s.order.err != nil:
		return s.order.err
	case s.attempts < 0 || s.ahead < 0:
		return fmt.Errorf("a MaxAttempts of %d and an Ahead of %v", s.attempts, s.ahead)
	}
	if _, err := compoundkey.Encode(s.name); err != nil {
		return err
	}
	return checkPartitions(s.first)
}

func checkPartitions(n int) error {
	if n < 1 || n > MaxPartitions {
		return fmt.Errorf("%d partitions: there are 1 to %d", n, MaxPartitions)
	}
	return nil
}

// keyOf is the Key of the repository's schema. What it answers for a row key it answers for ever; of a row key behind the
// horizon that this program knows it does not know yet, and gives a key that is refused.
func (s *Spread[T]) keyOf(v *T) tables.Key {
	row := s.row(v)
	position, err := s.order.position(row)
	if err != nil {
		return tables.Key{Partition: poisoned(err.Error()), Row: row}
	}
	if l := s.known.Load(); l.covers(position) {
		return s.place(l, position, row)
	}
	// An entity that was read is where it was read, so that Repository.Verify need not know the record.
	if s.Repository() != nil {
		if key := s.Repository().MetaOf(v).Key(); key.Row == row && key.Partition != "" {
			return key
		}
	}
	return tables.Key{Partition: poisoned("the row key lies behind the horizon that is known: use the Spread's own verbs, or Prepare"), Row: row}
}

// place returns the key of a row that the layout covers.
func (s *Spread[T]) place(l *layout, position int64, row string) tables.Key {
	return tables.Key{Partition: s.partition(Bucket(row, l.partitions(position))), Row: row}
}

func (s *Spread[T]) partition(bucket int) string {
	return compoundkey.Join(s.name, compoundkey.Int(bucket, bucketDigits))
}

// repositoryName is how intents call the entities: by table and name, since a queue may serve several of both.
func repositoryName(table *tables.Table, name string) string { return table.Name() + "." + name }

// poisoned is a key that every operation refuses with the message, as compoundkey's are.
func poisoned(message string) string { return "\x00scatter: " + message + "\x00" }

func invalid(op string, table *tables.Table, err error) error {
	return failure(op, table, tables.ErrInvalid, err)
}

func failure(op string, table *tables.Table, kind, err error) error {
	e := &tables.Error{Op: op, Kind: kind, Err: err}
	if table != nil {
		e.Table = table.Name()
	}
	return e
}
