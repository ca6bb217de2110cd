package indexentities

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// inPartition stores the lists in rows of the entities' own partition.
type inPartition[T any] struct{ rowIndex[T] }

// NewInPartition makes an index with its lists in the entities' partition, the guide's option 2. Its groups are the
// partitions: each read begins with In. name is the beginning of the lists' row keys: ASCII letters, digits, '-' and
// '.'. value must be pure. value returns one value, or several, for example the entity's tags; repeated values count
// once. It returns the zero Part for an entity that is in no list. NewRepository reports invalid arguments.
func NewInPartition[T any, K compoundkey.OneOrMany](name string, value func(*T) K) *Index[T] {
	x := &inPartition[T]{rowIndex[T]{index: newIndex(name, value, &Options[T]{ByPartition: true})}}
	x.shelves, x.attach = x, x.attachTo
	return &Index[T]{index: &x.index}
}

func (x *inPartition[T]) attachTo(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation, err := x.definition.Attach(host)
	if err == nil {
		err = driver.CheckApart("the index", x.definition.Name, host.Rows())
	}
	implementation.Prior, implementation.Rows = x.prior, x.contribute
	implementation.Audit = &driver.Audit[T]{Expected: x.wanted, List: x.held, Read: x.readLists, Remove: x.removeEntity}
	return implementation, err
}

// contribute returns the operations on the lists' rows. It reads once each list that contains an entity before or
// after its change. A list that an entity enters is written even if it already contains the entity, so that a
// concurrent Repair detects the write.
func (x *inPartition[T]) contribute(ctx context.Context, changes []*driver.Change[T]) ([]driver.RowOperation, error) {
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

func (x *inPartition[T]) place(group string, value compoundkey.Part) (string, error) {
	return rowPlace(group, compoundkey.Join(x.definition.Name, value))
}

// checkOwn is needed for the interface only: reconcile alone calls it, and an index in the partition has no intents.
func (x *inPartition[T]) checkOwn(string) error { return nil }

func (x *inPartition[T]) idOf(entity tables.Key) string { return entity.Row }

func (x *inPartition[T]) keyOf(place, id string) (tables.Key, error) {
	list, err := driver.SplitKey(place)
	return tables.Key{Partition: list.Partition, Row: id}, err
}

func (x *inPartition[T]) values(ctx context.Context, group string, of compoundkey.Span) iter.Seq2[Value, error] {
	return x.valuesIn(ctx, group, of.Under(x.definition.Name), x.definition.Name+"_")
}

// held yields a fact for each key in the lists. Requests: those of Query.AllParallel of the lists.
func (x *inPartition[T]) held(ctx context.Context, scope driver.Scope) iter.Seq2[driver.Fact, error] {
	return x.heldIn(ctx, x.queries, scope)
}

// queries returns queries for all lists that can contain an entity of the scope.
func (x *inPartition[T]) queries(table *tables.Table, scope driver.Scope) []tables.Query[tables.Entity] {
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

// attempts limits how often a list is read and written again on conflict.
const attempts = 10

// removeEntity implements Audit.Remove: it removes an entity from a list unless wanted says that the entity belongs to it.
// Requests: 2, and those of wanted; 2 more for each conflict.
func (x *inPartition[T]) removeEntity(ctx context.Context, place string, entity tables.Key, wanted func(context.Context) (bool, error)) error {
	rows, err := x.rows()
	if err != nil {
		return err
	}
	for attempt := range attempts {
		l, err := rows.read(ctx, place)
		if err != nil {
			return x.failed("Remove", err)
		}
		l.leave(x.idOf(entity))
		operations := l.writes()
		if len(operations) == 0 || l.first.Partition != entity.Partition {
			return nil
		}
		if belongs, err := wanted(ctx); err != nil || belongs {
			return err
		}
		member := driver.NewReconciliation(x.definition.Name, driver.Reconciliation[T]{Key: entity, Keys: []string{place}})
		err = member.Write(ctx, place, rows.table, operations...)
		if !errors.Is(err, tables.ErrConflict) {
			return x.failed("Remove", err)
		}
		if err := backoff.Wait(ctx, attempt); err != nil {
			return err
		}
	}
	return x.failed("Remove", &tables.Error{Table: rows.table.Name(), Key: entity, Kind: tables.ErrConflict})
}
