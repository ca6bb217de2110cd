package patterns

import (
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// IndexDefinition is what every index has: a name, the keys that an entity has in it, and the properties that it keeps.
// Index packages embed it. An index is
//
//   - sparse where the key function returns the zero Part: the entity is not in the index;
//   - multi-valued where it returns several; repeated ones count once;
//   - by a computed value, since the function may compute what it likes from the entity's stored properties;
//   - case-insensitive with compoundkey.Fold, in the key function and in what is looked up.
type IndexDefinition[T any] struct {
	name string
	keys func(*T) []compoundkey.Part
	keep []string
	kept []string // keep, and what every copy in the repository holds
	repo *Repository[T]
}

// DefineIndex makes a definition. key is pure, and returns one key or several.
func DefineIndex[T any, K compoundkey.OneOrMany](name string, key func(*T) K) IndexDefinition[T] {
	return IndexDefinition[T]{name: name, keys: manyKeys(key)}
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

// PatternName returns the index's name.
func (d *IndexDefinition[T]) PatternName() string { return d.name }

// KeepOnly sets the properties that the index keeps.
func (d *IndexDefinition[T]) KeepOnly(properties []string) {
	d.keep = append([]string{}, properties...)
	d.kept = d.keep
}

// Kept returns the properties that the index keeps, nil for all. In a repository with a CopyAuthenticator its seal is among them.
func (d *IndexDefinition[T]) Kept() []string { return d.kept }

// Attach is called by NewRepository, with nil where the index is free again.
func (d *IndexDefinition[T]) Attach(host driver.Host) error {
	if host == nil {
		d.repo, d.kept = nil, d.keep
		return nil
	}
	repo, ok := host.(*Repository[T])
	if !ok {
		return fmt.Errorf("an index of %T does not fit a repository of %s", *new(T), host.EntityType())
	}
	if d.repo != nil {
		return fmt.Errorf("the index belongs to a repository on table %s already", d.repo.Table().Name())
	}
	if d.keys == nil {
		return fmt.Errorf("the index has no key function")
	}
	if _, err := compoundkey.Encode(d.name); err != nil {
		return err
	}
	if known := host.PropertyNames(); known != nil {
		for _, name := range d.keep {
			if !slices.Contains(known, name) {
				return fmt.Errorf("the index keeps property %s, which %s does not have", name, host.EntityType())
			}
		}
	}
	if d.keep != nil {
		d.kept = slices.Concat(d.keep, repo.engine.Sealed())
	}
	d.repo = repo
	return nil
}

// IndexKeys returns the keys that an entity has in the index, each once and none that is the zero Part.
func (d *IndexDefinition[T]) IndexKeys(v *T) []compoundkey.Part {
	var parts []compoundkey.Part
	var seen []string
	for _, part := range d.keys(v) {
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

// Host returns the repository that the index was given to; before that, its reads are ErrInvalid.
func (d *IndexDefinition[T]) Host(op string) (*Repository[T], error) {
	if d.repo == nil {
		return nil, &tables.Error{Op: op, Pattern: d.name, Kind: tables.ErrInvalid, Err: fmt.Errorf("the index was not given to a repository")}
	}
	return d.repo, nil
}

// GroupOf returns the group that an entity belongs to in an index whose rows lie in partitions of their own: what group
// returns, and the entity's partition where group is nil. It is ErrInvalid before the index was given to a repository.
func (d *IndexDefinition[T]) GroupOf(v *T, group func(*T) string) (string, error) {
	if group != nil {
		return group(v), nil
	}
	repo, err := d.Host("GroupOf")
	if err != nil {
		return "", err
	}
	return repo.KeyOf(v).Partition, nil
}
