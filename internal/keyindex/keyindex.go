// Package keyindex is what the index packages share: a name, the keys that an entity has in the index, and what its copies hold.
// An index is
//
//   - sparse where the key function returns the zero Part: the entity is not in the index;
//   - multi-valued where it returns several; repeated ones count once;
//   - by a computed value, since the function may compute what it likes from the entity's stored properties;
//   - case-insensitive with compoundkey.Fold, in the key function and in what is looked up.
package keyindex

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Index is one index of entities of type T.
type Index[T any] struct {
	Name    string
	Keys    func(*T) []compoundkey.Part // pure
	Project []string                    // the properties that copies hold; nil for all
	Group   func(*T) string             // pure; nil for the entity's partition
	Binding driver.Binding[T]
}

// New makes an index. key is pure, and returns one key or several. group is nil for the entity's partition.
func New[T any, K compoundkey.OneOrMany](name string, key func(*T) K, group func(*T) string) Index[T] {
	return Index[T]{Name: name, Keys: manyKeys(key), Group: group}
}

// manyKeys turns a key function into one that returns several keys. A nil function stays nil: Attach refuses it.
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

// Attach checks that the index fits the repository, and begins its Implementation.
func (x *Index[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation := driver.Implementation[T]{Name: x.Name, Binding: &x.Binding, Projects: x.Project}
	if x.Keys == nil {
		return implementation, errors.New("the index has no key function; give it one")
	}
	if _, err := compoundkey.Encode(x.Name); err != nil {
		return implementation, err
	}
	if known := host.PropertyNames(); known != nil {
		for _, name := range x.Project {
			if !slices.Contains(known, name) {
				return implementation, fmt.Errorf("Options.Project names property %s, which %s does not have", name, reflect.TypeFor[T]())
			}
		}
	}
	return implementation, nil
}

// Host returns the repository that the index was given to; before that, its reads are ErrInvalid.
func (x *Index[T]) Host(op string) (driver.Host[T], error) { return x.Binding.Host(op, x.Name) }

// KeysOf returns the keys that an entity has in the index, each once and none that is the zero Part.
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

// GroupOf returns the group that an entity belongs to. keyOf is Host.KeyOf.
func (x *Index[T]) GroupOf(v *T, keyOf func(*T) tables.Key) string {
	if x.Group != nil {
		return x.Group(v)
	}
	return keyOf(v).Partition
}
