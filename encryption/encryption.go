package encryption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Options are the options of an Encryption; nil is the same as the zero value.
type Options struct {
	// Resolver selects properties to encrypt, beside those with the tag (default none). It must be deterministic. With it, conditions are allowed
	// only on properties in Plain, because a condition sends its value in plaintext.
	Resolver func(partitionKey, rowKey, property string) bool
	// Plain names properties that are never encrypted, whatever Resolver says (default none).
	Plain []string
	// Unsigned names properties that are neither encrypted nor signed (default none), such as those that another program writes: anybody who can
	// write rows can change, add and remove them. All others that are not encrypted are signed: stored in plaintext, allowed in conditions, and a
	// read returns ErrNotAuthentic if somebody changed, added or, except in a projection, removed one.
	Unsigned []string
	// Context returns names and values, such as the tenant of the request, that are bound into every value and seal (default none). They are not
	// stored: a read without the same pairs returns ErrNotAuthentic. It runs at each write and read of an entity, must always return the same pairs
	// for it, and in workers, Verify and Rebuild must derive them from the key, since no request is there. If it fails, the operation fails with
	// its error.
	Context func(ctx context.Context, entity tables.Key) (map[string]string, error)
	// Scope is a text, such as a tenant or an environment, that is bound into every value and seal (default ""): no other scope can read the data,
	// even under the same data key. It must never change while the data exists.
	Scope string
	// Padding rounds plaintext lengths up to a multiple of so many bytes, so that stored lengths reveal less; 0 and 1 mean none. It can change at
	// any time.
	Padding int
	// AcceptPlaintext accepts rows without a seal, and properties that the seal does not list, to migrate a table. Meanwhile anybody who can write
	// rows can pass plaintext off as encrypted data. Run Reencrypt, then clear it.
	AcceptPlaintext bool
	// Legacy holds the wrapping keys of rows that the client-side encryption of .NET, Java or Python has written, and makes them readable (default:
	// refused). Anybody who can write rows can change their values. Run Reencrypt, then clear it.
	Legacy KeyWrapper
}

// Encryption is the pattern that encrypts and signs properties of entities. Give it to one Repository only.
type Encryption[T any] struct {
	hidden
	name       string
	registry   *Registry
	options    Options
	repository driver.Binding
}

// New makes the pattern for the fields with the tag
//
//	Number string `encrypt:"true"`
//
// and the properties that Options.Resolver chooses; it signs all others but Options.Unsigned. Requests: none.
func New[T any](name string, registry *Registry, options *Options) *Encryption[T] {
	if options == nil {
		options = &Options{}
	}
	e := &Encryption[T]{name: name, registry: registry, options: *options}
	e.options.Plain, e.options.Unsigned = slices.Clone(options.Plain), slices.Clone(options.Unsigned)
	return e
}

// Attach implements patterns.Pattern.
func (e *Encryption[T]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	c, err := e.cipherOf(host)
	return driver.Implementation{Name: e.name, Binding: &e.repository, Pattern: c,
		Fits: func(all []*driver.Implementation) error { return c.fits(host.PropertyNames(), all) },
		Transform: &driver.Transform{Stage: driver.StageEncrypt, Load: c.load, Filterable: c.filterable, RefusesMerge: errMerge, Protects: c.protects,
			Store: func(ctx context.Context, change *driver.Change, p tables.Properties) (tables.Properties, error) {
				if change.Kind == driver.ChangeMerge {
					return nil, errMerge
				}
				return c.store(ctx, change.Key, copiesOf(host, change), change.DryRun, p)
			},
			Authentication: &driver.Authentication{Properties: []string{SealProperty}, ProvesCopy: c.provesCopy, NotAuthentic: ErrNotAuthentic}},
	}, err
}

type rowCipher struct {
	registry *Registry
	options  Options
	table    *tables.Table
	tagged   []string // sorted
}

