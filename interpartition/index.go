package interpartition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
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
	*declaration
	group *string // the group that In has chosen, nil for none
}

// declaration is what an index and its groups share.
type declaration struct {
	index  *keyindex.Index
	table  *tables.Table
	unique bool
	spread int
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
	// entity. Queries through the index can have conditions on these properties only. A change that alters neither the key
	// nor these properties does not write the copy.
	//
	// Without any name, []string{}, the copies hold only whose they are. Reads then return whole entities, with 1 more request
	// for each, and a change that keeps the key does not write the copy.
	Project []string

	// Unique gives each index key to one entity of the group: a write that needs another entity's key fails with
	// tables.ErrDuplicate and writes nothing. Without Unique the library appends the entity's own key to the index key, so
	// that entities may share a value. Together they have at most 512 UTF-16 units.
	Unique bool

	// Spread divides each group over so many partitions, at most 64, by a hash of the index key, for an index with more
	// changes than one partition takes. Get and All still read one partition, but Range reads all of them, and
	// Query becomes a table scan. Entities that share a value stay together: a value that all entities have is as
	// busy as without Spread. Spread is part of the stored format: to change it, make an index of another name. 0 and 1 mean
	// one partition.
	Spread int
}

// maxSpread limits Options.Spread: Range reads all partitions at once.
const maxSpread = 64

// NewIndex makes an index. name consists of ASCII letters, digits, '-' and '.'. name is the partition key of the
// copies; in an index with groups, "_" and the group follow. key must be pure. key returns one index key, or several,
// for example one for each tag; repeated keys count once. key returns the zero Part for an entity that is not in the
// index, and a compoundkey.Tuple for an order by several properties. NewRepository reports an invalid name.
func NewIndex[T any, K compoundkey.OneOrMany](name string, key func(*T) K, options *Options[T]) *Index[T] {
	if options == nil {
		options = &Options[T]{}
	}
	x := &declaration{index: keyindex.New(name, key, options.Group, options.ByPartition), table: options.Table,
		unique: options.Unique, spread: options.Spread}
	x.index.Project = slices.Clone(options.Project)
	return &Index[T]{declaration: x}
}

// In returns the index for reads in one group: what Options.Group returns, or with ByPartition a partition. Reads of an
// index without groups return tables.ErrWiring after In. The result cannot be given to a repository. Requests: 0.
func (x *Index[T]) In(group string) *Index[T] { return &Index[T]{x.declaration, &group} }

// Attach implements patterns.Pattern; NewRepository calls it.
func (x *Index[T]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	implementation, err := x.index.Attach(host)
	if x.group != nil {
		err = keyindex.ErrInGroup(*x.group)
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
				err = fmt.Errorf("the library appends the entity's partition key and row key to the index key, since Options.Unique is not set: %w", err)
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
func (x *Index[T]) chosen(op string) (string, driver.Host, error) {
	host, err := x.index.Host(op)
	if err != nil {
		return "", nil, err
	}
	group, err := x.index.Chosen(op, x.group)
	return group, host, err
}

// at returns the partition and the text of an index key that the caller wants to read, and the repository to which the index was given.
func (x *Index[T]) at(op string, key compoundkey.Part) (at tables.Key, host driver.Host, err error) {
	group, host, err := x.chosen(op)
	if err != nil {
		return at, nil, err
	}
	at = tables.Key{Partition: x.partition(group, key), Row: x.value(key)}
	if err := compoundkey.Err(at.Row); err != nil {
		return at, nil, driver.Invalid(op, err)
	}
	return at, host, nil
}

// Get reads the entity that has an index key: the first one, in the order of their own keys, where several have it. It
// returns tables.ErrNotFound if none has it. key has the form that the key function returns, such as
// compoundkey.String(email). Requests: 1; while a change of the entity is under way, 2, or 3 if no entity has the key.
func (x *Index[T]) Get(ctx context.Context, key compoundkey.Part) (*T, error) {
	return x.get(ctx, "Get", key, x.index.Project)
}

// GetFull does what Get does, and reads the whole entity from its own row, for an index with Options.Project. Requests: 2;
// 3 if an entity that had the key has lost it meanwhile.
func (x *Index[T]) GetFull(ctx context.Context, key compoundkey.Part) (*T, error) {
	return x.get(ctx, "GetFull", key, []string{})
}

// get reads the first entity with an index key. keep names the properties to read from copies.
func (x *Index[T]) get(ctx context.Context, op string, key compoundkey.Part, keep []string) (*T, error) {
	at, host, err := x.at(op, key)
	if err != nil {
		return nil, err
	}
	if x.unique {
		return driver.Got[T](host.GetOutsideCopy(ctx, x.table, at, keep))
	}
	for v, err := range x.sharing(ctx, host, at.Partition, key, keep, 1) {
		return v, err
	}
	return nil, &tables.Error{Op: op, Table: cmp.Or(x.table, host.Table()).Name(), Key: at, Pattern: x.index.Name, Kind: tables.ErrNotFound}
}

// All yields the entities that have an index key, in the order of their own keys; of an index with Options.Unique, one at
// most. Errors are those of Range. Requests: 1 for each page of at most 1,000, and those of Range for copies that are being changed.
func (x *Index[T]) All(ctx context.Context, key compoundkey.Part) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		at, host, err := x.at("All", key)
		switch {
		case err != nil:
			yield(nil, err)
		case !x.unique:
			x.sharing(ctx, host, at.Partition, key, x.index.Project, 0)(yield)
		default:
			if v, err := x.Get(ctx, key); !errors.Is(err, tables.ErrNotFound) {
				yield(v, err)
			}
		}
	}
}

