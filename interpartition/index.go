package interpartition

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/keyindex"
	"github.com/tablepatterns/tablepatterns/internal/streams"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Index is a secondary index of entities of type T by keys of type K, which several entities can have. It belongs to the one
// Repository to which it was given. Before NewRepository has returned, its reads return tables.ErrWiring. An index with
// groups, by Options.Group or Options.ByPartition, is read in the group that In chooses; an index without groups is read as it is.
type Index[T any, K compoundkey.Key] struct{ reader[T, K] }

// Unique is an Index in which a key belongs to one entity of a group: a write that needs another entity's key fails with
// tables.ErrDuplicate and writes nothing.
type Unique[T any, K compoundkey.Key] struct{ reader[T, K] }

// reader is an index as it is read.
type reader[T any, K compoundkey.Key] struct {
	of    *declaration // not embedded: the compiler would make each of its methods again for every type of entity
	group *string      // the group that In has chosen, nil for none
}

// declaration is what an index and its groups share.
type declaration struct {
	index  *keyindex.Index
	table  *tables.Table
	unique bool
	spread int
}

// Options are the options of an index; nil is the same as the zero value.
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
	// entity. Queries through the index can have conditions on these properties only. A change that alters neither the key
	// nor these properties does not write the copy.
	//
	// Without any name, []string{}, the copies hold only whose they are. Reads then return whole entities, with 1 more request
	// for each, and a change that keeps the key does not write the copy.
	Project []string

	// Spread divides each group over so many partitions, at most 64, by a hash of the index key, for an index with more
	// changes than one partition takes. Get and All still read one partition, but Range reads all of them, and
	// Query becomes a table scan. Entities that share a value stay together: a value that all entities have is as
	// busy as without Spread. Spread is part of the stored format: to change it, make an index of another name. 0 and 1 mean
	// one partition.
	Spread int
}

// maxSpread limits Options.Spread: Range reads all partitions at once.
const maxSpread = 64

// NewIndex makes an index of keys that several entities can have. name consists of ASCII letters, digits, '-' and '.'; it is
// the partition key of the copies, and in an index with groups, "_" and the group follow. key must be pure, and its type says how a key is stored:
// see compoundkey.Key, which also names the keys that are not in an index, such as the empty string. The library
// appends the entity's own key to the index key; together they have at most 512 UTF-16 units. NewRepository reports an invalid name.
func NewIndex[T any, K compoundkey.Key](name string, key func(*T) K, options *Options[T]) *Index[T, K] {
	return &Index[T, K]{declare[T, K](name, keyindex.One(key), false, options)}
}

// NewMulti makes an Index in which an entity has several keys, for example one for each tag. Repeated keys count once.
func NewMulti[T any, K compoundkey.Key](name string, keys func(*T) []K, options *Options[T]) *Index[T, K] {
	return &Index[T, K]{declare[T, K](name, keyindex.Several(keys), false, options)}
}

// NewUnique makes an index of keys that one entity of a group can have. Its arguments are those of NewIndex.
func NewUnique[T any, K compoundkey.Key](name string, key func(*T) K, options *Options[T]) *Unique[T, K] {
	return &Unique[T, K]{declare[T, K](name, keyindex.One(key), true, options)}
}

// NewMultiUnique makes a Unique in which an entity has several keys, for example all its addresses. Repeated keys count once.
func NewMultiUnique[T any, K compoundkey.Key](name string, keys func(*T) []K, options *Options[T]) *Unique[T, K] {
	return &Unique[T, K]{declare[T, K](name, keyindex.Several(keys), true, options)}
}

func declare[T any, K compoundkey.Key](name string, keys func(any) []compoundkey.Part, unique bool, options *Options[T]) reader[T, K] {
	if options == nil {
		options = &Options[T]{}
	}
	x := &declaration{index: keyindex.New(name, keys, options.Group, options.ByPartition), table: options.Table,
		unique: unique, spread: options.Spread}
	x.index.Project = slices.Clone(options.Project)
	return reader[T, K]{of: x}
}

// In returns the index for reads in one group: what Options.Group returns, or with ByPartition a partition. Reads of an
// index without groups return tables.ErrWiring after In. The result cannot be given to a repository. Requests: 0.
func (x *Index[T, K]) In(group string) *Index[T, K] {
	return &Index[T, K]{reader[T, K]{x.of, &group}}
}

