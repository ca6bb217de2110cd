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
	// Resolver selects properties to encrypt, in addition to those with the tag `encrypt:"true"` (default none). It
	// must be deterministic. With a Resolver, conditions are allowed only on properties listed in Plain, because a
	// condition sends its value in plaintext.
	Resolver func(partitionKey, rowKey, property string) bool
	// Plain names properties that are never encrypted (default none); the Resolver is not called for them.
	Plain []string
	// Unsigned names properties that are neither encrypted nor signed (default none), such as those that another
	// program writes: anybody who can write rows can change, add and remove them. Every other property that is not
	// encrypted is signed: stored in plaintext, allowed in conditions, and a read returns ErrNotAuthentic if somebody
	// changed, added or removed it; only a read through a projection does not notice a removal.
	Unsigned []string
	// Context returns names and values, such as the tenant of the request, that are bound into every value and seal
	// in addition to the row (default none). They are not stored: a reader must supply the same pairs, or the read
	// returns ErrNotAuthentic. Context runs at each write and read of an entity. In workers, Verify and Rebuild the
	// context.Context may belong to no request, so Context must derive the pairs from the key there. Context must
	// always return the same pairs for the same entity. If Context returns an error, the operation fails with that
	// error.
	Context func(ctx context.Context, entity tables.Key) (map[string]string, error)
	// Scope is a text, such as a tenant or an environment, that is bound into every value and seal (default ""). Data
	// written in one scope cannot be read in another, even under the same data key, in the same table and row. It
	// must never change while the data exists.
	Scope string
	// Padding rounds the length of plaintexts up to a multiple of this many bytes, so that the stored length reveals
	// less; 0 and 1 mean no padding. It can be changed at any time.
	Padding int
	// AcceptPlaintext allows the migration of a table that is not fully encrypted yet. It accepts rows without a
	// seal, and properties that the row's seal does not list. While it is set, anybody who can write rows can pass
	// plaintext off as encrypted data. Run Reencrypt, then clear it.
	AcceptPlaintext bool
	// Legacy holds the wrapping keys of rows that the client-side encryption of .NET, Java or Python has written, and
	// makes them readable; nil refuses them. Such rows have no MAC: anybody who can write rows can change their
	// values. Run Reencrypt, then clear it.
	Legacy KeyWrapper
}

// Encryption is the pattern that encrypts and signs properties of entities. Give each Encryption to one Repository only.
type Encryption[T any] struct {
	hidden
	name       string
	registry   *Registry
	options    Options
	repository driver.Binding
}

// New makes the pattern. It encrypts the properties whose field has the tag
//
//	Number string `encrypt:"true"`
//
// and those that Options.Resolver chooses, and signs all others but those in Options.Unsigned. New makes no request.
func New[T any](name string, registry *Registry, options *Options) *Encryption[T] {
	if options == nil {
		options = &Options{}
	}
	e := &Encryption[T]{name: name, registry: registry, options: *options}
	e.options.Plain, e.options.Unsigned = slices.Clone(options.Plain), slices.Clone(options.Unsigned)
	return e
}

// Attach implements patterns.Pattern; NewRepository calls it.
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

// rowCipher encrypts and decrypts the entities of one repository, whatever their type.
type rowCipher struct {
	registry *Registry
	options  Options
	table    *tables.Table
	tagged   []string // properties to encrypt, sorted
}

// cipherOf makes the rowCipher of a repository. It fails if the options do not fit the type.
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

// checkNames refuses a tag of a field that is not stored, a property with the tag in Options.Plain or Unsigned, and a
// reserved name. known lists the type's properties; nil means that the type may store any.
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

// fits refuses a second encryption, patterns that move an encrypted property out of the row before it can be
// encrypted, and an unsigned property of which a pattern requires that it is signed. known lists the type's properties.
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
		for _, name := range append(names, p.Name) { // a pattern may store a property under the pattern's own name without listing it
			if !c.filterable(name) && !p.Transform.Filterable(name) {
				return fmt.Errorf("property %s is encrypted, but pattern %q stores it elsewhere in plaintext; use only one of the two for it", name, p.Name)
			}
		}
	}
	return nil
}

// maxPadding limits Options.Padding so that a padded value still fits into a property.
const maxPadding = 4096

// isOurs reports whether this package, or the legacy encryption, stores its own data under the name.
func isOurs(name string) bool {
	return name == SealProperty || name == legacyMetadata || name == legacyNames
}

// declared reports whether a property is to be encrypted.
func (c *rowCipher) declared(key tables.Key, property string) bool {
	if slices.Contains(c.tagged, property) {
		return true
	}
	return c.options.Resolver != nil && !slices.Contains(c.options.Plain, property) && !c.unsigned(property) && c.options.Resolver(key.Partition, key.Row, property)
}

// unsigned reports whether a property is neither encrypted nor signed.
func (c *rowCipher) unsigned(property string) bool {
	return slices.Contains(c.options.Unsigned, property)
}

// place returns the location to which the values of an entity are bound.
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

// filterable reports whether every row holds a property in plaintext, so that conditions on it work.
func (c *rowCipher) filterable(property string) bool {
	if isOurs(property) || slices.Contains(c.tagged, property) {
		return false
	}
	return c.options.Resolver == nil || slices.Contains(c.options.Plain, property) || c.unsigned(property)
}

// protects returns how a property is protected.
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

// taggedProperties lists the properties whose fields have the tag driver.EncryptTag, sorted. It refuses a tag that
// would have no effect, because the property would be stored in plaintext, which the author of the type does not
// expect.
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

// isTagged reports whether a field is to be encrypted.
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

// checkNested refuses tags on fields that do not become properties: a field that another field hides, or a
// field inside of a value that one property stores.
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
			at = nil // the fields below do not become properties of their own
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

// ErrNotAuthentic means that stored data differs from the data that was written under its key. The error deliberately does not tell which
// check failed. errors.Is also matches tables.ErrGarbled.
const ErrNotAuthentic = constantError("the stored data is not what was encrypted under this key; restore the row or blob from a backup")

// constantError is an immutable error.
type constantError string

// Error implements error.
func (e constantError) Error() string { return string(e) }

// Is makes errors.Is match the error's kind.
func (e constantError) Is(kind error) bool { return kind == tables.ErrGarbled }

var errMerge = errors.New("an encrypted entity cannot be merged, because its old and new properties would be encrypted under different keys; use Replace")

// unreadable reports whether the cause of an error is in the registry's rows or options, so that it is not a
// temporary failure. A read reports such an error as ErrNotAuthentic, since an attacker may have changed the rows.
func unreadable(err error) bool {
	return errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrGarbled) || errors.Is(err, tables.ErrInvalid) || errors.Is(err, tables.ErrWiring)
}
