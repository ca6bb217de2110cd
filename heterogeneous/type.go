package heterogeneous

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TypeOptions are the options of NewType; nil is the same as the zero value.
type TypeOptions struct {
	// Steps lead, one after the other, from the oldest version that may be stored to the current one (default none: only the
	// current version is read).
	Steps []Step
	// ByKey stores no EntityType: the Rows of the repository's schema identify the rows (default false). Such a type
	// has only one version.
	ByKey bool
}

// Type declares the name and version that a repository's entities store, and how older versions are upgraded. It is a
// pattern: give it to NewRepository. It belongs to that one Repository.
type Type[T any] struct {
	tag     tag
	options TypeOptions
	codec   *tables.Codec[T]
	err     error // the error of NewType, which Attach returns
	strip   bool  // T has no field EntityType, so load removes the property
	beside  beside

	repository driver.Binding[T]
}

// beside describes the other patterns of the type's repository.
type beside struct {
	rewrite    bool           // one of the other patterns rewrites properties
	spread     *driver.Layout // the layout among the other patterns, or nil
	none       bool           // there is no other pattern
	filterable []func(property string) bool
}

// typeName is the name of the pattern.
const typeName = "type"

// NewType declares a type by its name, which is stored, and its current version, 1 or more. A name consists of letters,
// digits, '-', '_' and '.'. NewRepository reports an invalid declaration.
func NewType[T any](name string, version int, options *TypeOptions) *Type[T] {
	t := &Type[T]{tag: tag{name, version}}
	if options != nil {
		t.options = *options
		t.options.Steps = slices.Clone(options.Steps)
	}
	if t.codec, t.err = tables.NewCodec[T](); t.err == nil {
		t.strip = !slices.Contains(t.codec.PropertyNames(), EntityType)
		t.err = t.check()
	}
	return t
}

func (t *Type[T]) check() error {
	if err := checkName(t.tag.name); err != nil {
		return err
	}
	o := &t.options
	switch {
	case t.tag.version < firstVersion || t.tag.version > latestVersion:
		return fmt.Errorf("the version is %d; it must be %d or more", t.tag.version, firstVersion)
	case o.ByKey && (t.tag.version != firstVersion || len(o.Steps) > 0):
		return fmt.Errorf("a type with TypeOptions.ByKey stores no version; declare it with version %d and without Steps", firstVersion)
	}
	return checkSteps(o.Steps, t.tag.version, reflect.TypeFor[T]())
}

// oldest returns the oldest version that can be read.
func (t *Type[T]) oldest() int { return t.tag.version - len(t.options.Steps) }

// String returns name and current version in the form of EntityType, such as "Employee@3".
func (t *Type[T]) String() string { return t.tag.String() }

