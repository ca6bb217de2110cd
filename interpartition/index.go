package interpartition

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/keyindex"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Index is a secondary index of entities of type T. It belongs to the one Repository to which it was given.
// Before NewRepository has returned, its reads return tables.ErrWiring. An index with groups, by Options.Group
// or Options.ByPartition, is read in the group that In chooses; an index without groups is read as it is.
type Index[T any] struct {
	*declaration[T]
	group *string // the group that In has chosen, nil for none
}

// declaration is what an index and its groups share.
type declaration[T any] struct {
	index  keyindex.Index[T]
	table  *tables.Table
	unique bool
}

// Options are the options of NewIndex; nil is the same as the zero value.
type Options[T any] struct {
	// Group returns an entity's group, for example its region. The index has a partition for each group, and In
	// chooses the one to read. Group must be pure. By default the index has one partition with all entities, which
	// takes at most 1,000 changes a second, half of the service's target for a partition.
	Group func(*T) string

	// ByPartition makes the entity's partition its group, as in the guide (default: false). It excludes Group.
	ByPartition bool

	// Table holds the copies (default: the entities' own table). It may be in another account.
	Table *tables.Table

	// Project names the properties that the copies hold (default: all). With a projection, an entity read through the index
	// has zero values for the other properties and cannot be replaced, only merged or deleted; GetFull reads the whole
	// entity. Queries through the index can have conditions on these properties only.
	Project []string

	// Unique makes a write that needs another entity's key fail with tables.ErrDuplicate and write nothing.
	// The writer reserves each new key before it writes the entity, which takes 1 request for each. A key
	// that a change has just released, or that a dead writer has reserved, stays taken until the intent of
	// that change is carried out.
	Unique bool
}

// NewIndex makes an index. name consists of ASCII letters, digits, '-' and '.'. name is the partition key of the
// copies; in an index with groups, "_" and the group follow. key must be pure. key returns one index key, or several,
// for example one for each tag; repeated keys count once. key returns the zero Part for an entity that is not in the
// index, and a compoundkey.Tuple for an order by several properties. An index key belongs to one entity of its group,
// so if values repeat, such as last names, end the key with the entity's id. NewRepository reports an invalid name.
func NewIndex[T any, K compoundkey.OneOrMany](name string, key func(*T) K, options *Options[T]) *Index[T] {
	if options == nil {
		options = &Options[T]{}
	}
	x := &declaration[T]{index: keyindex.New(name, key, keyindex.Groups[T]{Of: options.Group, ByPartition: options.ByPartition}), table: options.Table, unique: options.Unique}
	x.index.Project = slices.Clone(options.Project)
	return &Index[T]{declaration: x}
}

// In returns the index for reads in one group: what Options.Group returns, or with ByPartition a partition. Reads of an
// index without groups return tables.ErrWiring after In. The result cannot be given to a repository. Requests: 0.
func (x *Index[T]) In(group string) *Index[T] { return &Index[T]{x.declaration, &group} }

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Index[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation, err := x.index.Attach(host)
	if x.group != nil {
		err = keyindex.ErrInGroup(*x.group)
	}
	implementation.Outside = &driver.Outside[T]{Table: x.table,
		Owns:   func(key tables.Key) bool { return x.index.Owns(key.Partition) },
		Copies: func(v *T) ([]driver.OutsideCopy, error) { return x.copies(v, host.KeyOf) }}
	return implementation, err
}

// copies returns the rows of an entity: one for each of its keys. keyOf is Host.KeyOf.
func (x *declaration[T]) copies(v *T, keyOf func(*T) tables.Key) ([]driver.OutsideCopy, error) {
	partition := x.index.Partition(x.index.GroupOf(v, keyOf))
	var copies []driver.OutsideCopy
	for _, part := range x.index.KeysOf(v) {
		key := tables.Key{Partition: partition, Row: compoundkey.Join("", part)}
		if err := errors.Join(compoundkey.Err(key.Partition), compoundkey.Err(key.Row)); err != nil {
			return nil, err
		}
		copies = append(copies, driver.OutsideCopy{Key: key, Keep: x.index.Project})
	}
	return copies, nil
}

// chosen returns the partition that the caller wants to read, and the repository to which the index was given.
func (x *Index[T]) chosen(op string) (string, driver.Host[T], error) {
	host, err := x.index.Host(op)
	if err != nil {
		return "", nil, err
	}
	group, err := x.index.Chosen(op, x.group)
	return x.index.Partition(group), host, err
}

// Get reads the copy under an index key. It returns tables.ErrNotFound if there is none. key has the form that
// the key function returns, such as compoundkey.String(email). Requests: 1.
func (x *Index[T]) Get(ctx context.Context, key compoundkey.Part) (*T, error) {
	partition, host, err := x.chosen("Get")
	if err != nil {
		return nil, err
	}
	return host.GetOutsideCopy(ctx, x.table, tables.Key{Partition: partition, Row: compoundkey.Join("", key)}, x.index.Project)
}

// GetFull reads the copy and then the entity's own row, for an index with Options.Project. It returns the
// entity as the second read found it, and tables.ErrNotFound if there is no copy or the entity was deleted
// meanwhile. Requests: 2.
func (x *Index[T]) GetFull(ctx context.Context, key compoundkey.Part) (*T, error) {
	_, host, err := x.chosen("GetFull")
	if err != nil {
		return nil, err
	}
	copied, err := x.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	return host.Get(ctx, host.MetaOf(copied).Key())
}

