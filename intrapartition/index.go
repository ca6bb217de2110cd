package intrapartition

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/keyindex"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Index is a secondary index of entities of type T by keys of type K, within their partitions. Several entities can have a
// key. It belongs to the one Repository to which it was given. Before NewRepository has returned, its reads return tables.ErrWiring.
type Index[T any, K compoundkey.Key] struct{ declaration[T, K] }

// Unique is an Index in which a key belongs to one entity of its partition: a write that needs another entity's key fails with
// tables.ErrDuplicate and writes nothing.
type Unique[T any, K compoundkey.Key] struct{ declaration[T, K] }

// declaration is what Index and Unique share.
type declaration[T any, K compoundkey.Key] struct {
	index  *keyindex.Index
	unique bool
}

// Options are the options of an index; nil is the same as the zero value.
type Options struct {
	// Project names the properties that the copies hold (default: all). With a projection, an entity read through the index
	// has zero values for the other properties and cannot be replaced, only merged or deleted; GetFull reads the whole
	// entity. Queries through the index can have conditions on these properties only.
	Project []string
}

// NewIndex makes an index of keys that several entities can have. name is the prefix of its row keys: ASCII letters, digits, '-'
// and '.'. key must be pure, and its type says how a key is stored: see compoundkey.Key, which also names the keys that are
// not in an index, such as the empty string. The library appends the entity's row key to the index key. NewRepository reports an invalid name.
func NewIndex[T any, K compoundkey.Key](name string, key func(*T) K, options *Options) *Index[T, K] {
	return &Index[T, K]{declare[T, K](name, keyindex.One(key), false, options)}
}

// NewMulti makes an Index in which an entity has several keys, for example one for each tag. Repeated keys count once.
func NewMulti[T any, K compoundkey.Key](name string, keys func(*T) []K, options *Options) *Index[T, K] {
	return &Index[T, K]{declare[T, K](name, keyindex.Several(keys), false, options)}
}

// NewUnique makes an index of keys that one entity of a partition can have. Its arguments are those of NewIndex.
func NewUnique[T any, K compoundkey.Key](name string, key func(*T) K, options *Options) *Unique[T, K] {
	return &Unique[T, K]{declare[T, K](name, keyindex.One(key), true, options)}
}

// NewMultiUnique makes a Unique in which an entity has several keys, for example all its addresses. Repeated keys count once.
func NewMultiUnique[T any, K compoundkey.Key](name string, keys func(*T) []K, options *Options) *Unique[T, K] {
	return &Unique[T, K]{declare[T, K](name, keyindex.Several(keys), true, options)}
}

func declare[T any, K compoundkey.Key](name string, keys func(any) []compoundkey.Part, unique bool, options *Options) declaration[T, K] {
	x := declaration[T, K]{keyindex.New[T](name, keys, nil, false), unique}
	if options != nil {
		x.index.Project = slices.Clone(options.Project)
	}
	return x
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *declaration[T, K]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	implementation, err := x.index.Attach(host)
	if err == nil {
		err = driver.CheckApart("the index", x.index.Name, host.Rows())
	}
	implementation.Copies = func(v any) ([]driver.Copy, error) { return copies(x.index, x.unique, v, host.KeyOf) }
	return implementation, err
}

// copies returns the rows of an entity: one for each of its keys. keyOf is Host.KeyOf.
func copies(x *keyindex.Index, unique bool, v any, keyOf func(any) tables.Key) ([]driver.Copy, error) {
	var all []driver.Copy
	for _, part := range x.KeysOf(v) {
		key, err := compoundkey.Encode(x.Name, part)
		if err == nil && !unique {
			if key, err = compoundkey.Encode(x.Name, shared(part, keyOf(v).Row)...); err != nil {
				err = fmt.Errorf("the library appends the entity's row key to the index key: %w", err)
			}
		}
		if err != nil {
			return nil, err
		}
		all = append(all, driver.Copy{RowKey: key, Keep: x.Project})
	}
	return all, nil
}

// shared returns the parts of the row key of a copy, of an entity with this row key, under a key that several entities can have.
func shared(key compoundkey.Part, row string) []compoundkey.Part {
	return []compoundkey.Part{key, compoundkey.String(row)}
}