// Attach implements patterns.Pattern; NewRepository calls it.
func (t *Type[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	implementation := driver.Implementation[T]{Name: typeName, Binding: &t.repository, Prior: storedTag[T], Fits: t.fits,
		Transform: &driver.Transform[T]{Stage: driver.StageType, Store: t.store, Load: t.load, Filterable: t.everyVersionHas}}
	if !t.options.ByKey {
		implementation.Seals = []string{EntityType} // an attacker who changed EntityType could choose the steps that upgrade the entity
	}
	switch {
	case t.err != nil:
		return implementation, t.err
	case t.options.ByKey && host.Rows() == (compoundkey.Span{}):
		return implementation, errors.New("Schema.Rows is not set; a type with TypeOptions.ByKey needs it")
	}
	return implementation, nil
}

// fits records the other patterns of the repository, and returns an error if one of them hides EntityType.
func (t *Type[T]) fits(all []driver.Implementation[T]) error {
	b := beside{none: len(all) == 1}
	for _, p := range all {
		if p.Layout != nil {
			if !t.options.ByKey && !p.Layout.Filterable(EntityType) {
				return fmt.Errorf("pattern %q may store EntityType in a further row, where a Registry does not read it; add EntityType to the pattern's FirstRow, and a field of this name to %s", p.Name, reflect.TypeFor[T]())
			}
			b.spread = p.Layout
		}
		if p.Transform != nil {
			b.rewrite = b.rewrite || p.Name != typeName
			if p.Transform.Filterable != nil {
				b.filterable = append(b.filterable, p.Transform.Filterable)
			}
		}
		if p.Projects != nil && len(t.options.Steps) > 0 && !slices.Contains(p.Projects, EntityType) {
			return fmt.Errorf("pattern %q stores a projection without %s, which holds the entity's version; add it to the projection", p.Name, EntityType)
		}
	}
	t.beside = b
	return nil
}

// host returns the repository, or nil if the type was not given to one.
func (t *Type[T]) host() driver.Host[T] {
	host, _ := t.repository.Host("", typeName)
	return host
}

// Is returns a condition that the entities of the type match, in any version. Use it as Schema.Where, or in
// queries of a repository that has neither Rows nor Where and whose partitions contain other types. Entities
// without EntityType do not match.
func (t *Type[T]) Is() tables.Condition {
	all := t.tag.name
	return tables.Or(tables.Eq(EntityType, all),
		tables.And(tables.Gt(EntityType, all+versionMark), tables.Lt(EntityType, all+behindMark)))
}

// everyVersionHas reports whether all versions have a property in the same form. A condition on any other property would miss
// entities.
func (t *Type[T]) everyVersionHas(property string) bool {
	if property == EntityType {
		return true
	}
	return !slices.ContainsFunc(t.options.Steps, func(s Step) bool { return !slices.Contains(s.known, property) })
}

// storedTag returns the row's EntityType.
func storedTag[T any](_ *T, stored tables.Properties) ([]string, error) {
	text, ok := stored.Get(EntityType).Text()
	if !ok {
		return nil, nil
	}
	return []string{text}, nil
}

// store adds EntityType. A merge into an entity of an older version replaces the whole row by the current version; otherwise
// properties that the steps have removed would be read as properties of the current version.
func (t *Type[T]) store(_ context.Context, c *driver.Change[T], p tables.Properties) (tables.Properties, error) {
	if t.options.ByKey {
		return p, nil
	}
	if c.Kind == driver.ChangeMerge && len(t.options.Steps) > 0 && !slices.Equal(c.Prior, []string{t.tag.String()}) {
		if t.beside.rewrite {
			return nil, fmt.Errorf("the entity is stored in a version older than %s, and other patterns rewrite its properties, so it cannot be merged; Replace or Upgrade it", t.tag)
		}
		var err error
		if p, err = t.merged(c); err != nil {
			return nil, err
		}
	}
	stored := slices.Clone(p)
	stored.Set(EntityType, tables.String(t.tag.String()))
	return stored, nil
}

// merged returns the properties after a merge into an entity of an older version: the stored properties,
// upgraded, and the merged properties.
func (t *Type[T]) merged(c *driver.Change[T]) (tables.Properties, error) {
	stored := c.MergeWhole()
	version, err := t.versionOf(stored)
	if err != nil {
		return nil, err
	}
	if stored, err = t.upgraded(c.Key, stored, version); err != nil {
		return nil, err
	}
	now, err := t.codec.Encode(c.Entity)
	for _, p := range now {
		stored.Set(p.Name, p.Value)
	}
	return stored, err
}

// load removes EntityType, and upgrades older versions to the current one.
func (t *Type[T]) load(_ context.Context, of driver.Reading, p tables.Properties) (tables.Properties, error) {
	version, err := t.versionOf(p)
	if err != nil {
		return nil, err
	}
	return t.upgraded(of.Key, p, version)
}

// versionOf returns the version of stored properties.
func (t *Type[T]) versionOf(p tables.Properties) (int, error) {
	value := p.Get(EntityType)
	unreadable := &VersionError{Type: t.tag.name, Oldest: t.oldest(), Newest: t.tag.version}
	if value.IsNull() {
		if len(t.options.Steps) > 0 {
			return 0, unreadable // an entity without EntityType may be of any version
		}
		return t.tag.version, nil
	}
	text, _ := value.Text()
	stored, ok := parseTag(text)
	if ok {
		unreadable.Stored = stored.String()
	}
	if !ok || !t.reads(stored) {
		return 0, unreadable
	}
	return stored.version, nil
}

// reads reports whether the type can decode an entity with this tag.
func (t *Type[T]) reads(stored tag) bool {
	return stored.name == t.tag.name && stored.version >= t.oldest() && stored.version <= t.tag.version
}

// upgraded returns the properties of a version, upgraded to the current one.
func (t *Type[T]) upgraded(key tables.Key, p tables.Properties, version int) (tables.Properties, error) {
	if t.strip || version < t.tag.version {
		p.Delete(EntityType)
	}
	for _, s := range t.options.Steps {
		if s.version < version {
			continue
		}
		var err error
		if p, err = s.run(key, p); err != nil {
			return nil, fmt.Errorf("the step from %s: %w", tag{t.tag.name, s.version}, err)
		}
	}
	if !t.strip && version < t.tag.version {
		p.Set(EntityType, tables.String(tag{t.tag.name, version}.String()))
	}
	return p, nil
}
