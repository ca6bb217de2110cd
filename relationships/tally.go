package relationships

import (
	"context"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// tally is the common part of Count and Summary. It keeps an Aggregate for each group of a partition's entities, in a row of
// the partition. Each change of a group's values writes the row under its ETag, or inserts it, so two concurrent changes
// conflict. No change removes the row.
type tally struct {
	name  string
	value func(any) (int64, bool)             // the second result is false for an entity that is not counted
	group func(any) string                    // nil for a single group, whose row key is made of name alone
	span  func(group string) compoundkey.Span // row keys of a group's entities; nil for all keys of the partition
	get   func(*tables.Entity) (Aggregate, bool)
	set   func(*tables.Entity, Aggregate)

	repository driver.Binding
}

func (x *tally) implementation(host driver.Host) driver.Implementation {
	k := &keeper{x, host}
	return driver.Implementation{Name: x.name, Binding: &x.repository, Prior: k.prior, Rows: k.rows, Totals: &driver.Totals{Wrong: k.wrong, Agree: k.agree}}
}

// keeper is a tally together with its repository.
type keeper struct {
	*tally
	host driver.Host
}

// in returns the tally together with its repository.
func (x *tally) in(op string) (*keeper, error) {
	host, err := x.repository.Host(op, x.name)
	return &keeper{x, host}, err
}

// entry is what one entity adds to a tally.
type entry struct {
	group string
	value int64
}

// entryOf returns an entity's entry; counts is false if the entity is not counted.
func (x *tally) entryOf(v any) (e entry, counts bool) {
	if e.value, counts = x.value(v); counts && x.group != nil {
		e.group = x.group(v)
	}
	return e, counts
}

// prior returns an entity's entry as text: the value, a space, the group.
func (x *keeper) prior(v any, _ tables.Properties) ([]string, error) {
	e, counts := x.entryOf(v)
	if !counts {
		return nil, nil
	}
	return []string{strconv.FormatInt(e.value, 10) + " " + e.group}, nil
}

// priorEntry is the inverse of prior.
func priorEntry(prior []string) (e entry, counts bool, err error) {
	if len(prior) == 0 {
		return entry{}, false, nil
	}
	value, group, _ := strings.Cut(prior[0], " ")
	e.group = group
	e.value, err = strconv.ParseInt(value, 10, 64)
	return e, true, err
}

// movement holds the values that leave and that join a group.
type movement struct{ leaving, joining []int64 }

// movesOf returns the movements of a change set by group, and the keys of the entities whose values leave or
// join a group.
func (x *keeper) movesOf(changes []*driver.Change) (all map[string]*movement, moved map[tables.Key]bool, err error) {
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

// rows returns the writes of the aggregates that change.
func (x *keeper) rows(ctx context.Context, changes []*driver.Change) ([]driver.RowOperation, error) {
	all, moved, err := x.movesOf(changes)
	if err != nil {
		return nil, err
	}
	var writes []driver.RowOperation
	for _, group := range slices.Sorted(maps.Keys(all)) {
		key, err := x.key(changes[0].Key.Partition, group)
		if err != nil && len(all[group].joining) == 0 {
			continue // the group's row would have an illegal key, so a program without the tally has stored the entities that leave
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
			// Compute the aggregate from the entities: the group has no valid row, or its least or greatest value leaves, or
			// another program has stored wrong numbers.
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
		writes = append(writes, putRow(row, x.set, a))
	}
	return writes, nil
}

// key returns the key of a group's row.
func (x *tally) key(partition, group string) (tables.Key, error) {
	if x.group == nil {
		return tables.Key{Partition: partition, Row: compoundkey.Join(x.name)}, nil
	}
	row, err := compoundkey.Encode(x.name, compoundkey.String(group))
	return tables.Key{Partition: partition, Row: row}, err
}

// readRow reads a row. If it does not exist, it returns an entity without ETag. Requests: 1.
func readRow(ctx context.Context, table *tables.Table, key tables.Key) (*tables.Entity, error) {
	row, err := table.Entities().Get(ctx, key)
	if errors.Is(err, tables.ErrNotFound) {
		return &tables.Entity{Key: key}, nil
	}
	return row, err
}

// putRow returns the write of an aggregate into a row, under the ETag with which readRow has read it.
func putRow(row *tables.Entity, set func(*tables.Entity, Aggregate), a Aggregate) driver.RowOperation {
	next := &tables.Entity{Key: row.Key, ETag: row.ETag}
	set(next, a)
	if row.ETag == "" {
		return driver.RowOperation{Verb: driver.InsertRow, Row: next}
	}
	return driver.RowOperation{Verb: driver.ReplaceRow, Row: next}
}

// scan adds up the stored entities of a group, except those whose keys are in without. Requests: 1 for each
// page of at most 1,000.
func (x *keeper) scan(ctx context.Context, partition, group string, without map[tables.Key]bool) (a adding, err error) {
	query := core.Query(x.host.Query()).Partition(partition)
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

// read returns a group's aggregate from the group's row or, if there is no valid row, from its entities.
func (x *keeper) read(ctx context.Context, partition, group string) (Aggregate, error) {
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
func (x *keeper) total(ctx context.Context, key tables.Key, group string) (Aggregate, error) {
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

// recount adds up the entities of a group again. If the group's row has another aggregate and write is set, it corrects the row.
func (x *keeper) recount(ctx context.Context, partition, group string, write bool) (is Aggregate, was *Aggregate, err error) {
	key, err := x.key(partition, group)
	if err != nil {
		return Aggregate{}, nil, err
	}
	return recount(ctx, x.name, x.host.Table(), key, write, x.get, x.set, func(ctx context.Context) (Aggregate, error) {
		return x.total(ctx, key, group)
	})
}

// recount reads a row, calls scan, and writes the result under the row's ETag if the row had another aggregate and write is set.
// Otherwise it reads the row again and, if the row has changed meanwhile, starts again: the scan may
// have seen only some of the changes. was is nil if the row had no valid aggregate.
func recount(ctx context.Context, pattern string, table *tables.Table, key tables.Key, write bool, get func(*tables.Entity) (Aggregate, bool),
	set func(*tables.Entity, Aggregate), scan func(context.Context) (Aggregate, error)) (is Aggregate, was *Aggregate, err error) {
	edit := driver.NewReconciliation(pattern, driver.Reconciliation{Key: key, Keys: []string{key.Row}})
	err = edit.Edit(ctx, key.Row, table, func() ([]driver.RowOperation, error) {
		row, err := readRow(ctx, table, key)
		if err != nil {
			return nil, err
		}
		was = nil
		if stored, ok := get(row); ok {
			was = &stored
		}
		if is, err = scan(ctx); err != nil {
			return nil, err
		}
		if was != nil && is == *was || !write {
			now, err := readRow(ctx, table, key)
			if err == nil && now.ETag != row.ETag {
				err = &tables.Error{Op: "Recount", Table: table.Name(), Key: key, Pattern: pattern, Kind: tables.ErrConflict, Err: errors.New("entities changed while they were counted; repeat Recount")}
			}
			return nil, err
		}
		return []driver.RowOperation{putRow(row, set, is)}, nil
	})
	return is, was, err
}

// checkRowKeys returns an error if name is invalid, or if row keys that begin with name would be in own, the
// range of the entities' row keys.
func checkRowKeys(what, name string, own compoundkey.Span) error {
	if _, err := compoundkey.Encode(name); err != nil {
		return err
	}
	return driver.CheckApart(what, name, own)
}

// Aggregate summarizes a value of the entities of a group.
type Aggregate struct {
	Count         int64 // number of entities
	Sum, Min, Max int64 // sum, minimum and maximum of their values; 0 if Count is 0
}

// The properties of the row of a Summary. A Count stores only the first of them.
const (
	countProperty = "Count"
	sumProperty   = "Sum"
	minProperty   = "Min"
	maxProperty   = "Max"
)

// countIn returns the number in a row; false if the row does not exist or has no valid number.
func countIn(row *tables.Entity) (Aggregate, bool) {
	n, ok := row.Get(countProperty).Int()
	return Aggregate{Count: n}, ok && n >= 0 && row.ETag != ""
}

// aggregateIn returns the aggregate in a row; false if the row does not exist or has no valid aggregate.
func aggregateIn(row *tables.Entity) (Aggregate, bool) {
	a, ok := countIn(row)
	for property, field := range map[string]*int64{sumProperty: &a.Sum, minProperty: &a.Min, maxProperty: &a.Max} {
		v, stored := row.Get(property).Int()
		*field, ok = v, ok && stored
	}
	return a, ok && a.Min <= a.Max && (a.Count > 0 || a == Aggregate{})
}

func setCount(row *tables.Entity, a Aggregate) { row.Set(countProperty, tables.Int64(a.Count)) }

func setAggregate(row *tables.Entity, a Aggregate) {
	setCount(row, a)
	row.Set(sumProperty, tables.Int64(a.Sum))
	row.Set(minProperty, tables.Int64(a.Min))
	row.Set(maxProperty, tables.Int64(a.Max))
}

// adding is an Aggregate while values are added; its sum may temporarily exceed 64 bits.
type adding struct {
	Aggregate
	sum big.Int
}

func (a *adding) add(v int64) {
	if a.Count == 0 {
		a.Min, a.Max = v, v
	}
	a.Count, a.Min, a.Max = a.Count+1, min(a.Min, v), max(a.Max, v)
	a.sum.Add(&a.sum, big.NewInt(v))
}

// result returns the aggregate, or an error if the sum of all values does not fit into an Int64.
func (a *adding) result() (Aggregate, error) {
	if !a.sum.IsInt64() {
		return Aggregate{}, errors.New("the sum of the values does not fit into a 64-bit integer; use a larger unit for the values, or more groups")
	}
	a.Sum = a.sum.Int64()
	return a.Aggregate, nil
}

// without returns the aggregate of a group after some values have left, and before others join. known is false
// if the aggregate must be computed from the entities: the minimum or maximum leaves, or other programs have
// stored wrong numbers.
func (a Aggregate) without(leaving, joining []int64) (rest adding, known bool) {
	switch left := a.Count - int64(len(leaving)); {
	case left < 0:
		return adding{}, false
	case left == 0:
		return adding{}, true
	}
	for _, v := range leaving {
		if a.Min == a.Max {
			break // all values are equal
		}
		if v <= a.Min && (len(joining) == 0 || slices.Min(joining) > v) || v >= a.Max && (len(joining) == 0 || slices.Max(joining) < v) {
			return adding{}, false
		}
	}
	rest.Aggregate = a
	rest.sum.SetInt64(a.Sum)
	for _, v := range leaving {
		rest.Count--
		rest.sum.Sub(&rest.sum, big.NewInt(v))
	}
	return rest, true
}
