package indexentities

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/keyindex"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// inTable stores a list as one row for each of its keys, in partitions of their own.
type inTable struct {
	index
	table *tables.Table // nil for the entities' own table
}

// NewInTable makes an index with its lists in partitions of their own, the guide's option 3, as one row for each
// value and entity. table holds the rows and may be in another account; if it is nil, the entities' own table holds
// them. name is the beginning of the rows' partition keys: ASCII letters, digits, '-' and '.'. value is as for
// NewInPartition. NewRepository reports invalid arguments.
func NewInTable[T any, K compoundkey.Key](name string, value func(*T) K, table *tables.Table, options *Options[T]) *Index[T, K] {
	return &Index[T, K]{index: newInTable(name, keyindex.One(value), table, options)}
}

// NewMultiInTable does what NewInTable does, for entities with several values, for example tags. Repeated values count once.
func NewMultiInTable[T any, K compoundkey.Key](name string, values func(*T) []K, table *tables.Table, options *Options[T]) *Index[T, K] {
	return &Index[T, K]{index: newInTable(name, keyindex.Several(values), table, options)}
}

func newInTable[T any](name string, values func(any) []compoundkey.Part, table *tables.Table, options *Options[T]) *index {
	x := &inTable{newIndex(name, values, options), table}
	x.shelves, x.attach = x, x.attachTo
	return &x.index
}

func (x *inTable) attachTo(host driver.Host) (driver.Implementation, error) {
	implementation, err := x.definition.Attach(host)
	implementation.Outside = &driver.Outside{Table: x.table,
		Owns:   func(key tables.Key) bool { return x.definition.Owns(key.Partition) },
		Copies: func(v any) ([]driver.OutsideCopy, error) { return x.copies(v, host.KeyOf(v)) }}
	return implementation, err
}

// copies returns a row without properties for each value of an entity.
func (x *inTable) copies(v any, entity tables.Key) ([]driver.OutsideCopy, error) {
	places, err := x.places(v)
	if err != nil {
		return nil, err
	}
	copies := make([]driver.OutsideCopy, len(places))
	for i, place := range places {
		list, err := driver.SplitKey(place)
		if err != nil {
			return nil, err
		}
		copies[i] = driver.OutsideCopy{Key: tables.Key{Partition: list.Partition, Row: list.Row + suffix(entity)}, Keep: []string{}}
	}
	return copies, nil
}

// suffix returns what the key of a row has after the value: the keys of the entity.
func suffix(entity tables.Key) string {
	return compoundkey.Join("", compoundkey.String(entity.Partition), compoundkey.String(entity.Row))
}

// place returns what the keys of a value's rows begin with.
func (x *inTable) place(group string, value compoundkey.Part) (string, error) {
	return rowPlace(x.definition.Partition(group), compoundkey.Join("", value, compoundkey.String("")))
}

const (
	separator  = "_"
	terminator = "!" // of a part that is a text, before the separator
	behind     = "`" // sorts after the separator
)

func (x *inTable) keys(ctx context.Context, place string, after *tables.Key, want int) iter.Seq2[tables.Key, error] {
	return func(yield func(tables.Key, error) bool) {
		list, err := driver.SplitKey(place)
		if err != nil {
			yield(tables.Key{}, err)
			return
		}
		from := list.Row
		if after != nil {
			from, want = from+suffix(*after), want+1
		}
		for m, err := range x.members(ctx, list.Partition, compoundkey.Range(from, strings.TrimSuffix(list.Row, separator)+behind), want) {
			if err == nil && (after != nil && m.entity == *after || m.row != list.Row+suffix(m.entity)) {
				continue // the latter is of a tuple that begins with the value
			}
			if !yield(m.entity, err) {
				return
			}
		}
	}
}

func (x *inTable) values(ctx context.Context, group string, of compoundkey.Span) iter.Seq2[Value, error] {
	return grouped(func(yield func(Value, error) bool) {
		for m, err := range x.members(ctx, x.definition.Partition(group), of, 0) {
			value := strings.TrimSuffix(strings.TrimSuffix(m.row, separator+suffix(m.entity)), terminator)
			if !yield(Value{Key: value, Count: 1}, err) {
				return
			}
		}
	})
}

// member is a row.
type member struct {
	row    string // its key
	entity tables.Key
}

// members yields the rows of a partition in a span, in the order of their keys. It asks the service for pages of so many rows, 0 for the most.
// Requests: 1 for each page, and 1 for each marked row.
func (x *inTable) members(ctx context.Context, partition string, span compoundkey.Span, size int) iter.Seq2[member, error] {
	return func(yield func(member, error) bool) {
		host, err := x.definition.Host("Members")
		if err != nil {
			yield(member{}, err)
			return
		}
		q := core.Query(host.OutsideCopies(x.table, span, []string{})).Partition(partition).Select("PartitionKey", "RowKey")
		if size > 0 {
			q = q.PageSize(min(size, tables.MaxPageSize))
		}
		table := x.table
		if table == nil {
			table = host.Table()
		}
		var all []member // of Azure Cosmos DB, which returns rows in no order
		for v, err := range q.All(ctx) {
			if err != nil {
				yield(member{}, err)
				return
			}
			m := member{host.MetaOf(v).ReadRow(), host.MetaOf(v).Key()}
			if table.Account().IsCosmos() {
				all = append(all, m)
			} else if !yield(m, nil) {
				return
			}
		}
		slices.SortFunc(all, func(a, b member) int { return compoundkey.Compare(a.row, b.row) })
		for _, m := range all {
			if !yield(m, nil) {
				return
			}
		}
	}
}