// sharing yields the entities that share an index key.
func (x *Index[T]) sharing(ctx context.Context, host driver.Host, partition string, key compoundkey.Part, keep []string, pageSize int) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for v, err := range tables.Query[T](host.OutsideCopies(x.table, compoundkey.Exactly(key), keep)).Partition(partition).PageSize(pageSize).All(ctx) {
			if err == nil && host.MetaOf(v).ReadRow() != x.row(key, host.MetaOf(v).Key()) {
				continue // its key is a tuple that begins with this one
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// Range yields the entities whose index keys are in the span (compoundkey.All, Prefix, Between and so on), in
// the order of the index. For a row that does not fit its type it yields tables.ErrGarbled with Error.OfRow,
// and the loop may continue. It yields any other error once, as the last element. Requests: 1 for each page of
// at most 1,000, in each of the partitions of Options.Spread, and 1 for each copy whose entity is being changed.
func (x *Index[T]) Range(ctx context.Context, span compoundkey.Span) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		group, host, err := x.chosen("Range")
		if err != nil {
			yield(nil, err)
			return
		}
		query := tables.Query[T](host.OutsideCopies(x.table, span, x.index.Project))
		if x.spread <= 1 {
			query.Partition(x.index.Partition(group)).All(ctx)(yield)
			return
		}
		partitions := make([]string, x.spread)
		for i := range partitions {
			partitions[i] = x.share(group, i)
		}
		query.AllPartitions(ctx, partitions, &tables.ParallelOptions[T]{Order: func(a, b *T) int {
			return compoundkey.Compare(host.MetaOf(a).ReadRow(), host.MetaOf(b).ReadRow())
		}})(yield)
	}
}

// Query returns a query of the entities whose index keys are in the span, in the order of the index, for conditions and pages. If
// the index has groups and In has chosen none, the query covers all groups: it is a table scan, and 4 of its at most 15
// comparisons select the partitions of the index. With Options.Spread it is a table scan, too, of which 2 comparisons select the
// partitions, and its order is that of the partitions. If the index was not given to a repository, Plan and the methods
// that would send the query return tables.ErrWiring. Query itself makes no request.
func (x *Index[T]) Query(span compoundkey.Span) tables.Query[T] {
	host, err := x.index.Host("Query")
	if err != nil {
		return driver.FailedQuery[T](err)
	}
	query := tables.Query[T](host.OutsideCopies(x.table, span, x.index.Project))
	if x.index.Groups.Any() && x.group == nil {
		return query.Where(x.index.InGroups())
	}
	group, _, err := x.chosen("Query")
	switch {
	case err != nil:
		return driver.FailedQuery[T](err)
	case x.spread > 1:
		return query.Where(tables.Ge("PartitionKey", x.share(group, 0)), tables.Le("PartitionKey", x.share(group, x.spread-1)))
	}
	return query.Partition(x.index.Partition(group))
}
