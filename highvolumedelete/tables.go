package highvolumedelete

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// RowOrder says how the rows of a partition are ordered by time.
type RowOrder uint8

// The orders.
const (
	Unordered   RowOrder = iota // rows are not keyed by time
	OldestFirst                 // as compoundkey.Time does
	NewestFirst                 // as compoundkey.TimeDesc and logtail do
)

// DefaultEarly is the default of Schema.Early.
const DefaultEarly = 24 * time.Hour

// Schema says how entities of type T are divided over tables.
type Schema[T any] struct {
	// Name begins the tables' names: at most 52 ASCII letters and digits. All tables named by it and a label, such as
	// LoginsD20140822, must belong to this package: Drop drops them.
	Name string
	// Unit is the length of a period (default Day). It must not change: tables of another unit are not found.
	Unit Unit
	// Location determines when days, weeks and months begin (default UTC). It must not change either.
	Location *time.Location
	// Time returns the time that determines the entity's period. It must be pure and never change for an entity: use
	// a time of the entity, not the time of the write.
	Time func(*T) time.Time
	// Open returns the repository of a period's table, with its own patterns, which must store only in that table: a
	// list, copy or blob elsewhere causes tables.ErrWiring, since Drop would not remove it. Open must make no
	// request. It is called once for each table in use; for a dropped table it may be called again, if no pattern has
	// effects outside of the partition.
	Open func(table *tables.Table) (*patterns.Repository[T], error)
	// Late is how long after the end of an entity's period Insert accepts the entity. 0 means until the period is
	// below the retention mark, and a negative value means never. If times are in whole seconds, allow some seconds.
	Late time.Duration
	// Early is how long before the beginning of an entity's period Insert accepts the entity (default DefaultEarly,
	// 24 hours; negative: not at all). Each period that an entity's time names gets a table, so a wrong clock creates
	// many tables.
	Early time.Duration
	// RowOrder is the order by Time of the rows of a partition (default Unordered). Between streams in that order, without
	// holding a period in memory.
	RowOrder RowOrder
	// Now is the clock (default time.Now).
	Now func() time.Time
}

// Tables keeps entities of type T in a table for each period. It is safe for concurrent use.
type Tables[T any] struct {
	account  *tables.Account
	schema   Schema[T]
	calendar calendar
	control  *tables.Rows[markRow]

	mu    sync.Mutex
	open  map[period]opened[T]
	known mark // the newest mark that was read
}

// New prepares the tables. It makes no request, and creates no table. It returns tables.ErrWiring for an invalid
// schema.
func New[T any](account *tables.Account, schema Schema[T]) (*Tables[T], error) {
	const op = "highvolumedelete.New"
	switch {
	case account == nil || schema.Time == nil || schema.Open == nil:
		return nil, errs.Wiringf(op, "", "the account, Schema.Time or Schema.Open is nil; set all of them")
	case int(schema.Unit) >= len(layouts):
		return nil, errs.Wiringf(op, "", "Schema.Unit is %v; it must be Hour, Day, Week or Month", schema.Unit)
	case schema.RowOrder > NewestFirst:
		return nil, errs.Wiringf(op, "", "Schema.RowOrder is %d; it must be Unordered, OldestFirst or NewestFirst", schema.RowOrder)
	}
	if err := checkName(schema.Name); err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	if schema.Location == nil {
		schema.Location = time.UTC
	}
	if schema.Now == nil {
		schema.Now = time.Now
	}
	schema.Early = cmp.Or(schema.Early, DefaultEarly)
	control, err := tables.RowsOf[markRow](account.Table(schema.Name + controlSuffix))
	if err != nil {
		return nil, err
	}
	return &Tables[T]{account: account, schema: schema, calendar: calendar{schema.Unit, schema.Location}, control: control,
		open: map[period]opened[T]{}}, nil
}

// controlSuffix is the end of the name of the table that holds the retention mark. No label ends in a letter,
// so no table of a period has this name.
const controlSuffix = "Retention"

const maxName = 63 - labelLength

func checkName(name string) error {
	if len(name) == 0 || len(name) > maxName {
		return fmt.Errorf("Schema.Name has %d characters; it must have 1 to %d", len(name), maxName)
	}
	if rows.CheckTableName(name+controlSuffix) != nil {
		return fmt.Errorf("Schema.Name %q must have only ASCII letters and digits, and begin with a letter", name)
	}
	return nil
}

func (s *Tables[T]) tableName(p period) string { return s.schema.Name + p.label() }

// Control returns the table that holds the retention mark.
func (s *Tables[T]) Control() *tables.Table { return s.control.Table() }

// TableName returns the name of the table of the period that contains at.
func (s *Tables[T]) TableName(at time.Time) (string, error) {
	p, err := s.calendar.periodOf(at)
	if err != nil {
		return "", errs.InvalidIn("TableName", "", "%w", err)
	}
	return s.tableName(p), nil
}

// Repository returns the repository of the period that contains at, for methods that Tables does not have. It makes
// no request, and the table need not exist: Insert, Upsert and Prepare create it.
func (s *Tables[T]) Repository(at time.Time) (*patterns.Repository[T], error) {
	p, err := s.calendar.periodOf(at)
	if err != nil {
		return nil, errs.InvalidIn("Repository", "", "%w", err)
	}
	return s.repository(p)
}

func (s *Tables[T]) repository(p period) (*patterns.Repository[T], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.open[p]; ok {
		return o.repo, o.refused
	}
	name := s.tableName(p)
	repo, err := s.schema.Open(s.account.Table(name))
	switch {
	case err != nil:
		return nil, err
	case repo == nil || repo.Table().Name() != name:
		return nil, errs.Wiringf("Open", name, "Schema.Open returned nil or a repository of another table; return one of the table that it gets")
	}
	o := opened[T]{repo: repo}
	if err := staysWithin(repo); err != nil {
		o = opened[T]{refused: errs.Wiringf("Open", name, "%w", err)}
	}
	s.open[p] = o
	return o.repo, o.refused
}

// opened is the result of Schema.Open for a period: a repository, or why it is refused. The refusal is kept, since Open cannot be
// called again: the repository may already be registered for intents.
type opened[T any] struct {
	repo    *patterns.Repository[T]
	refused error
}

// reachesOut reports whether a repository that staysWithin has accepted has effects outside of the entity's partition.
func reachesOut[T any](repo *patterns.Repository[T]) bool {
	return slices.ContainsFunc(patterns.HostOf(repo).Patterns(), func(p *driver.Implementation) bool { return p.Outside != nil })
}

// staysWithin refuses patterns that store outside of the table, since Drop would not remove that. It cannot know
// where a pattern with OutsideKeys or a transform of StageSpill writes, and refuses every such pattern.
func staysWithin[T any](repo *patterns.Repository[T]) error {
	for _, p := range patterns.HostOf(repo).Patterns() {
		if p.Outside != nil && p.Outside.Table != nil && !p.Outside.Table.Same(repo.Table()) {
			return fmt.Errorf("pattern %q stores copies in another table, which Drop would not remove; let Schema.Open use patterns that store in the period's table only", p.Name)
		}
		if p.Effect.OutsideKeys != nil || p.Transform != nil && p.Transform.Stage == driver.StageSpill {
			return fmt.Errorf("pattern %q may store outside of the period's table, which Drop would not remove; let Schema.Open use patterns that store in that table only", p.Name)
		}
	}
	return nil
}
