package indexentities

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// inTable stores the lists in rows of partitions of their own.
type inTable[T any] struct{ rowIndex[T] }

// NewInTable makes an index with its lists in partitions of their own, the guide's option 3. table holds the lists
// and may be in another account; if it is nil, the entities' own table holds them. name is the beginning of the
// lists' partition keys: ASCII letters, digits, '-' and '.'. value must be pure. value returns one value, or several,
// for example the entity's tags; repeated values count once. It returns the zero Part for an entity that is in no
// list. The repository needs a table of a patterns.Store. NewRepository reports invalid arguments.
func NewInTable[T any, K compoundkey.OneOrMany](name string, value func(*T) K, table *tables.Table, options *Options[T]) *Index[T] {
	x := &inTable[T]{rowIndex[T]{newIndex(name, value, options), table}}
	x.shelves, x.attach = x, x.attachTo
	return &Index[T]{index: &x.index}
}

func (x *inTable[T]) attachTo(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation, err := x.definition.Attach(host)
	implementation.Intents = eventual.IntentQueue(nil)
	implementation.Prior, implementation.OutsideKeys, implementation.Reconcile = x.prior, x.outsideKeys, x.reconcileLists
	implementation.Tables = []*tables.Table{x.table}
	implementation.Audit = &driver.Audit[T]{Expected: x.wanted, List: x.held, Read: x.readLists}
	return implementation, err
}

// reconcileLists puts the entities of an intent into the lists to which they belong, and removes them from the other lists
// that the intent names. For several entities it writes the lists of a partition in one transaction.
func (x *inTable[T]) reconcileLists(ctx context.Context, all []*driver.Reconciliation[T]) error {
	rows, err := x.rows()
	if err != nil {
		return err
	}
	x.reconcile(ctx, all, func(edits []*edit[T]) {
		if len(all) > 1 {
			edits = x.writeTogether(ctx, rows, edits)
		}
		for _, e := range edits {
			if err := x.reconcileList(ctx, rows, e); err != nil {
				e.fail(err)
			}
		}
	})
	return nil
}

// apply edits a list in memory.
func (x *inTable[T]) apply(l *list, e *edit[T]) error {
	for _, r := range e.in {
		if err := l.enter(x.idOf(r.Key), false); err != nil {
			return err
		}
	}
	for _, r := range e.out {
		l.leave(x.idOf(r.Key))
	}
	return nil
}

// writeTogether writes lists by one transaction for each partition. It returns the lists that must be written one by one,
// such as those that a concurrent writer has changed.
func (x *inTable[T]) writeTogether(ctx context.Context, rows rowLists, edits []*edit[T]) (alone []*edit[T]) {
	partitions := map[string][]*edit[T]{}
	var order []string
	for _, e := range edits {
		first, err := driver.SplitKey(e.place)
		if err != nil {
			alone = append(alone, e)
			continue
		}
		if partitions[first.Partition] == nil {
			order = append(order, first.Partition)
		}
		partitions[first.Partition] = append(partitions[first.Partition], e)
	}
	for _, partition := range order {
		left, err := division.Divided[*edit[T]]{
			Write: func(edits []*edit[T]) error { return x.writeLists(ctx, rows, edits) },
			Ends: func(err error) bool { // the errors named here may concern a single list, so the set is divided
				return ctx.Err() != nil || !errors.Is(err, tables.ErrConflict) && !errors.Is(err, tables.ErrTooLarge) && !errors.Is(err, tables.ErrGarbled)
			},
		}.Run(partitions[partition])
		if alone = append(alone, left...); err != nil {
			for _, e := range partitions[partition] {
				e.fail(err)
			}
		}
	}
	return slices.DeleteFunc(alone, func(e *edit[T]) bool {
		return !slices.ContainsFunc(e.all(), func(r *driver.Reconciliation[T]) bool { return r.Err == nil })
	})
}

// writeLists writes lists of one partition in one transaction.
func (x *inTable[T]) writeLists(ctx context.Context, rows rowLists, edits []*edit[T]) error {
	places := make([]string, len(edits))
	for i, e := range edits {
		places[i] = e.place
	}
	lists, err := rows.readAll(ctx, places)
	if err != nil {
		return err
	}
	var operations []driver.RowOperation
	for i, l := range lists {
		if err := x.apply(l, edits[i]); err != nil {
			return err
		}
		operations = append(operations, l.writes()...)
	}
	if len(operations) == 0 {
		return nil
	}
	if err := checkSize(operations); err != nil {
		return err
	}
	return edits[0].all()[0].Write(ctx, edits[0].place, rows.table, operations...)
}

// reconcileList writes one row of a list at a time, and reads the list again until there is nothing to write.
func (x *inTable[T]) reconcileList(ctx context.Context, rows rowLists, e *edit[T]) error {
	for conflicts := 0; ; {
		l, err := rows.read(ctx, e.place)
		if err != nil {
			return err
		}
		if err := x.apply(l, e); err != nil {
			return err
		}
		operations := l.writes()
		if len(operations) == 0 {
			return nil
		}
		err = e.all()[0].Write(ctx, e.place, rows.table, operations[0])
		switch {
		case err == nil && len(operations) == 1:
			return nil
		case err == nil:
			continue
		case !errors.Is(err, tables.ErrConflict) || conflicts == attempts:
			return err
		}
		if err := backoff.Wait(ctx, conflicts); err != nil {
			return err
		}
		conflicts++
	}
}

func (x *inTable[T]) place(group string, value compoundkey.Part) (string, error) {
	return rowPlace(x.definition.Partition(group), compoundkey.Join("", value))
}

func (x *inTable[T]) checkOwn(place string) error {
	key, err := driver.SplitKey(place)
	if err == nil && !x.definition.Owns(key.Partition) {
		err = fmt.Errorf("the message names a list in partition %q, which does not belong to index %q; check who can put messages on the queue", key.Partition, x.definition.Name)
	}
	return err
}

func (x *inTable[T]) idOf(entity tables.Key) string { return driver.JoinKey(entity) }

func (x *inTable[T]) keyOf(_, id string) (tables.Key, error) { return driver.SplitKey(id) }

func (x *inTable[T]) values(ctx context.Context, group string, of compoundkey.Span) iter.Seq2[Value, error] {
	return x.valuesIn(ctx, x.definition.Partition(group), of, "")
}

// held yields a fact for each key in the lists. Without Options.ByPartition, or without partitions in the scope, it
// reads the lists of all groups. Requests: those of Query.AllParallel of the lists.
func (x *inTable[T]) held(ctx context.Context, scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return x.heldIn(ctx, x.queries, scope)
}

// queries returns queries for all lists that can contain an entity of the scope.
func (x *inTable[T]) queries(table *tables.Table, scope driver.Scope) []tables.Query[tables.Entity] {
	q := table.Entities().Query()
	if !x.definition.Groups.ByPartition || scope.Partitions == nil {
		groups := compoundkey.All().Under(x.definition.Name)
		return []tables.Query[tables.Entity]{q.Partition(x.definition.Partition("")),
			q.Where(tables.Ge("PartitionKey", groups.From()), tables.Lt("PartitionKey", groups.To())).AllowTableScan()}
	}
	var queries []tables.Query[tables.Entity]
	for _, partition := range scope.Partitions {
		queries = append(queries, q.Partition(x.definition.Partition(partition)))
	}
	return queries
}