func (e *Encryption[T]) cipherOf(host driver.Host) (*rowCipher, error) {
	c := &rowCipher{registry: e.registry, options: e.options, table: host.Table()}
	switch {
	case e.registry == nil || e.registry.state == nil:
		return c, errors.New("the registry is nil; give encryption.New a Registry")
	case e.options.Padding < 0 || e.options.Padding > maxPadding:
		return c, fmt.Errorf("Options.Padding is %d; it must be at most %d", e.options.Padding, maxPadding)
	}
	entity := reflect.TypeFor[T]()
	var err error
	if c.tagged, err = taggedProperties(entity); err != nil {
		return c, err
	}
	return c, c.checkNames(host.PropertyNames(), entity)
}

// checkNames refuses a tag of a field that is not stored, a tagged property in Options.Plain or Unsigned, and reserved names. With known nil, the
// type may store any property.
func (c *rowCipher) checkNames(known []string, entity reflect.Type) error {
	for _, name := range c.tagged {
		if known != nil && !slices.Contains(known, name) {
			return fmt.Errorf("property %s has the tag, but %s does not store it; remove the tag or store the field", name, entity)
		}
		if slices.Contains(c.options.Plain, name) || c.unsigned(name) {
			return fmt.Errorf("property %s has the tag and is in Options.Plain or Unsigned; remove one of the two", name)
		}
	}
	for _, name := range known {
		if isOurs(name) {
			return fmt.Errorf("property name %s is reserved for the encryption; choose another name", name)
		}
	}
	return nil
}

// fits refuses a second encryption, patterns that move an encrypted property out of the row before it is encrypted, and an unsigned property that a
// pattern needs signed.
func (c *rowCipher) fits(known []string, all []*driver.Implementation) error {
	for _, p := range all {
		if i := slices.IndexFunc(p.Seals, c.unsigned); i >= 0 {
			return fmt.Errorf("property %s is in Options.Unsigned, but pattern %q requires that it is signed; remove it from the list", p.Seals[i], p.Name)
		}
		if other, ok := p.Pattern.(*rowCipher); ok && other != c {
			return fmt.Errorf("pattern %q already encrypts these entities; give a repository only one Encryption", p.Name)
		}
	}
	names := slices.Concat(c.tagged, known)
	for _, p := range all {
		if p.Transform == nil || p.Transform.Stage != driver.StageSpill || p.Transform.Filterable == nil {
			continue
		}
		for _, name := range append(names, p.Name) { // a pattern may store a property under its own name without listing it
			if !c.filterable(name) && !p.Transform.Filterable(name) {
				return fmt.Errorf("property %s is encrypted, but pattern %q stores it elsewhere in plaintext; use only one of the two for it", name, p.Name)
			}
		}
	}
	return nil
}

// maxPadding makes a padded value fit into a property.
const maxPadding = 4096

// isOurs reports whether this package or the legacy encryption stores its own data under the name.
func isOurs(name string) bool {
	return name == SealProperty || name == legacyMetadata || name == legacyNames
}

func (c *rowCipher) declared(key tables.Key, property string) bool {
	if slices.Contains(c.tagged, property) {
		return true
	}
	return c.options.Resolver != nil && !slices.Contains(c.options.Plain, property) && !c.unsigned(property) && c.options.Resolver(key.Partition, key.Row, property)
}

func (c *rowCipher) unsigned(property string) bool {
	return slices.Contains(c.options.Unsigned, property)
}

func (c *rowCipher) place(ctx context.Context, key tables.Key) (place, error) {
	at := place{scope: c.options.Scope, location: locationOf(c.table, key)}
	if c.options.Context == nil {
		return at, nil
	}
	pairs, err := c.options.Context(ctx, key)
	if err != nil {
		return at, &tables.Error{Op: "Context", Kind: tables.ErrInvalid, Err: err}
	}
	at.required = encodeContext(pairs)
	return at, nil
}

