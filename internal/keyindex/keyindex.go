// Package keyindex is the common part of the index packages: the name of an index, the index keys of an entity, its group,
// and the projection of its copies.
package keyindex

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// Index is an index of entities, whose functions get pointers to the entities' type.
type Index struct {
	Name    string
	Keys    func(any) []compoundkey.Part // the index keys of an entity; pure
	Project []string                     // the properties that copies contain; nil for all
	Groups  Groups
	Binding driver.Binding

	of reflect.Type // of the entities
}

// Groups says how an index divides its entities into groups. The zero value is one group, "", with all entities.
type Groups struct {
	Of          func(any) string // the group of an entity; pure; nil if this function does not define the groups
	ByPartition bool             // the group is the entity's partition
}

// Any reports whether there are groups, so that a read has to choose one.
func (g Groups) Any() bool { return g.Of != nil || g.ByPartition }

// New makes an index. group is nil for an index without groups of its own; group and the functions of keys must be pure.
func New[T any](name string, keys func(any) []compoundkey.Part, group func(*T) string, byPartition bool) *Index {
	x := &Index{Name: name, Keys: keys, Groups: Groups{ByPartition: byPartition}, of: reflect.TypeFor[T]()}
	if group != nil {
		x.Groups.Of = func(v any) string { return group(v.(*T)) }
	}
	return x
}

// One returns Index.Keys for a function that returns one key. For a nil function it returns nil, and Attach an error.
func One[T any, K compoundkey.Key](key func(*T) K) func(any) []compoundkey.Part {
	if key == nil {
		return nil
	}
	return func(v any) []compoundkey.Part { return []compoundkey.Part{compoundkey.Of(key(v.(*T)))} }
}

// Several does what One does, for a function that returns several keys.
func Several[T any, K compoundkey.Key](keys func(*T) []K) func(any) []compoundkey.Part {
	if keys == nil {
		return nil
	}
	return func(v any) (parts []compoundkey.Part) {
		for _, k := range keys(v.(*T)) {
			parts = append(parts, compoundkey.Of(k))
		}
		return parts
	}
}

// Within returns the span of the keys that are in all intervals; all keys if there is none.
func Within[K compoundkey.Key](intervals []compoundkey.Interval[K]) (span compoundkey.Span) {
	for _, interval := range intervals {
		span = span.Intersect(interval.Span)
	}
	return span
}

// Attach checks that the repository can have the index, and returns the common part of its Implementation.
func (x *Index) Attach(host driver.Host) (driver.Implementation, error) {
	implementation := driver.Implementation{Name: x.Name, Binding: &x.Binding, Projects: x.Project}
	if x.Keys == nil {
		return implementation, errors.New("the index's key function is nil; pass one to its constructor")
	}
	if x.Groups.Of != nil && x.Groups.ByPartition {
		return implementation, errors.New("Options.Group and Options.ByPartition are both set; set one of them")
	}
	if _, err := compoundkey.Encode(x.Name); err != nil {
		return implementation, err
	}
	if known := host.PropertyNames(); known != nil {
		for _, name := range x.Project {
			if !slices.Contains(known, name) {
				return implementation, fmt.Errorf("Options.Project names property %s, but %s has no such property; use the name under which the field is stored", name, x.of)
			}
		}
	}
	return implementation, nil
}

// Host returns the repository to which the index was given, or an ErrWiring if there is none.
func (x *Index) Host(op string) (driver.Host, error) { return x.Binding.Host(op, x.Name) }

// KeysOf returns the index keys of an entity, without the zero Part and without duplicates.
func (x *Index) KeysOf(v any) []compoundkey.Part {
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

// Partition returns the key of a partition in which an index with partitions of its own stores a group: the index's
// name, unless the group is "" the group, and further parts if there are several.
func (x *Index) Partition(group string, further ...compoundkey.Part) string {
	if group == "" {
		return compoundkey.Join(x.Name, further...)
	}
	return compoundkey.Join(x.Name, append([]compoundkey.Part{compoundkey.String(group)}, further...)...)
}

// InGroups returns the condition that a row is in a partition of the index, whatever the group. Two of its four comparisons are a range,
// so that the service does not read the whole table. The other two leave out indexes whose names begin with this one's, such as "email2".
func (x *Index) InGroups() entity.Condition {
	none, groups := x.Partition(""), compoundkey.All().Under(x.Name)
	return entity.And(entity.Ge("PartitionKey", none), entity.Lt("PartitionKey", groups.To()),
		entity.Or(entity.Eq("PartitionKey", none), entity.Ge("PartitionKey", groups.From())))
}

// Owns reports whether a partition key is one of the index: a table may hold several indexes.
func (x *Index) Owns(partition string) bool {
	return partition == x.Name || strings.HasPrefix(partition, x.Name+"_")
}

// GroupOf returns the group of an entity. keyOf is Host.KeyOf.
func (x *Index) GroupOf(v any, keyOf func(any) entity.Key) string {
	switch {
	case x.Groups.ByPartition:
		return keyOf(v).Partition
	case x.Groups.Of != nil:
		return x.Groups.Of(v)
	}
	return ""
}

// Chosen returns the group that a read has to use. The argument in points to the group that the caller gave to In; it
// is nil if the caller did not call In.
func (x *Index) Chosen(op string, in *string) (string, error) {
	var why string
	switch {
	case x.Groups.Any() == (in != nil):
		return *cmp.Or(in, new(string)), nil
	case in == nil:
		why = "the index has groups; choose one with In"
	default:
		why = "the index has no groups; read it without In, or set Options.Group or Options.ByPartition"
	}
	return "", &entity.Error{Op: op, Pattern: x.Name, Kind: entity.ErrWiring, Err: errors.New(why)}
}

// ErrInGroup returns the error of an index that was given to a repository after In has chosen a group.
func ErrInGroup(group string) error {
	return fmt.Errorf("it is the index in group %q, which In has returned; give the repository the index itself", group)
}