// In does what Index.In does.
func (x *Unique[T, K]) In(group string) *Unique[T, K] {
	return &Unique[T, K]{reader[T, K]{x.of, &group}}
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *reader[T, K]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	return x.of.attach(host, x.group)
}

// attach implements Attach. in points to the group that In has chosen, nil for none.
func (x *declaration) attach(host driver.Host, in *string) (driver.Implementation, error) {
	implementation, err := x.index.Attach(host)
	if in != nil {
		err = keyindex.ErrInGroup(*in)
	}
	if err == nil && (x.spread < 0 || x.spread > maxSpread) {
		err = fmt.Errorf("Options.Spread is %d; set it to a number of partitions, at most %d", x.spread, maxSpread)
	}
	implementation.Outside = &driver.Outside{Table: x.table,
		Owns:   func(key tables.Key) bool { return x.index.Owns(key.Partition) },
		Copies: func(v any) ([]driver.OutsideCopy, error) { return x.copies(v, host.KeyOf) }}
	return implementation, err
}

// copies returns the rows of an entity: one for each of its keys. keyOf is Host.KeyOf.
func (x *declaration) copies(v any, keyOf func(any) tables.Key) ([]driver.OutsideCopy, error) {
	group, of := x.index.GroupOf(v, keyOf), keyOf(v)
	var copies []driver.OutsideCopy
	for _, part := range x.index.KeysOf(v) {
		key := tables.Key{Partition: x.partition(group, part), Row: x.row(part, of)}
		if err := errors.Join(compoundkey.Err(key.Partition), compoundkey.Err(key.Row)); err != nil {
			if !x.unique && compoundkey.Err(x.value(part)) == nil {
				err = fmt.Errorf("the library appends the entity's partition key and row key to the index key: %w", err)
			}
			return nil, err
		}
		copies = append(copies, driver.OutsideCopy{Key: key, Keep: x.index.Project})
	}
	return copies, nil
}

// value returns an index key as text.
func (x *declaration) value(part compoundkey.Part) string { return compoundkey.Join("", part) }

// row returns the row key of the copy of an entity under an index key.
func (x *declaration) row(part compoundkey.Part, of tables.Key) string {
	if x.unique {
		return x.value(part)
	}
	return compoundkey.Join("", part, compoundkey.String(of.Partition), compoundkey.String(of.Row))
}

// partition returns the partition of an index key in a group.
func (x *declaration) partition(group string, part compoundkey.Part) string {
	if x.spread <= 1 {
		return x.index.Partition(group)
	}
	hash := fnv.New64a()
	hash.Write([]byte(x.value(part)))
	sum := hash.Sum64()
	return x.share(group, int((sum^sum>>32)%uint64(x.spread))) // folded, since the low bits of FNV-1a depend on the low bits of the bytes alone
}

// share returns one of the partitions over which a group is spread.
func (x *declaration) share(group string, i int) string {
	const digits = 2
	return x.index.Partition(group, compoundkey.Int(i, digits))
}

// chosen returns the group that the caller wants to read, and the repository to which the index was given.
func (x *declaration) chosen(op string, in *string) (string, driver.Host, error) {
	host, err := x.index.Host(op)
	if err != nil {
		return "", nil, err
	}
	group, err := x.index.Chosen(op, in)
	return group, host, err
}

// at returns the partition and the text of an index key that the caller wants to read, and the repository to which the index was given.
func (x *declaration) at(op string, key compoundkey.Part, in *string) (at tables.Key, host driver.Host, err error) {
	group, host, err := x.chosen(op, in)
	if err != nil {
		return at, nil, err
	}
	at = tables.Key{Partition: x.partition(group, key), Row: x.value(key)}
	if err := compoundkey.Err(at.Row); err != nil {
		return at, nil, driver.Invalid(op, err)
	}
	return at, host, nil
}

// Get reads the entity that has a key. It returns tables.ErrNotFound if none has it. Requests: 1; while a change of the
// entity is under way, 2, or 3 if no entity has the key.
func (x *Unique[T, K]) Get(ctx context.Context, key K) (*T, error) {
	return driver.Got[T](x.of.get(ctx, "Get", compoundkey.Of(key), x.group, x.of.index.Project))
}

