package relationships

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// attempts limits how often a row is read and written again on conflict.
const attempts = 10

// tally is the common part of Count and Summary: it keeps an Aggregate for each group of a partition's
// entities, in a row of the partition. Each change of a group's values writes the row, so the row's ETag
// detects any concurrent change. The row is never removed. If it does not exist yet, the change inserts it,
// and the insert fails if a concurrent change has inserted it first.
type tally[C any] struct {
	name  string
	value func(*C) (int64, bool)              // false: the entity does not count
	group func(*C) string                     // nil: one group, in a row named name
	span  func(group string) compoundkey.Span // row keys of a group's entities; nil: all keys of the partition
	get   func(*tables.Entity) (Aggregate, bool)
	set   func(*tables.Entity, Aggregate)

	repository driver.Binding[C]
}

// implementation returns the Implementation of the pattern.
func (x *tally[C]) implementation(host driver.Host[C]) driver.Implementation[C] {
	k := &keeper[C]{x, host}
	return driver.Implementation[C]{Name: x.name, Binding: &x.repository, Prior: k.prior, Rows: k.rows}
}

// keeper is a tally together with its repository.
type keeper[C any] struct {
	*tally[C]
	host driver.Host[C]
}

// in returns the tally together with its repository.
func (x *tally[C]) in(op string) (*keeper[C], error) {
	host, err := x.repository.Host(op, x.name)
	return &keeper[C]{x, host}, err
}

// entry is the contribution of one entity to a tally.
type entry struct {
	group string
	value int64
}

// entryOf returns an entity's entry, false if the entity does not count.
func (x *tally[C]) entryOf(v *C) (e entry, counts bool) {
	if e.value, counts = x.value(v); counts && x.group != nil {
		e.group = x.group(v)
	}
	return e, counts
}

// prior records an entity's entry: the value, a space, the group.
func (x *keeper[C]) prior(v *C, _ tables.Properties) ([]string, error) {
	e, counts := x.entryOf(v)
	if !counts {
		return nil, nil
	}
	return []string{strconv.FormatInt(e.value, 10) + " " + e.group}, nil
}

// priorEntry returns the entry that prior has recorded.
func priorEntry(prior []string) (e entry, counts bool, err error) {
	if len(prior) == 0 {
		return entry{}, false, nil
	}
	value, group, _ := strings.Cut(prior[0], " ")
	e.group = group
	e.value, err = strconv.ParseInt(value, 10, 64)
	return e, true, err
}

// movement holds the values that leave and join a group.
type movement struct{ leaving, joining []int64 }

// movesOf returns the movements of a change set by group, and the keys of the entities that cause them. For
// all other entities, the stored state counts.
func (x *keeper[C]) movesOf(changes []*driver.Change[C]) (all map[string]*movement, moved map[tables.Key]bool, err error) {
	all, moved = map[string]*movement{}, map[tables.Key]bool{}
	of := func(group string) *movement {
		if all[group] == nil {
			all[group] = &movement{}
		}
		return all[group]
	}
	for _, c := range changes {
		was, counted, err := priorEntry(c.Prior)
		if err != nil {
			return nil, nil, err
		}
		var is entry
		counts := false
		if c.Kind != driver.ChangeDelete {
			is, counts = x.entryOf(c.Entity)
		}
		if counted == counts && was == is {
			continue
		}
		moved[c.Key] = true
		if counted {
			m := of(was.group)
			m.leaving = append(m.leaving, was.value)
		}
		if counts {
			m := of(is.group)
			m.joining = append(m.joining, is.value)
		}
	}
	return all, moved, nil
}

// rows writes the aggregates of the groups that change.
func (x *keeper[C]) rows(ctx context.Context, changes []*driver.Change[C]) ([]driver.RowOperation, error) {
	all, moved, err := x.movesOf(changes)
	if err != nil {
		return nil, err
	}
	var writes []driver.RowOperation
	for _, group := range slices.Sorted(maps.Keys(all)) {
		key, err := x.key(changes[0].Key.Partition, group)
		if err != nil && len(all[group].joining) == 0 {
			continue // a program without the tally has stored the leaving entities under a group that cannot have a row
		}
		if err != nil {
			return nil, err
		}
		row, err := readRow(ctx, x.host.Table(), key)
		if err != nil {
			return nil, err
		}
		stored, valid := x.get(row)
		next, known := stored.without(all[group].leaving, all[group].joining)
		if !valid || !known {
			// The stored aggregate is of no use: the group has no valid row, its least or greatest value has left, or another
			// program has stored wrong numbers. Compute it from the entities.
			if next, err = x.scan(ctx, key.Partition, group, moved); err != nil {
				return nil, err
			}
		}
		for _, v := range all[group].joining {
			next.add(v)
		}
		a, err := next.result()
		if err != nil {
			return nil, &tables.Error{Pattern: x.name, Kind: tables.ErrTooLarge, Err: err}
		}
		writes = append(writes, x.put(row, a))
	}
	return writes, nil
}

// key returns the key of a group's row.
func (x *tally[C]) key(partition, group string) (tables.Key, error) {
	if x.group == nil {
		return tables.Key{Partition: partition, Row: compoundkey.Join(x.name)}, nil
	}
	row, err := compoundkey.Encode(x.name, compoundkey.String(group))
	return tables.Key{Partition: partition, Row: row}, err
}

