// Package keyindex is the common part of the index packages: the name of an index, the index keys of an entity, its group,
// and the projection of its copies. The key function computes index keys from an entity's stored properties. It returns
//
//   - the zero Part if the entity is not in the index (a sparse index);
//   - several keys if the entity is in the index more than once; repeated keys count once;
//   - keys made by compoundkey.Fold for an index that ignores case; look them up with compoundkey.Fold, too.
package keyindex

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Index is an index of entities of type T.
type Index[T any] struct {
	Name    string
	Keys    func(*T) []compoundkey.Part // the index keys of an entity; pure
	Project []string                    // the properties that copies contain; nil for all
	Group   func(*T) string             // the group of an entity; pure; nil for the entity's partition
	Binding driver.Binding[T]
}

// New makes an index. key returns one index key or several. If group is nil, the group is the entity's partition. Both
// functions must be pure.
func New[T any, K compoundkey.OneOrMany](name string, key func(*T) K, group func(*T) string) Index[T] {
	return Index[T]{Name: name, Keys: manyKeys(key), Group: group}
}

// manyKeys converts a key function into one that returns a slice. It returns nil for nil; Attach reports it.
func manyKeys[T any, K compoundkey.OneOrMany](key func(*T) K) func(*T) []compoundkey.Part {
	switch key := any(key).(type) {
	case func(*T) compoundkey.Part:
		if key != nil {
			return func(v *T) []compoundkey.Part { return []compoundkey.Part{key(v)} }
		}
	case func(*T) []compoundkey.Part:
		return key
	}
	return nil
}

// Attach checks that the repository can have the index, and returns the common part of its Implementation.
func (x *Index[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation := driver.Implementation[T]{Name: x.Name, Binding: &x.Binding, Projects: x.Project}
	if x.Keys == nil {
		return implementation, errors.New("the index's key function is nil; pass one to its constructor")
	}
	if _, err := compoundkey.Encode(x.Name); err != nil {
		return implementation, err
	}
	if known := host.PropertyNames(); known != nil {
		for _, name := range x.Project {
			if !slices.Contains(known, name) {
				return implementation, fmt.Errorf("Options.Project names property %s, but %s has no such property; use the name under which the field is stored", name, reflect.TypeFor[T]())
			}
		}
	}
	return implementation, nil
}

// Host returns the repository to which the index was given, or an ErrWiring if there is none.
func (x *Index[T]) Host(op string) (driver.Host[T], error) { return x.Binding.Host(op, x.Name) }

// KeysOf returns the index keys of an entity, without the zero Part and without duplicates.
func (x *Index[T]) KeysOf(v *T) []compoundkey.Part {
	var parts []compoundkey.Part
	var seen []string
	for _, part := range x.Keys(v) {
		if part.IsZero() {
			continue
		}
		key, err := compoundkey.Encode("", part)
		if err == nil && slices.Contains(seen, key) {
			continue
		}
		seen, parts = append(seen, key), append(parts, part)
	}
	return parts
}

// Partition returns the partition key of what an index stores for a group in partitions of its own: the index's name and, unless
// the group is "", the group.
func (x *Index[T]) Partition(group string) string {
	if group == "" {
		return compoundkey.Join(x.Name)
	}
	return compoundkey.Join(x.Name, compoundkey.String(group))
}

// Owns reports whether a partition key is one of the index: a table may hold several indexes.
func (x *Index[T]) Owns(partition string) bool {
	return partition == x.Name || strings.HasPrefix(partition, x.Name+"_")
}

// GroupOf returns the group of an entity. keyOf is Host.KeyOf.
func (x *Index[T]) GroupOf(v *T, keyOf func(*T) tables.Key) string {
	if x.Group != nil {
		return x.Group(v)
	}
	return keyOf(v).Partition
}