// GetFull does what Get does, and reads the whole entity from its own row, for an index with Options.Project. Requests: 2;
// 3 if an entity that had the key has lost it meanwhile.
func (x *Unique[T, K]) GetFull(ctx context.Context, key K) (*T, error) {
	return driver.Got[T](x.of.get(ctx, "GetFull", compoundkey.Of(key), x.group, []string{}))
}

// get reads the entity with an index key. keep names the properties to read from copies.
func (x *declaration) get(ctx context.Context, op string, key compoundkey.Part, in *string, keep []string) (any, error) {
	at, host, err := x.at(op, key, in)
	if err != nil {
		return nil, err
	}
	return host.GetOutsideCopy(ctx, x.table, at, keep)
}

// All yields the entities that have a key, in the order of their own keys. Errors are those of Range. Requests: 1 for each page of
// at most 1,000, and those of Range for copies that are being changed.
func (x *Index[T, K]) All(ctx context.Context, key K) iter.Seq2[*T, error] {
	return streams.Typed[T](x.of.all(ctx, compoundkey.Of(key), x.group))
}

// all yields the entities that have an index key.
func (x *declaration) all(ctx context.Context, part compoundkey.Part, in *string) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		at, host, err := x.at("All", part, in)
		if err != nil {
			yield(nil, err)
			return
		}
		query := core.Query(host.OutsideCopies(x.table, compoundkey.Exactly(part).Span, x.index.Project)).Partition(at.Partition)
		for v, err := range query.All(ctx) {
			if err == nil && host.MetaOf(v).ReadRow() != x.row(part, host.MetaOf(v).Key()) {
				continue // its key is a tuple that begins with this one
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// Range yields the entities whose keys are in all of the intervals (compoundkey.Prefix, Between and so on), all entities if
// there is none, in the order of the index. For a row that does not fit its type it yields tables.ErrGarbled with
// Error.OfRow, and the loop may continue. It yields any other error once, as the last element. Requests: 1 for each page of
// at most 1,000, in each of the partitions of Options.Spread, and 1 for each copy whose entity is being changed.
func (x *reader[T, K]) Range(ctx context.Context, intervals ...compoundkey.Interval[K]) iter.Seq2[*T, error] {
	return streams.Typed[T](x.of.between(ctx, keyindex.Within(intervals), x.group))
}

// between yields the entities whose keys are in a span.
func (x *declaration) between(ctx context.Context, span compoundkey.Span, in *string) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		group, host, err := x.chosen("Range", in)
		if err != nil {
			yield(nil, err)
			return
		}
		query := core.Query(host.OutsideCopies(x.table, span, x.index.Project))
		if x.spread <= 1 {
			query.Partition(x.index.Partition(group)).All(ctx)(yield)
			return
		}
		partitions := make([]string, x.spread)
		for i := range partitions {
			partitions[i] = x.share(group, i)
		}
		query.AllPartitions(ctx, partitions, core.Parallel{Order: func(a, b any) int {
			return compoundkey.Compare(host.MetaOf(a).ReadRow(), host.MetaOf(b).ReadRow())
		}})(yield)
	}
}

// Query returns a query of the entities whose keys are in all of the intervals, in the order of the index, for conditions and pages. If
// the index has groups and In has chosen none, the query covers all groups: it is a table scan, and 4 of its at most 15
// comparisons select the partitions of the index. With Options.Spread it is a table scan, too, of which 2 comparisons select the
// partitions, and its order is that of the partitions. If the index was not given to a repository, Plan and the methods
// that would send the query return tables.ErrWiring. Query itself makes no request.
func (x *reader[T, K]) Query(intervals ...compoundkey.Interval[K]) tables.Query[T] {
	return tables.Query[T](x.of.query(keyindex.Within(intervals), x.group))
}

// query returns a query of the entities whose keys are in a span.
func (x *declaration) query(span compoundkey.Span, in *string) core.Query {
	host, err := x.index.Host("Query")
	if err != nil {
		return core.FailedQuery(err)
	}
	query := core.Query(host.OutsideCopies(x.table, span, x.index.Project))
	if x.index.Groups.Any() && in == nil {
		return query.Where(x.index.InGroups())
	}
	group, _, err := x.chosen("Query", in)
	switch {
	case err != nil:
		return core.FailedQuery(err)
	case x.spread > 1:
		return query.Where(tables.Ge("PartitionKey", x.share(group, 0)), tables.Le("PartitionKey", x.share(group, x.spread-1)))
	}
	return query.Partition(x.index.Partition(group))
}
