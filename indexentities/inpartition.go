package indexentities

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/keyindex"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// inPartition stores the lists in rows of the entities' own partition.
type inPartition struct{ index }

// NewInPartition makes an index with its lists in the entities' partition, the guide's option 2. Its groups are the
// partitions: each read begins with In. name is the beginning of the lists' row keys: ASCII letters, digits, '-' and
// '.'. value must be pure, and its type says how a value is stored: see compoundkey.Key, which also names the values that have
// no list, such as the empty string. NewRepository reports invalid arguments.
func NewInPartition[T any, K compoundkey.Key](name string, value func(*T) K) *Index[T, K] {
	return &Index[T, K]{index: newInPartition[T](name, keyindex.One(value))}
}

// NewMultiInPartition does what NewInPartition does, for entities with several values, for example tags. Repeated values count once.
func NewMultiInPartition[T any, K compoundkey.Key](name string, values func(*T) []K) *Index[T, K] {
	return &Index[T, K]{index: newInPartition[T](name, keyindex.Several(values))}
}

func newInPartition[T any](name string, values func(any) []compoundkey.Part) *index {
	x := &inPartition{newIndex(name, values, &Options[T]{ByPartition: true})}
	x.shelves, x.attach = x, x.attachTo
	return &x.index
}

func (x *inPartition) attachTo(host driver.Host) (driver.Implementation, error) {
	implementation, err := x.definition.Attach(host)
	if err == nil {
		err = driver.CheckApart("the index", x.definition.Name, host.Rows())
	}
	implementation.Prior, implementation.Rows = x.prior, x.contribute
	implementation.Effect = driver.Effect{Expected: x.wanted, List: x.held, Read: x.readLists, Remove: x.removeEntity}
	return implementation, err
}

// contribute returns the operations on the lists' rows. It reads once each list that contains an entity before or
// after its change. A list that an entity enters is written even if it already contains the entity, so that a
// concurrent Repair detects the write.
func (x *inPartition) contribute(ctx context.Context, changes []*driver.Change) ([]driver.RowOperation, error) {
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

func (x *inPartition) place(group string, value compoundkey.Part) (string, error) {
	return rowPlace(group, compoundkey.Join(x.definition.Name, value))
}

func (x *inPartition) rows() (rowLists, error) {
	host, err := x.definition.Host("Rows")
	if err != nil {
		return rowLists{}, err
	}
	return rowLists{host.Table()}, nil
}

// load returns the sorted ids of a list; none if the list does not exist.
func (x *inPartition) load(ctx context.Context, place string) ([]string, error) {
	lists, err := x.rows()
	if err != nil {
		return nil, err
	}
	l, err := lists.read(ctx, place)
	if err != nil {
		return nil, err
	}
	return l.ids(), nil
}

func (x *inPartition) keys(ctx context.Context, place string, after *tables.Key, _ int) iter.Seq2[tables.Key, error] {
	return func(yield func(tables.Key, error) bool) {
		ids, err := x.load(ctx, place)
		if err != nil {
			yield(tables.Key{}, err)
			return
		}
		for _, id := range ids {
			key, err := x.keyOf(place, id)
			if err == nil && after != nil && compoundkey.Compare(id, after.Row) <= 0 {
				continue
			}
			if !yield(key, err) || err != nil {
				return
			}
		}
	}
}

// idOf returns the id of an entity in a list; keyOf is its inverse.
func (x *inPartition) idOf(entity tables.Key) string { return entity.Row }

func (x *inPartition) keyOf(place, id string) (tables.Key, error) {
	list, err := driver.SplitKey(place)
	return tables.Key{Partition: list.Partition, Row: id}, err
}

func (x *inPartition) values(ctx context.Context, group string, of compoundkey.Span) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		lists, err := x.rows()
		if err != nil {
			yield(Value{}, err)
			return
		}
		q := lists.table.Entities().Query().Partition(group).Rows(of.Under(x.definition.Name)).Select(countProperty)
		grouped(lists.counts(ctx, q, x.definition.Name+"_"))(yield)
	}
}
