package indexentities

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// InPartition is an index whose lists are rows in the entities' own partition. Its groups are the partitions. It belongs to
// the one Repository to which it was given. Before NewRepository has returned, its reads return tables.ErrWiring.
type InPartition[T any] struct{ index[T] }

// NewInPartition makes an index with its lists in the entities' partition, the guide's option 2. name is the beginning of the
// lists' row keys: ASCII letters, digits, '-' and '.'. value must be pure. It returns one value, or several, for example the
// entity's tags; repeated values count once. It returns the zero Part for an entity that is in no list. NewRepository reports
// invalid arguments.
func NewInPartition[T any, K compoundkey.OneOrMany](name string, value func(*T) K) *InPartition[T] {
	x := &InPartition[T]{newIndex(name, value, nil)}
	x.shelves = x
	return x
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *InPartition[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation, err := x.definition.Attach(host)
	if err == nil {
		err = driver.CheckApart("the index", x.definition.Name, host.Rows())
	}
	implementation.Prior, implementation.Rows = x.prior, x.contribute
	implementation.Audit = &driver.Audit[T]{Expected: x.wanted, List: x.held, Read: x.readLists, Remove: x.removeEntity}
	return implementation, err
}

// contribute returns the rows of the lists. It reads each list that an entity is in, or was in, once for all changes. It writes
// a list that an entity enters even if the list already contains it, so that a concurrent Repair detects the write.
func (x *InPartition[T]) contribute(ctx context.Context, changes []*driver.Change[T]) ([]driver.RowOperation, error) {
	rows, err := x.rows()
	if err != nil {
		return nil, err
	}
	var places []string
	edits := map[string][]func(*list) error{}
	edit := func(place string, edit func(*list) error) {
		if edits[place] == nil {
			places = append(places, place)
		}
		edits[place] = append(edits[place], edit)
	}
	for _, change := range changes {
		after, err := x.after(change)
		if err != nil {
			return nil, err
		}
		id := x.idOf(change.Key)
		for _, place := range after {
			touch := !slices.Contains(change.Prior, place)
			edit(place, func(l *list) error { return l.enter(id, touch) })
		}
		for _, place := range minus(change.Prior, after) {
			edit(place, func(l *list) error { l.leave(id); return nil })
		}
	}
	lists, err := rows.readAll(ctx, places)
	if err != nil {
		return nil, err
	}
	var operations []driver.RowOperation
	for i, l := range lists {
		for _, edit := range edits[places[i]] {
			if err := edit(l); err != nil {
				return nil, err
			}
		}
		operations = append(operations, l.writes()...)
	}
	return operations, checkSize(operations)
}

// checkSize returns an error if the rows and the entity's own row do not fit into one transaction.
func checkSize(operations []driver.RowOperation) error {
	if len(operations) > tables.MaxTransactionOperations-1 {
		return tooLarge("the change rewrites %d rows of lists, and a transaction has at most %d operations, one of them for the entity", len(operations), tables.MaxTransactionOperations)
	}
	sent := 0
	for _, o := range operations {
		for _, p := range o.Row.Properties {
			text, _ := p.Value.Text()
			sent += len(text) + strings.Count(text, idSeparator) // JSON writes each separator with two characters
		}
	}
	if sent > tables.MaxTransactionSize {
		return tooLarge("the change rewrites %d bytes of lists, and a transaction holds at most %d", sent, tables.MaxTransactionSize)
	}
	return nil
}

func (x *InPartition[T]) rows() (rowLists, error) {
	host, err := x.definition.Host("Rows")
	if err != nil {
		return rowLists{}, err
	}
	return rowLists{host.Table()}, nil
}

func (x *InPartition[T]) place(group string, value compoundkey.Part) (string, error) {
	return rowPlace(group, compoundkey.Join(x.definition.Name, value))
}

// checkOwn is never called, since only reconcile calls it and an index in the partition has no intents. It
// exists for the interface.
func (x *InPartition[T]) checkOwn(string) error { return nil }

func (x *InPartition[T]) load(ctx context.Context, place string) ([]string, error) {
	return loadRows(ctx, x.rows, place)
}

func (x *InPartition[T]) idOf(entity tables.Key) string { return entity.Row }

func (x *InPartition[T]) keyOf(place, id string) (tables.Key, error) {
	list, err := driver.SplitKey(place)
	return tables.Key{Partition: list.Partition, Row: id}, err
}

func (x *InPartition[T]) values(ctx context.Context, group string, of compoundkey.Span) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		rows, err := x.rows()
		if err != nil {
			yield(Value{}, err)
			return
		}
		q := rows.table.Entities().Query().Partition(group).Rows(of.Under(x.definition.Name))
		for c, err := range rows.counts(ctx, q) {
			if !yield(Value{Key: strings.TrimPrefix(c.first, x.definition.Name+"_"), Count: c.ids}, err) {
				return
			}
		}
	}
}

// held yields a fact for each key in the lists. Requests: those of Query.AllParallel of the lists.
func (x *InPartition[T]) held(ctx context.Context, scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return x.heldByRows(ctx, x.rows, x.partitions, scope)
}

// partitions returns queries for all lists that entities in the scope can be in.
func (x *InPartition[T]) partitions(table *tables.Table, scope driver.Scope) []tables.Query[tables.Entity] {
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