// filterable reports whether every row holds a property in plaintext, so that conditions work.
func (c *rowCipher) filterable(property string) bool {
	if isOurs(property) || slices.Contains(c.tagged, property) {
		return false
	}
	return c.options.Resolver == nil || slices.Contains(c.options.Plain, property) || c.unsigned(property)
}

func (c *rowCipher) protects(entity tables.Key, property string) driver.Protection {
	switch {
	case c.declared(entity, property):
		return driver.Encrypted
	case c.unsigned(property):
		return driver.Unprotected
	}
	return driver.Signed
}

const tagTable = "table"

// taggedProperties lists the tagged properties, sorted. It refuses a tag without effect: the property would be stored in plaintext, which the
// author of the type does not expect.
func taggedProperties(t reflect.Type) (names []string, err error) {
	visible := map[string]bool{}
	for _, field := range reflect.VisibleFields(t) {
		visible[fmt.Sprint(field.Index)] = true
		if tagged, err := isTagged(t, field); err != nil || !tagged {
			if err != nil {
				return nil, err
			}
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get(tagTable), ",")
		name = cmp.Or(name, field.Name)
		unstored := name == "-" || !field.IsExported() || options == "rest" || field.Anonymous && field.Tag.Get(tagTable) == ""
		if unstored || name == "PartitionKey" || name == "RowKey" || name == "Timestamp" {
			return nil, fmt.Errorf("field %s of %s has the tag but is not stored as a property of its own; remove the tag", field.Name, t)
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("two fields of %s are stored as property %s; rename one in its tag", t, name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, checkNested(t, nil, visible, nil)
}

func isTagged(t reflect.Type, field reflect.StructField) (bool, error) {
	switch value, tagged := field.Tag.Lookup(driver.EncryptTag); {
	case !tagged || value == "false":
		return false, nil
	case value == "true":
		return true, nil
	default:
		return false, fmt.Errorf("field %s of %s has the tag %s:%q; it must be true or false", field.Name, t, driver.EncryptTag, value)
	}
}

// checkNested refuses tags on fields that are no properties: a hidden field, or one inside a value that one property stores.
func checkNested(t reflect.Type, index []int, visible map[string]bool, path []reflect.Type) error {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		t, index = t.Elem(), nil
	}
	if t.Kind() != reflect.Struct || slices.Contains(path, t) {
		return nil
	}
	path = append(path, t)
	for i := range t.NumField() {
		field := t.Field(i)
		at := append(slices.Clone(index), i)
		_, named := field.Tag.Lookup(tagTable)
		top := len(path) == 1
		property := top || index != nil && visible[fmt.Sprint(at)]
		if tagged, err := isTagged(t, field); err != nil || tagged && !property {
			return fmt.Errorf("field %s of %s has the tag but is not a property of its own (%v); remove the tag", field.Name, t, err)
		}
		if !field.Anonymous || named {
			at = nil // the fields below are no properties
		}
		inner := field.Type
		if at != nil && inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if err := checkNested(inner, at, visible, path); err != nil {
			return err
		}
	}
	return nil
}

// ErrNotAuthentic means that stored data differs from what was written under its key. It deliberately does not tell which check failed. errors.Is
// also matches tables.ErrGarbled.
const ErrNotAuthentic = constantError("the stored data is not what was encrypted under this key; restore the row or blob from a backup")

type constantError string

// Error implements error.
func (e constantError) Error() string { return string(e) }

// Is makes errors.Is match the error's kind.
func (e constantError) Is(kind error) bool { return kind == tables.ErrGarbled }

var errMerge = errors.New("an encrypted entity cannot be merged, because its old and new properties would be encrypted under different keys; use Replace")

// unreadable reports whether an error comes from the registry's rows or options. A read reports it as ErrNotAuthentic, since an attacker may have
// changed the rows.
func unreadable(err error) bool {
	return errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrGarbled) || errors.Is(err, tables.ErrInvalid) || errors.Is(err, tables.ErrWiring)
}
