package interpartition

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// Index is one secondary index of entities of type T, in partitions of its own. It belongs to the one Repository that it
// was given to; before that its reads are patterns.ErrInvalid.
type Index[T any] struct {
	name   string
	keys   func(*T) []compoundkey.Part
	group  func(*T) string
	keep   []string
	table  *patterns.Table
	unique bool
	repo   *patterns.Repository[T]
}

// Organisation is the group of an index that has one partition for all entities.
const Organisation = ""

// NewIndex makes an index by one key. name begins its partition keys: letters, digits, '-' and '.'. key is pure; it returns
// the zero Part for an entity that is not in the index, and a compoundkey.Tuple for an order by several properties. A key
// belongs to one entity of its group: one whose values repeat, such as a last name, ends with the entity's id.
func NewIndex[T any](name string, key func(*T) compoundkey.Part) *Index[T] {
	if key == nil {
		return &Index[T]{name: name} // refused by Attach
	}
	return &Index[T]{name: name, keys: func(v *T) []compoundkey.Part { return []compoundkey.Part{key(v)} }}
}

// NewMultiIndex makes an index under which an entity has several keys, such as its tags. Repeated keys count once.
func NewMultiIndex[T any](name string, keys func(*T) []compoundkey.Part) *Index[T] {
	return &Index[T]{name: name, keys: keys}
}

// GroupBy makes a partition for each value of group, in place of one for each of the entities' partitions: a region, the
// first letter of the key. For one partition for the whole organisation, group returns Organisation. It is pure. It returns
// x, and is called before x is given to a repository.
func (x *Index[T]) GroupBy(group func(*T) string) *Index[T] {
	x.group = group
	return x
}

// In puts the copies into another table, which may be in another account. It returns x, and is called before x is given
// to a repository.
func (x *Index[T]) In(table *patterns.Table) *Index[T] {
	x.table = table
	return x
}

// Keep makes the copies hold these properties only. What is read through the index then has the others' zero values,
// can be merged and deleted but not replaced, and GetWhole reads the rest. It returns x, and is called before x is
// given to a repository. Queries through the index can have conditions on these properties only.
func (x *Index[T]) Keep(properties ...string) *Index[T] {
	x.keep = append([]string{}, properties...)
	return x
}

// Unique makes a write that takes another entity's key fail with patterns.ErrDuplicate, and write nothing: each new key is
// reserved before the entity is written. That costs 1 request for each new key. A key that was just given up, or reserved
// by a change that died, is taken until its intent has been carried out. It returns x, and is called before x is given to a
// repository.
func (x *Index[T]) Unique() *Index[T] {
	x.unique = true
	return x
}

// PatternName returns the index's name.
func (x *Index[T]) PatternName() string { return x.name }

// Attach is called by patterns.NewRepository, with nil where the index is free again.
func (x *Index[T]) Attach(host patterns.Host) error {
	if host == nil {
		x.repo = nil
		return nil
	}
	repo, ok := host.(*patterns.Repository[T])
	if !ok {
		return fmt.Errorf("an index of %T does not fit a repository of %s", *new(T), host.EntityType())
	}
	if x.repo != nil {
		return fmt.Errorf("the index belongs to a repository on table %s already", x.repo.Table().Name())
	}
	if x.keys == nil {
		return fmt.Errorf("the index has no key function")
	}
	if known := host.PropertyNames(); known != nil {
		for _, name := range x.keep {
			if !slices.Contains(known, name) {
				return fmt.Errorf("the index keeps property %s, which %s does not have", name, host.EntityType())
			}
		}
	}
	if err := compoundkey.Err(x.partition(Organisation)); err != nil {
		return err
	}
	if err := compoundkey.Err(x.partition("a")); err != nil {
		return err
	}
	x.repo = repo
	return nil
}

// OutsideTable implements patterns.OutsideCopyContributor.
func (x *Index[T]) OutsideTable() *patterns.Table {
	if x.table == nil {
		return x.repo.Table()
	}
	return x.table
}

// Reserves implements patterns.OutsideCopyContributor.
func (x *Index[T]) Reserves() bool { return x.unique }

// OutsideCopies implements patterns.OutsideCopyContributor.
func (x *Index[T]) OutsideCopies(entity any) ([]patterns.OutsideCopy, error) {
	v := entity.(*T)
	var copies []patterns.OutsideCopy
	for _, part := range x.keys(v) {
		if part.IsZero() {
			continue
		}
		rowKey, err := compoundkey.Encode("", part)
		if err != nil {
			return nil, err
		}
		partition := x.partition(x.groupOf(v))
		if err := compoundkey.Err(partition); err != nil {
			return nil, err
		}
		key := patterns.Key{Partition: partition, Row: rowKey}
		if !slices.ContainsFunc(copies, func(c patterns.OutsideCopy) bool { return c.Key == key }) {
			copies = append(copies, patterns.OutsideCopy{Key: key, Keep: x.keep})
		}
	}
	return copies, nil
}

// groupOf returns the group that an entity belongs to.
func (x *Index[T]) groupOf(v *T) string {
	if x.group != nil {
		return x.group(v)
	}
	return x.repo.KeyOf(v).Partition
}

// partition is the partition key of a group's copies: the index's name, and the group where there is one.
func (x *Index[T]) partition(group string) string {
	if group == Organisation {
		return compoundkey.Join(x.name)
	}
	return compoundkey.Join(x.name, compoundkey.String(group))
}

// Get reads the entity of a group whose index key is compoundkey.String of the text value; it is patterns.ErrNotFound when
// there is none. An index with keys of another kind needs GetPart. Requests: 1.
func (x *Index[T]) Get(ctx context.Context, group, value string) (*T, error) {
	return x.GetPart(ctx, group, compoundkey.String(value))
}

// GetPart is Get for an index key of another kind. Requests: 1.
func (x *Index[T]) GetPart(ctx context.Context, group string, key compoundkey.Part) (*T, error) {
	if x.repo == nil {
		return nil, x.unattached("Get")
	}
	return x.repo.GetOutsideCopy(ctx, x.OutsideTable(), x.key(group, key), x.keep)
}

// GetWhole is GetPart for an index that keeps less than the entity: it follows to the entity's own row. Between its two
// reads the entity may change or go, so the result is of the second read. Requests: 2.
func (x *Index[T]) GetWhole(ctx context.Context, group string, key compoundkey.Part) (*T, error) {
	copied, err := x.GetPart(ctx, group, key)
	if err != nil {
		return nil, err
	}
	return x.repo.Get(ctx, x.repo.MetaOf(copied).Key())
}

func (x *Index[T]) key(group string, part compoundkey.Part) patterns.Key {
	return patterns.Key{Partition: x.partition(group), Row: compoundkey.Join("", part)}
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
func (x *Index[T]) Query(span compoundkey.Span) (patterns.Query[T], error) {
	if x.repo == nil {
		return patterns.Query[T]{}, x.unattached("Query")
	}
	return x.repo.OutsideCopies(x.OutsideTable(), span, x.keep), nil
}

// PartitionKey returns the partition key of a group's copies.
func (x *Index[T]) PartitionKey(group string) string { return x.partition(group) }

func (x *Index[T]) unattached(op string) error {
	return &patterns.Error{Op: op, Index: -1, Pattern: x.name, Kind: patterns.ErrInvalid, Err: fmt.Errorf("the index was not given to a repository")}
}
