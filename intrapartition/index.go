package intrapartition

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/keyindex"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Index is one secondary index of entities of type T, within their partitions. It belongs to the one Repository that
// it was given to; before that its reads are tables.ErrInvalid.
type Index[T any] struct {
	index keyindex.Index[T]
}

// Options are the options of NewIndex; nil is the same as the zero value.
type Options struct {
	// Project names the properties that the copies hold; nil is all. Without all of them, what is read through the index has
	// zero values for the others, can be merged and deleted but not replaced, and GetFull reads the whole entity. Queries
	// through the index can have conditions on these properties only.
	Project []string
}

// NewIndex makes an index. name is the prefix of its row keys: letters, digits, '-' and '.'. key is pure. It returns one
// key, or several such as one for each tag; repeated keys count once. It returns the zero Part for an entity that is not
// in the index, and a compoundkey.Tuple for an order by several properties. An order whose values repeat, such as a last
// name, ends with the entity's id.
func NewIndex[T any, K compoundkey.OneOrMany](name string, key func(*T) K, options *Options) *Index[T] {
	x := &Index[T]{keyindex.New(name, key, nil)}
	if options != nil {
		x.index.Project = slices.Clone(options.Project)
	}
	return x
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Index[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation, err := x.index.Attach(host)
	if err == nil && x.index.Name == host.RowPrefix() {
		err = errors.New("the index has the same prefix as the entities' own row keys; give it another name")
	}
	implementation.Copies = x.copies
	return implementation, err
}

// copies returns the rows of an entity: one for each of its keys.
func (x *Index[T]) copies(v *T) ([]driver.Copy, error) {
	var copies []driver.Copy
	for _, part := range x.index.KeysOf(v) {
		rowKey, err := compoundkey.Encode(x.index.Name, part)
		if err != nil {
			return nil, err
		}
		copies = append(copies, driver.Copy{RowKey: rowKey, Keep: x.index.Project})
	}
	return copies, nil
}

// rows places a span of index keys among the partition's row keys.
func (x *Index[T]) rows(span compoundkey.Span) compoundkey.Span { return span.Under(x.index.Name) }

// Get reads the entity with an index key; it is tables.ErrNotFound when there is none. key is what the key function
// returns, such as compoundkey.String of a text. Requests: 1.
func (x *Index[T]) Get(ctx context.Context, partition string, key compoundkey.Part) (*T, error) {
	host, err := x.index.Host("Get")
	if err != nil {
		return nil, err
	}
	return host.GetCopy(ctx, tables.Key{Partition: partition, Row: compoundkey.Join(x.index.Name, key)}, x.index.Project)
}

// GetFull is Get for an index whose copies do not hold all properties: it reads the entity's own row. Between its two
// reads the entity may change or be deleted, so the result is of the second read. Requests: 2.
func (x *Index[T]) GetFull(ctx context.Context, partition string, key compoundkey.Part) (*T, error) {
	host, err := x.index.Host("GetFull")
	if err != nil {
		return nil, err
	}
	return host.GetPrimary(ctx, tables.Key{Partition: partition, Row: compoundkey.Join(x.index.Name, key)})
}

// Range yields the entities whose index keys lie in the span, in the order of the index: compoundkey.All, Prefix,
// Between and so on. An error comes once, last. Requests: 1 for each page.
func (x *Index[T]) Range(ctx context.Context, partition string, span compoundkey.Span) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		host, err := x.index.Host("Range")
		if err != nil {
			yield(nil, err)
			return
		}
		host.Copies(x.rows(span), x.index.Project).Partition(partition).All(ctx)(yield)
	}
}

// Query begins a query in the order of the index, for conditions, pages and several partitions. The index must have
// been given to a repository.
func (x *Index[T]) Query(span compoundkey.Span) (tables.Query[T], error) {
	host, err := x.index.Host("Query")
	if err != nil {
		return tables.Query[T]{}, err
	}
	return host.Copies(x.rows(span), x.index.Project), nil
}