// Range yields the entities whose index keys are in the span (compoundkey.All, Prefix, Between and so on), in
// the order of the index. For a row that does not fit its type it yields tables.ErrGarbled with Error.OfRow,
// and the loop may continue. It yields any other error once, as the last element. Requests: 1 for each page of
// at most 1,000.
func (x *Index[T]) Range(ctx context.Context, span compoundkey.Span) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		partition, host, err := x.chosen("Range")
		if err != nil {
			yield(nil, err)
			return
		}
		host.OutsideCopies(x.table, span, x.index.Project).Partition(partition).All(ctx)(yield)
	}
}

// Query returns a query of the copies in the span, in the order of the index, for conditions and pages. If the index
// has groups and In has chosen none, the query covers all groups: it is a table scan, and 4 of its at most 15
// comparisons select the partitions of the index. If the index was not given to a repository, Plan and the methods
// that would send the query return tables.ErrWiring. Query itself makes no request.
func (x *Index[T]) Query(span compoundkey.Span) tables.Query[T] {
	host, err := x.index.Host("Query")
	if err != nil {
		return driver.FailedQuery[T](err)
	}
	query := host.OutsideCopies(x.table, span, x.index.Project)
	if x.index.Groups.Any() && x.group == nil {
		return query.Where(x.index.InGroups())
	}
	partition, _, err := x.chosen("Query")
	if err != nil {
		return driver.FailedQuery[T](err)
	}
	return query.Partition(partition)
}

// Verified is a view of an index whose reads follow each copy to the entity's own row and return the current entity if it
// still has the index key. They do not find entities that are not in the index yet.
type Verified[T any] struct{ index *Index[T] }

// Verified returns a view of the index whose reads never return a stale entity.
func (x *Index[T]) Verified() Verified[T] { return Verified[T]{x} }

// Get reads the copy under an index key, and then the entity's own row, which it returns. It returns tables.ErrNotFound if
// there is no copy, or if the entity was deleted or has another index key by now. Requests: 2.
func (v Verified[T]) Get(ctx context.Context, key compoundkey.Part) (*T, error) {
	x := v.index
	partition, host, err := x.chosen("Get")
	if err != nil {
		return nil, err
	}
	found, err := x.GetFull(ctx, key)
	if err != nil {
		return nil, err
	}
	at := tables.Key{Partition: partition, Row: compoundkey.Join("", key)}
	if has, err := x.has(host, found, func(k tables.Key) bool { return k == at }); err != nil || !has {
		return nil, &tables.Error{Op: "Get", Table: cmp.Or(x.table, host.Table()).Name(), Key: at, Pattern: x.index.Name, Kind: tables.ErrNotFound, Err: err}
	}
	return found, nil
}

// has reports whether an entity has a copy for whose key the function matches returns true.
func (x *declaration[T]) has(host driver.Host[T], v *T, matches func(tables.Key) bool) (bool, error) {
	copies, err := x.copies(v, host.KeyOf)
	return slices.ContainsFunc(copies, func(c driver.OutsideCopy) bool { return matches(c.Key) }), err
}

// verifiedAtOnce is the number of copies whose entities Range reads together.
const verifiedAtOnce = 64

// Range reads the copies in a span, and yields the entities' own rows in the order of the index. It skips entities that were
// deleted or have another index key by now. Requests: 1 for each page of at most 1,000 copies, and 1 for each entity, of
// which it reads several in parallel. It yields errors as Index.Range does.
func (v Verified[T]) Range(ctx context.Context, span compoundkey.Span) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		partition, host, err := v.index.chosen("Range")
		if err != nil {
			yield(nil, err)
			return
		}
		var batch []*T
		for copied, err := range v.index.Range(ctx, span) {
			if err == nil {
				batch = append(batch, copied)
			}
			if err == nil && len(batch) < verifiedAtOnce {
				continue
			}
			if !v.follow(ctx, host, partition, span, batch, yield) || err != nil && !yield(nil, err) {
				return
			}
			batch = batch[:0]
		}
		v.follow(ctx, host, partition, span, batch, yield)
	}
}

// follow yields the entities of the copies, and omits entities that no longer have the index key. It returns
// false after an error that is not of one row, or if the caller stopped the iteration.
func (v Verified[T]) follow(ctx context.Context, host driver.Host[T], partition string, span compoundkey.Span, copies []*T, yield func(*T, error) bool) bool {
	x := v.index
	keys := make([]tables.Key, len(copies))
	for i, copied := range copies {
		keys[i] = host.MetaOf(copied).Key()
	}
	found := map[tables.Key]*T{}
	for e, err := range host.GetMany(ctx, keys, nil) {
		if err != nil {
			var of *tables.Error
			if !yield(nil, err) || !errors.As(err, &of) || !of.OfRow {
				return false
			}
			continue // the others can be read
		}
		found[host.MetaOf(e).Key()] = e
	}
	for i, copied := range copies {
		e := found[keys[i]]
		if e == nil {
			continue
		}
		read := host.MetaOf(copied).ReadRow()
		if has, err := x.has(host, e, func(k tables.Key) bool {
			// If the blob of a stale copy is gone, the read has returned the entity's own row: then any key in the span will do.
			return k.Partition == partition && (k.Row == read || read == keys[i].Row && span.Contains(k.Row))
		}); err != nil || !has {
			continue // an entity that the key function refuses has no copies
		}
		if !yield(e, nil) {
			return false
		}
	}
	return true
}