// readRow reads a row of this package, without an ETag if it does not exist. Requests: 1.
func readRow(ctx context.Context, table *tables.Table, key tables.Key) (*tables.Entity, error) {
	row, err := table.Entities().Get(ctx, key)
	if errors.Is(err, tables.ErrNotFound) {
		return &tables.Entity{Key: key}, nil
	}
	return row, err
}

// put returns the write of an aggregate.
func (x *tally[C]) put(row *tables.Entity, a Aggregate) driver.RowOperation {
	return putRow(row, func(next *tables.Entity) { x.set(next, a) })
}

// putRow returns the write of a row under the ETag with which it was read.
func putRow(row *tables.Entity, set func(*tables.Entity)) driver.RowOperation {
	next := &tables.Entity{Key: row.Key, ETag: row.ETag}
	set(next)
	if row.ETag == "" {
		return driver.RowOperation{Verb: driver.InsertRow, Row: next}
	}
	return driver.RowOperation{Verb: driver.ReplaceRow, Row: next}
}

// scan adds up the stored entities of a group, without the entities that the change set moves. Requests: 1
// for each page of at most 1,000.
func (x *keeper[C]) scan(ctx context.Context, partition, group string, without map[tables.Key]bool) (a adding, err error) {
	query := x.host.Query().Partition(partition)
	if x.span != nil {
		query = query.Rows(x.span(group))
	}
	for v, err := range query.All(ctx) {
		if err != nil {
			return adding{}, err
		}
		if e, counts := x.entryOf(v); counts && e.group == group && !without[x.host.KeyOf(v)] {
			a.add(e.value)
		}
	}
	return a, nil
}

// read returns a group's aggregate, from its row or, if it has none, from its entities.
func (x *keeper[C]) read(ctx context.Context, partition, group string) (Aggregate, error) {
	key, err := x.key(partition, group)
	if err != nil {
		return Aggregate{}, err
	}
	row, err := readRow(ctx, x.host.Table(), key)
	if err != nil {
		return Aggregate{}, err
	}
	if a, ok := x.get(row); ok {
		return a, nil
	}
	return x.total(ctx, key, group)
}

// total adds up the stored entities of a group.
func (x *keeper[C]) total(ctx context.Context, key tables.Key, group string) (Aggregate, error) {
	sum, err := x.scan(ctx, key.Partition, group, nil)
	if err != nil {
		return Aggregate{}, err
	}
	a, err := sum.result()
	if err != nil {
		return Aggregate{}, &tables.Error{Op: "Get", Table: x.host.Table().Name(), Key: key, Pattern: x.name, Kind: tables.ErrTooLarge, Err: err}
	}
	return a, nil
}

// recount adds up the entities of a group again, and corrects the group's row if it has another aggregate.
func (x *keeper[C]) recount(ctx context.Context, partition, group string) (is Aggregate, was *Aggregate, err error) {
	key, err := x.key(partition, group)
	if err != nil {
		return Aggregate{}, nil, err
	}
	return recount[C](ctx, x.name, x.host.Table(), key, x.get, x.put, func(ctx context.Context) (Aggregate, error) {
		return x.total(ctx, key, group)
	})
}

// recount reads a row, calls scan, and writes the row under its ETag if it has another aggregate. If it has
// the same, recount reads it again: a row that has changed meanwhile may be wrong although the two were
// equal. was is nil if the row did not exist or held no valid aggregate.
func recount[C any](ctx context.Context, pattern string, table *tables.Table, key tables.Key, get func(*tables.Entity) (Aggregate, bool),
	put func(*tables.Entity, Aggregate) driver.RowOperation, scan func(context.Context) (Aggregate, error)) (is Aggregate, was *Aggregate, err error) {
	err = backoff.Retry(ctx, attempts, func() (again bool, err error) {
		row, err := readRow(ctx, table, key)
		if err != nil {
			return false, err
		}
		was = nil
		if stored, ok := get(row); ok {
			was = &stored
		}
		if is, err = scan(ctx); err != nil {
			return false, err
		}
		if was != nil && is == *was {
			now, err := readRow(ctx, table, key)
			if err == nil && now.ETag != row.ETag {
				err = &tables.Error{Op: "Recount", Table: table.Name(), Key: key, Pattern: pattern, Kind: tables.ErrConflict, Err: errors.New("entities changed while they were counted; repeat Recount")}
			}
			return errors.Is(err, tables.ErrConflict), err
		}
		err = driver.NewReconciliation(pattern, driver.Reconciliation[C]{Key: key, Keys: []string{key.Row}}).Write(ctx, key.Row, table, put(row, is))
		return errors.Is(err, tables.ErrConflict), err
	})
	return is, was, err
}

// checkRowKeys returns an error for a name if the row keys made of it would lie in own, the range of the
// entities' row keys.
func checkRowKeys(what, name string, own compoundkey.Span) error {
	if _, err := compoundkey.Encode(name); err != nil {
		return err
	}
	return driver.CheckApart(what, name, own)
}