// Query returns a query of the copies of all partitions whose keys are in all of the intervals, for conditions and pages; see
// View.Query for one partition. If the index was not given to a repository, Plan and the methods that would send the query return
// tables.ErrWiring. Query itself makes no request.
func (x *declaration[T, K]) Query(intervals ...compoundkey.Interval[K]) tables.Query[T] {
	host, err := x.index.Host("Query")
	if err != nil {
		return driver.FailedQuery[T](err)
	}
	return tables.Query[T](host.Copies(keyindex.Within(intervals).Under(x.index.Name), x.index.Project))
}

// View is an Index in one partition.
type View[T any, K compoundkey.Key] struct{ reader[T, K] }

// UniqueView is a Unique in one partition.
type UniqueView[T any, K compoundkey.Key] struct{ reader[T, K] }

// reader is what View and UniqueView share.
type reader[T any, K compoundkey.Key] struct {
	declaration *declaration[T, K]
	partition   string
}

// In returns the index for reads in one partition. Requests: 0.
func (x *Index[T, K]) In(partition string) View[T, K] {
	return View[T, K]{reader[T, K]{&x.declaration, partition}}
}

// In returns the index for reads in one partition. Requests: 0.
func (x *Unique[T, K]) In(partition string) UniqueView[T, K] {
	return UniqueView[T, K]{reader[T, K]{&x.declaration, partition}}
}

// Get reads the entity that has a key. It returns tables.ErrNotFound if none has it. Requests: 1.
func (v UniqueView[T, K]) Get(ctx context.Context, key K) (*T, error) {
	x := v.declaration.index
	host, err := x.Host("Get")
	if err != nil {
		return nil, err
	}
	return driver.Got[T](host.GetCopy(ctx, v.at(key), x.Project))
}

// GetFull does what Get does, and then reads the entity's own row, for an index with Options.Project. It returns the
// entity as the second read found it, and tables.ErrNotFound also if the entity was deleted meanwhile. Requests: 2.
func (v UniqueView[T, K]) GetFull(ctx context.Context, key K) (*T, error) {
	host, err := v.declaration.index.Host("GetFull")
	if err != nil {
		return nil, err
	}
	return driver.Got[T](host.GetPrimary(ctx, v.at(key)))
}

// at returns the key of the copy under an index key.
func (v UniqueView[T, K]) at(key K) tables.Key {
	return tables.Key{Partition: v.partition, Row: compoundkey.Join(v.declaration.index.Name, compoundkey.Of(key))}
}

// All yields the entities that have a key, in the order of their row keys. Errors are those of Range. Requests: 1 for each page of
// at most 1,000.
func (v View[T, K]) All(ctx context.Context, key K) iter.Seq2[*T, error] {
	return streams.Typed[T](all(ctx, v.declaration.index, v.partition, compoundkey.Of(key)))
}

// all yields the entities of a partition that have an index key.
func all(ctx context.Context, x *keyindex.Index, partition string, part compoundkey.Part) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		const op = "All"
		host, err := x.Host(op)
		if err == nil {
			if _, wrong := compoundkey.Encode(x.Name, part); wrong != nil {
				err = driver.Invalid(op, wrong)
			}
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for e, err := range core.Query(host.Copies(compoundkey.Exactly(part).Under(x.Name), x.Project)).Partition(partition).All(ctx) {
			if err == nil {
				meta := host.MetaOf(e)
				if meta.ReadRow() != compoundkey.Join(x.Name, shared(part, meta.Key().Row)...) {
					continue // its key is a tuple that begins with this one
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Range yields the entities whose keys are in all of the intervals (compoundkey.Prefix, Between and so on), all entities if
// there is none, in the order of the index. For a row that does not fit the type it yields tables.ErrGarbled with
// Error.OfRow, and the loop can continue; any other error is yielded once, as the last element. Requests: 1 for each page of
// at most 1,000.
func (v reader[T, K]) Range(ctx context.Context, intervals ...compoundkey.Interval[K]) iter.Seq2[*T, error] {
	return v.Query(intervals...).All(ctx)
}

// Query returns a query of the partition's copies whose keys are in all of the intervals, in the order of the index, for conditions and
// pages. Query itself makes no request.
func (v reader[T, K]) Query(intervals ...compoundkey.Interval[K]) tables.Query[T] {
	return v.declaration.Query(intervals...).Partition(v.partition)
}
