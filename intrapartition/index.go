package intrapartition

import (
	"context"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/keyindex"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Index is a secondary index of entities of type T, within their partitions. It belongs to the one Repository to which it
// was given. Before NewRepository has returned, its reads return tables.ErrWiring.
type Index[T any] struct {
	index *keyindex.Index
}

// Options are the options of NewIndex; nil is the same as the zero value.
type Options struct {
	// Project names the properties that the copies hold (default: all). With a projection, an entity read through the index
	// has zero values for the other properties and cannot be replaced, only merged or deleted; GetFull reads the whole
	// entity. Queries through the index can have conditions on these properties only.
	Project []string
}

// NewIndex makes an index. name is the prefix of its row keys: ASCII letters, digits, '-' and '.'. key must be pure.
// key returns one index key, or several, for example one for each tag; repeated keys count once. key returns the zero
// Part for an entity that is not in the index, and a compoundkey.Tuple for an order by several properties. An index
// key belongs to one entity of its partition, so if values repeat, such as last names, end the key with the entity's
// id. NewRepository reports an invalid name.
func NewIndex[T any, K compoundkey.OneOrMany](name string, key func(*T) K, options *Options) *Index[T] {
	x := &Index[T]{keyindex.New(name, key, nil, false)}
	if options != nil {
		x.index.Project = slices.Clone(options.Project)
	}
	return x
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Index[T]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	implementation, err := x.index.Attach(host)
	if err == nil {
		err = driver.CheckApart("the index", x.index.Name, host.Rows())
	}
	implementation.Copies = x.copies
	return implementation, err
}

// copies returns the rows of an entity: one for each of its keys.
func (x *Index[T]) copies(v any) ([]driver.Copy, error) {
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

// rows returns the span of row keys for a span of index keys.
func (x *Index[T]) rows(span compoundkey.Span) compoundkey.Span { return span.Under(x.index.Name) }

// In returns the index for reads in one partition. Requests: 0.
func (x *Index[T]) In(partition string) View[T] { return View[T]{x, partition} }

// Query returns a query of the copies of all partitions in the span, for conditions and pages; see View.Query for
// one partition. If the index was not given to a repository, Plan and the methods that would send the query return
// tables.ErrWiring. Query itself makes no request.
func (x *Index[T]) Query(span compoundkey.Span) tables.Query[T] {
	host, err := x.index.Host("Query")
	if err != nil {
		return driver.FailedQuery[T](err)
	}
	return tables.Query[T](host.Copies(x.rows(span), x.index.Project))
}

// View is an index in one partition.
type View[T any] struct {
	index     *Index[T]
	partition string
}

// Get reads the copy under an index key. It returns tables.ErrNotFound if there is none. key has the form that
// the key function returns, such as compoundkey.String(email). Requests: 1.
func (v View[T]) Get(ctx context.Context, key compoundkey.Part) (*T, error) {
	x := v.index.index
	host, err := x.Host("Get")
	if err != nil {
		return nil, err
	}
	return driver.Got[T](host.GetCopy(ctx, tables.Key{Partition: v.partition, Row: compoundkey.Join(x.Name, key)}, x.Project))
}

// GetFull reads the copy and then the entity's own row, for an index with Options.Project. It returns the
// entity as the second read found it, and tables.ErrNotFound if there is no copy or the entity was deleted
// meanwhile. Requests: 2.
func (v View[T]) GetFull(ctx context.Context, key compoundkey.Part) (*T, error) {
	x := v.index.index
	host, err := x.Host("GetFull")
	if err != nil {
		return nil, err
	}
	return driver.Got[T](host.GetPrimary(ctx, tables.Key{Partition: v.partition, Row: compoundkey.Join(x.Name, key)}))
}

// Range yields the entities whose index keys are in the span (compoundkey.All, Prefix, Between and so on), in the
// order of the index. For a row that does not fit the type it yields tables.ErrGarbled with Error.OfRow, and the
// loop can continue; any other error is yielded once, as the last element. Requests: 1 for each page of at most
// 1,000.
func (v View[T]) Range(ctx context.Context, span compoundkey.Span) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		host, err := v.index.index.Host("Range")
		if err != nil {
			yield(nil, err)
			return
		}
		tables.Query[T](host.Copies(v.index.rows(span), v.index.index.Project)).Partition(v.partition).All(ctx)(yield)
	}
}

// Query returns a query of the partition's copies in the span, in the order of the index, for conditions and
// pages. Query itself makes no request.
func (v View[T]) Query(span compoundkey.Span) tables.Query[T] {
	return v.index.Query(span).Partition(v.partition)
}
