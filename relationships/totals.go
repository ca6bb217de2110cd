package relationships

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// mostTotals limits the rows that are compared in one pass over the entities.
const mostTotals = 10_000

// total is a stored aggregate and what the entities add up to.
type total struct {
	was   Aggregate
	valid bool
	is    adding
}

// wrong is Totals.Wrong.
func (x *keeper) wrong(ctx context.Context, scope driver.Scope) iter.Seq2[tables.Key, error] {
	span := compoundkey.Starting(x.name)
	if x.group == nil {
		span = compoundkey.Range(x.name, x.name+"!")
	}
	return func(yield func(tables.Key, error) bool) {
		open := map[tables.Key]*total{}
		compare := func() bool {
			differing, err := x.addUp(ctx, open, scope)
			for _, row := range differing {
				if !yield(row, nil) {
					return false
				}
			}
			clear(open)
			return err == nil || yield(tables.Key{}, err)
		}
		for row, err := range inScope(ctx, scope.Partitions, core.Query(x.host.Table().Entities().Query().Rows(span))) {
			if err != nil {
				yield(tables.Key{}, err)
				return
			}
			stored := row.(*tables.Entity)
			if _, ok := x.groupOf(stored.Key); ok {
				t := &total{}
				t.was, t.valid = x.get(stored)
				open[stored.Key] = t
			}
			if len(open) == mostTotals && !compare() {
				return
			}
		}
		compare()
	}
}

// inScope queries partitions, or the whole table for nil.
func inScope(ctx context.Context, partitions []string, q core.Query) iter.Seq2[any, error] {
	if partitions == nil {
		return q.AllowTableScan().All(ctx)
	}
	return func(yield func(any, error) bool) {
		for _, p := range partitions {
			for r, err := range q.Partition(p).All(ctx) {
				if !yield(r, err) {
					return
				}
			}
		}
	}
}

// groupOf returns the group of a row; ok is false if the row does not belong to the tally.
func (x *tally) groupOf(row tables.Key) (group string, ok bool) {
	if x.group == nil {
		return "", row.Row == compoundkey.Join(x.name)
	}
	return group, compoundkey.Parse(row.Row, x.name, compoundkey.ToString(&group)) == nil
}

// addUp adds up the entities in the partitions of stored aggregates, and returns the rows whose aggregate differs. The aggregates of a partition
// with an entity that cannot be read are unknown.
func (x *keeper) addUp(ctx context.Context, open map[tables.Key]*total, scope driver.Scope) (differing []tables.Key, err error) {
	if len(open) == 0 {
		return nil, nil
	}
	of, unknown := map[string]bool{}, map[string]bool{}
	for row := range open {
		of[row.Partition] = true
	}
	partitions, q := slices.Sorted(maps.Keys(of)), core.Query(x.host.Query())
	if n := len(partitions); scope.Partitions == nil && n > 1 { // one query, since there may be many small partitions
		q, partitions = q.Where(tables.Ge("PartitionKey", partitions[0]), tables.Le("PartitionKey", partitions[n-1])), nil
	}
	for v, err := range inScope(ctx, partitions, q) {
		if e := unreadable(err); e != nil {
			unknown[e.Key.Partition] = true
			continue
		}
		if err != nil {
			return nil, err
		}
		e, counts := x.entryOf(v)
		row, err := x.key(x.host.KeyOf(v).Partition, e.group)
		if t := open[row]; err == nil && counts && t != nil {
			t.is.add(e.value)
		}
	}
	for row, t := range open {
		if is, err := t.is.result(); !unknown[row.Partition] && (err != nil || !t.valid || is != t.was) {
			differing = append(differing, row)
		}
	}
	slices.SortFunc(differing, func(a, b tables.Key) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Row, b.Row))
	})
	return differing, nil
}

// unreadable returns an error that says that one row cannot be read, nil for any other.
func unreadable(err error) *tables.Error {
	if e, is := errors.AsType[*tables.Error](err); is && e.OfRow {
		return e
	}
	return nil
}

// agree is Totals.Agree.
func (x *keeper) agree(ctx context.Context, row tables.Key, write bool) (wrong, err error) {
	group, _ := x.groupOf(row)
	is, was, err := x.recount(ctx, row.Partition, group, write)
	switch {
	case unreadable(err) != nil, !write && errors.Is(err, tables.ErrConflict):
		return nil, nil
	case errors.Is(err, tables.ErrConflict), errors.Is(err, tables.ErrTooLarge):
		return errors.New("the stored number differs from the entities"), err
	case err != nil:
		return nil, err
	case was == nil:
		return errors.New("the row has no valid number"), nil
	case is != *was:
		return fmt.Errorf("the stored number is %+v, and that of the entities %+v", *was, is), nil
	}
	return nil, nil
}
