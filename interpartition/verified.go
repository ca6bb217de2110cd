package interpartition

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

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
	if has, err := x.has(host, found, at); err != nil || !has {
		return nil, &tables.Error{Op: "Get", Table: cmp.Or(x.table, host.Table()).Name(), Key: at, Pattern: x.index.Name, Kind: tables.ErrNotFound, Err: err}
	}
	return found, nil
}

// has reports whether an entity has a copy under a key.
func (x *declaration[T]) has(host driver.Host[T], v *T, key tables.Key) (bool, error) {
	copies, err := x.copies(v, host.KeyOf)
	return slices.ContainsFunc(copies, func(c driver.OutsideCopy) bool { return c.Key == key }), err
}

// verifiedAtOnce is the number of copies whose entities Range reads together.
const verifiedAtOnce = 64

// Range reads the copies in a span, and yields the entities' own rows in the order of the index. It skips entities that were
// deleted or have another index key by now. Requests: 1 for each page of at most 1,000 copies, and 1 for each entity, of
// which it reads several in parallel.
func (v Verified[T]) Range(ctx context.Context, span compoundkey.Span) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		partition, host, err := v.index.chosen("Range")
		if err != nil {
			yield(nil, err)
			return
		}
		var batch []*T
		for copied, err := range v.index.Range(ctx, span) {
			if err != nil {
				yield(nil, err)
				return
			}
			if batch = append(batch, copied); len(batch) < verifiedAtOnce {
				continue
			}
			if !v.follow(ctx, host, partition, batch, yield) {
				return
			}
			batch = batch[:0]
		}
		v.follow(ctx, host, partition, batch, yield)
	}
}

// follow yields the entities of the copies, and omits entities that no longer have the index key. It returns
// false after an error, or if the caller stopped the iteration.
func (v Verified[T]) follow(ctx context.Context, host driver.Host[T], partition string, copies []*T, yield func(*T, error) bool) bool {
	x := v.index
	keys := make([]tables.Key, len(copies))
	for i, copied := range copies {
		keys[i] = host.MetaOf(copied).Key()
	}
	found := map[tables.Key]*T{}
	for e, err := range host.GetMany(ctx, keys, nil) {
		if err != nil {
			yield(nil, err)
			return false
		}
		found[host.MetaOf(e).Key()] = e
	}
	for i, copied := range copies {
		e := found[keys[i]]
		if e == nil {
			continue
		}
		if has, err := x.has(host, e, tables.Key{Partition: partition, Row: host.MetaOf(copied).ReadRow()}); err != nil || !has {
			continue // an entity that the key function refuses has no copies
		}
		if !yield(e, nil) {
			return false
		}
	}
	return true
}
