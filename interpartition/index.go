package interpartition

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/keyindex"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Index is one secondary index of entities of type T, in partitions of its own. It belongs to the one Repository that it
// was given to; before that its reads are tables.ErrInvalid.
type Index[T any] struct {
	index  keyindex.Index[T]
	table  *tables.Table
	unique bool
}

// Organisation is the group of an index that has one partition for all entities.
const Organisation = ""

// Options are the options of NewIndex; nil is the same as the zero value.
type Options[T any] struct {
	// Group makes a partition for each value that it returns: a region, the first letter of the key. For one partition for
	// the whole organisation it returns Organisation. It is pure. nil is a partition for each of the entities' partitions.
	Group func(*T) string

	// Table holds the copies, and may be in another account; nil is the entities' own table.
	Table *tables.Table

	// Project names the properties that the copies hold; nil is all. Without all of them, what is read through the index has
	// zero values for the others, can be merged and deleted but not replaced, and GetFull reads the whole entity. Queries
	// through the index can have conditions on these properties only.
	Project []string

	// Unique makes a write that needs another entity's key fail with tables.ErrDuplicate and write nothing: each new
	// key is reserved before the entity is written, for 1 request each. A key that was just released, or reserved by a
	// change that died, stays taken until its intent is completed.
	Unique bool
}

// NewIndex makes an index. name begins its partition keys: letters, digits, '-' and '.'. key is pure. It returns one key,
// or several such as one for each tag; repeated keys count once. It returns the zero Part for an entity that is not in the
// index, and a compoundkey.Tuple for an order by several properties. A key belongs to one entity of its group: one whose
// values repeat, such as a last name, ends with the entity's id.
func NewIndex[T any, K compoundkey.OneOrMany](name string, key func(*T) K, options *Options[T]) *Index[T] {
	if options == nil {
		options = &Options[T]{}
	}
	x := &Index[T]{index: keyindex.New(name, key, options.Group), table: options.Table, unique: options.Unique}
	x.index.Project = slices.Clone(options.Project)
	return x
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Index[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation, err := x.index.Attach(host)
	implementation.Outside = &driver.Outside[T]{Table: x.table, Owns: x.owns,
		Copies: func(v *T) ([]driver.OutsideCopy, error) { return x.copies(v, host.KeyOf) }}
	if x.unique {
		implementation.Outside.ReservationTerm = reservationTerm
	}
	return implementation, err
}

// reservationTerm is how long a key may be reserved before its entity is written. A long term costs little: intents
// free the keys of writers that died, so only a lost intent makes others wait for its end.
const reservationTerm = time.Hour

// owns reports whether a key is one of the index's: other indexes may keep their copies in the same table.
func (x *Index[T]) owns(key tables.Key) bool {
	return key.Partition == x.index.Name || strings.HasPrefix(key.Partition, x.index.Name+"_")
}

// copies returns the rows of an entity: one for each of its keys. keyOf is Host.KeyOf.
func (x *Index[T]) copies(v *T, keyOf func(*T) tables.Key) ([]driver.OutsideCopy, error) {
	group := x.index.GroupOf(v, keyOf)
	var copies []driver.OutsideCopy
	for _, part := range x.index.KeysOf(v) {
		key := x.key(group, part)
		if err := errors.Join(compoundkey.Err(key.Partition), compoundkey.Err(key.Row)); err != nil {
			return nil, err
		}
		copies = append(copies, driver.OutsideCopy{Key: key, Keep: x.index.Project})
	}
	return copies, nil
}

// partition is the partition key of a group's copies: the index's name, and the group where there is one.
func (x *Index[T]) partition(group string) string {
	if group == Organisation {
		return compoundkey.Join(x.index.Name)
	}
	return compoundkey.Join(x.index.Name, compoundkey.String(group))
}

// Get reads the entity of a group with an index key; it is tables.ErrNotFound when there is none. key is what the key
// function returns, such as compoundkey.String of a text. Requests: 1.
func (x *Index[T]) Get(ctx context.Context, group string, key compoundkey.Part) (*T, error) {
	host, err := x.index.Host("Get")
	if err != nil {
		return nil, err
	}
	return host.GetOutsideCopy(ctx, x.table, x.key(group, key), x.index.Project)
}

// GetFull is Get for an index whose copies do not hold all properties: it reads the entity's own row. Between its two
// reads the entity may change or be deleted, so the result is of the second read. Requests: 2.
func (x *Index[T]) GetFull(ctx context.Context, group string, key compoundkey.Part) (*T, error) {
	host, err := x.index.Host("GetFull")
	if err != nil {
		return nil, err
	}
	copied, err := x.Get(ctx, group, key)
	if err != nil {
		return nil, err
	}
	return host.Get(ctx, host.MetaOf(copied).Key())
}

func (x *Index[T]) key(group string, part compoundkey.Part) tables.Key {
	return tables.Key{Partition: x.partition(group), Row: compoundkey.Join("", part)}
}

// Range yields the entities of a group whose index keys lie in the span, in the order of the index: compoundkey.All,
// Prefix, Between and so on. An error comes once, last. Requests: 1 for each page.
func (x *Index[T]) Range(ctx context.Context, group string, span compoundkey.Span) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		query, err := x.Query(span)
		if err != nil {
			yield(nil, err)
			return
		}
		query.Partition(x.partition(group)).All(ctx)(yield)
	}
}

// Query begins a query in the order of the index, for conditions, pages and several groups, whose partition keys
// PartitionKey returns. The index must have been given to a repository.
func (x *Index[T]) Query(span compoundkey.Span) (tables.Query[T], error) {
	host, err := x.index.Host("Query")
	if err != nil {
		return tables.Query[T]{}, err
	}
	return host.OutsideCopies(x.table, span, x.index.Project), nil
}

// PartitionKey returns the partition key of a group's copies.
func (x *Index[T]) PartitionKey(group string) string { return x.partition(group) }
