package indexentities

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/refusal"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// prior returns the lists that contain the entity before a change.
func (x *inPartition) prior(v any, _ tables.Properties) ([]string, error) { return x.stored(v), nil }

// after returns the lists to which an entity belongs after a change.
func (x *inPartition) after(change *driver.Change) ([]string, error) {
	if change.Kind == driver.ChangeDelete {
		return nil, nil
	}
	return x.places(change.Entity)
}

// minus returns the elements of a that are not in b.
func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// wanted returns the facts that an entity requires: the entity is in the list of each of its values.
func (x *inPartition) wanted(v any) ([]driver.Fact, error) {
	places, err := x.places(v)
	if err != nil {
		return nil, err
	}
	host, err := x.definition.Host("Expected")
	if err != nil {
		return nil, err
	}
	facts := make([]driver.Fact, len(places))
	for i, place := range places {
		facts[i] = driver.Fact{Place: place, Entity: host.KeyOf(v)}
	}
	return facts, nil
}

// heldBy returns the fact that a list holds an entity, or that the list cannot be read; otherwise held is false.
func (x *inPartition) heldBy(l *readList, place string, entity tables.Key) (fact driver.Fact, held bool) {
	fact = driver.Fact{Place: place, Entity: entity, Err: l.err}
	if l.err != nil {
		return fact, true
	}
	id := x.idOf(entity)
	if key, err := x.keyOf(place, id); err != nil || key != entity {
		return fact, false // the lists of a partition never name entities of another one
	}
	_, held = slices.BinarySearchFunc(l.ids, id, compoundkey.Compare)
	return fact, held
}

// facts yields the facts for those ids of a list that are in the scope.
func (x *inPartition) facts(place string, ids []string, scope driver.Scope) iter.Seq[driver.Fact] {
	return func(yield func(driver.Fact) bool) {
		for _, id := range ids {
			key, err := x.keyOf(place, id)
			fact := driver.Fact{Place: place, Entity: key, Err: err}
			if err == nil && !scope.Contains(key) {
				continue
			}
			if !yield(fact) {
				return
			}
		}
	}
}

// readLists implements Effect.Read. It reads each list once. For an entity in a damaged list, it returns a Fact with
// an Err. Requests: 1 for each list.
func (x *inPartition) readLists(ctx context.Context, asked []driver.Fact) ([]*driver.Fact, error) {
	found := make([]*driver.Fact, len(asked))
	at := map[string]int{} // indexes of places
	var places []driver.Fact
	for i := range asked {
		if _, known := at[asked[i].Place]; !known {
			at[asked[i].Place] = len(places)
			places = append(places, driver.Fact{Place: asked[i].Place})
		}
	}
	lists := make([]readList, len(places))
	_, err := driver.ReadEach(func(ctx context.Context, place string, _ tables.Key) (driver.Fact, bool, error) {
		ids, err := x.load(ctx, place)
		err = x.failed("Read", err)
		if err != nil && (!errors.Is(err, tables.ErrGarbled) || refusal.OfResponse(err)) {
			return driver.Fact{}, false, err
		}
		lists[at[place]] = readList{ids, err}
		return driver.Fact{}, false, nil
	})(ctx, places)
	if err != nil {
		return nil, err
	}
	for i := range asked {
		if fact, held := x.heldBy(&lists[at[asked[i].Place]], asked[i].Place, asked[i].Entity); held {
			found[i] = &fact
		}
	}
	return found, nil
}

// readList is a list as it was read, or the error of a damaged one.
type readList struct {
	ids []string
	err error
}

// held yields a fact for each key in the lists, row by row, in no order. Requests: those of Query.AllParallel of the lists.
func (x *inPartition) held(ctx context.Context, scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		lists, err := x.rows()
		if err != nil {
			yield(driver.Fact{}, err)
			return
		}
		for _, q := range x.queries(lists.table, scope) {
			for row, err := range q.AllParallel(ctx, &tables.ParallelOptions[tables.Entity]{Unordered: true}) {
				if err != nil {
					yield(driver.Fact{}, x.failed("List", err))
					return
				}
				first, _ := rows.ParseNumbered(row.Key.Row)
				place := driver.JoinKey(tables.Key{Partition: row.Key.Partition, Row: first})
				ids, err := lists.decode(row)
				if err != nil && !yield(driver.Fact{Place: place, Entity: tables.Key{Partition: row.Key.Partition}, Err: x.failed("List", err)}, nil) {
					return
				}
				for fact := range x.facts(place, ids, scope) {
					if !yield(fact, nil) {
						return
					}
				}
			}
		}
	}
}

// queries returns queries for all lists that can contain an entity of the scope.
func (x *inPartition) queries(table *tables.Table, scope driver.Scope) []tables.Query[tables.Entity] {
	all := table.Entities().Query().Rows(compoundkey.All().Under(x.definition.Name))
	if scope.Partitions == nil {
		return []tables.Query[tables.Entity]{all.AllowTableScan()}
	}
	var queries []tables.Query[tables.Entity]
	for _, partition := range scope.Partitions {
		queries = append(queries, all.Partition(partition))
	}
	return queries
}

// removeEntity implements Effect.Remove: it removes an entity from a list unless wanted says that the entity belongs to it.
// Requests: 2, and those of wanted; 2 more for each conflict.
func (x *inPartition) removeEntity(ctx context.Context, place string, entity tables.Key, wanted func(context.Context) (bool, error)) error {
	stored, err := x.rows()
	if err != nil {
		return err
	}
	var asked error // what wanted has returned, which is not about the list
	member := driver.NewReconciliation(x.definition.Name, driver.Reconciliation{Key: entity, Keys: []string{place}})
	err = member.Edit(ctx, place, stored.table, func() ([]driver.RowOperation, error) {
		l, err := stored.read(ctx, place)
		if err != nil {
			return nil, err
		}
		l.leave(x.idOf(entity))
		operations := l.writes()
		if len(operations) == 0 || l.first.Partition != entity.Partition {
			return nil, nil
		}
		var belongs bool
		if belongs, asked = wanted(ctx); asked != nil || belongs {
			return nil, nil
		}
		return operations, nil
	})
	return cmp.Or(asked, x.failed("Remove", err))
}
