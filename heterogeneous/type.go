package heterogeneous

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
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
	strip   bool  // T has no field EntityType, so reads remove the property
	beside  beside

	repository driver.Binding
}

// beside describes the patterns of the type's repository.
type beside struct {
	rewrite    bool                         // another pattern than the type rewrites properties
	spread     *driver.Layout               // the layout, or nil
	none       bool                         // the type is the only pattern
	filterable []func(property string) bool // Transform.Filterable of all patterns
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
		return fmt.Errorf("the version is %d; it must be %d to %d", t.tag.version, firstVersion, latestVersion)
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
func (t *Type[T]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	implementation := driver.Implementation{Name: typeName, Binding: &t.repository, Prior: storedTag, Fits: t.fits,
		Transform: &driver.Transform{Stage: driver.StageType, Store: t.store, Load: t.load, Filterable: t.everyVersionHas, Adds: t.someVersionHas}}
	if !t.options.ByKey {
		implementation.Seals = []string{EntityType} // whoever could change it would choose the steps that upgrade the entity
	}
	switch {
	case t.err != nil:
		return implementation, t.err
	case t.options.ByKey && host.Rows() == (compoundkey.Span{}):
		return implementation, errors.New("neither Schema.Prefix nor Schema.Rows is set; a type with TypeOptions.ByKey needs one of them")
	}
	return implementation, nil
}

// fits notes what the repository's patterns do, and refuses one that would hide EntityType.
func (t *Type[T]) fits(all []*driver.Implementation) error {
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
func (t *Type[T]) host() driver.Host {
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

// everyVersionHas reports whether all versions have a property: a condition on another one would miss entities of some versions.
func (t *Type[T]) everyVersionHas(property string) bool {
	if property == EntityType {
		return true
	}
	return !slices.ContainsFunc(t.options.Steps, func(s Step) bool { return !slices.Contains(s.known, property) })
}

// someVersionHas reports whether an earlier version, or the library beside the type's fields, can store a property.
func (t *Type[T]) someVersionHas(property string) bool {
	return property == EntityType && !t.options.ByKey ||
		slices.ContainsFunc(t.options.Steps, func(s Step) bool { return s.known == nil || slices.Contains(s.known, property) })
}

// storedTag returns the stored EntityType, the prior state of an entity.
func storedTag(_ any, stored tables.Properties) ([]string, error) {
	text, ok := stored.Get(EntityType).Text()
	if !ok {
		return nil, nil
	}
	return []string{text}, nil
}

// store adds EntityType. A merge into an entity of an older version replaces the whole row: otherwise properties that the steps
// remove would be read as properties of the current version.
func (t *Type[T]) store(_ context.Context, c *driver.Change, p tables.Properties) (tables.Properties, error) {
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
func (t *Type[T]) merged(c *driver.Change) (tables.Properties, error) {
	stored, err := t.upgraded(c.Key, c.MergeWhole())
	if err != nil {
		return nil, err
	}
	now, err := t.codec.Encode(driver.As[T](c.Entity))
	for _, p := range now {
		stored.Set(p.Name, p.Value)
	}
	return stored, err
}

// load upgrades what is read to the current version.
func (t *Type[T]) load(_ context.Context, of driver.Reading, p tables.Properties) (tables.Properties, error) {
	return t.upgraded(of.Key, p)
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

// upgraded returns stored properties as those of the current version. If T has a field EntityType, it keeps the stored value.
func (t *Type[T]) upgraded(key tables.Key, p tables.Properties) (tables.Properties, error) {
	version, err := t.versionOf(p)
	if err != nil {
		return nil, err
	}
	if t.strip || version < t.tag.version {
		p.Delete(EntityType)
	}
	for _, s := range t.options.Steps {
		if s.version < version {
			continue
		}
		if p, err = s.run(key, p); err != nil {
			return nil, fmt.Errorf("the step from %s: %w", tag{t.tag.name, s.version}, err)
		}
	}
	if !t.strip && version < t.tag.version {
		p.Set(EntityType, tables.String(tag{t.tag.name, version}.String()))
	}
	return p, nil
}

// Upgrade writes the entities of older versions as the current version, each under its ETag, while programs read and write. If
// Schema.Prefix or Rows is set and the type has no steps, it also adds EntityType to entities without it. Upgrade writes the entities of a
// partition in change sets. If one entity makes a set fail, Upgrade writes that entity alone, so an entity that programs change
// constantly delays only itself. You can interrupt Upgrade at any time and run it again, or resume it with JobOptions.Resume.
//
// An entity that cannot be upgraded does not end the run: Upgrade gives it to JobOptions.Found, as
// Undecodable if a step refuses it and Different otherwise, with the error in Finding.Err. Upgrade returns
// ErrWiring if Patterns, Lag, Rows or DryRun is set. In the report, even together with an error, Read counts
// the entities that were not of the current version, Written those that this run has written as the current
// version, and Failed those that could not be upgraded; concurrent writers have written or deleted the others.
// The counts do not include the runs that this run resumes. You can remove the steps after a complete run
// without failures, if no program writes older versions any more.
//
// Requests: 1 for each page of at most 1,000 older rows, and 1 for each change set of 100 rows, so 11 for
// 1,000 old entities of a partition without other patterns; 2 more for each conflict, and with several pages
// the additional requests of Query.AllParallel. If the type has no steps, it reads all rows of the type.
func (t *Type[T]) Upgrade(ctx context.Context, options *patterns.JobOptions) (patterns.RewriteReport, error) {
	const op = "Upgrade"
	host, err := t.repository.Host(op, typeName)
	if err != nil {
		return patterns.RewriteReport{}, err
	}
	if t.options.ByKey {
		return patterns.RewriteReport{}, nil
	}
	job := &patterns.RewriteJob{Op: op, Pattern: typeName, Kind: driver.ChangeReplace, Where: t.older(),
		Outdated: func(_ tables.Key, p tables.Properties, _ bool) (outdated, known bool) { return t.upgradable(p), true }}
	return patterns.Rewrite(ctx, host, job, options)
}

// older returns conditions that match every row that Upgrade must write. Without steps it returns none, since Upgrade
// then also writes rows without EntityType, which match no condition on it.
func (t *Type[T]) older() []tables.Condition {
	if len(t.options.Steps) == 0 {
		return nil
	}
	return []tables.Condition{t.Is(), tables.Ne(EntityType, t.tag.String())}
}

// upgradable reports whether Upgrade must write a row: it is of an older version or, without steps, may lack EntityType.
func (t *Type[T]) upgradable(p tables.Properties) bool {
	value := p.Get(EntityType)
	if value.IsNull() {
		return len(t.options.Steps) == 0 && t.host().Rows() != (compoundkey.Span{})
	}
	text, _ := value.Text()
	stored, ok := parseTag(text)
	return ok && t.reads(stored) && !t.current(p)
}
