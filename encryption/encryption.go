package encryption

import (
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
	// Resolver says which properties are encrypted, beside those with the tag. It is pure. With it, a condition on any
	// property is refused that Plain does not name, since its value would be sent as it is.
	Resolver func(partitionKey, rowKey, property string) bool
	// Plain names properties that the Resolver is not asked for.
	Plain []string
	// Sign says which of the other properties are signed, beside those with the tag `encrypt:"sign"`: they are stored as they are, and
	// can be in conditions, and a read of one that somebody has changed, added or removed is ErrNotAuthentic. It is pure. What a
	// pattern seals (driver.Implementation.Seals), such as type and version of package heterogeneous, is always signed.
	Sign func(partitionKey, rowKey, property string) bool
	// Context returns what everything is bound to beyond the row, such as the tenant for which the request runs: pairs that
	// are not stored, and that whoever reads must have. With others, a read is ErrNotAuthentic. It runs at each write and
	// read of an entity, also in workers, Verify and Rebuild, whose context.Context may have no request behind it: there it
	// can go by the key. It returns the same pairs for an entity for as long as the data lives. Its error ends the operation.
	Context func(ctx context.Context, entity tables.Key) (map[string]string, error)
	// Scope is bound into everything, such as a tenant or an environment: what was written in one is not read in another,
	// also where both have the same data keys, tables and keys. It stays the same for as long as the data lives.
	Scope string
	// Padding rounds the length of plaintexts up to a multiple, so that it tells less; 0 and 1 are none. It can change.
	Padding int
	// AcceptPlaintext is for the migration of a table that was not encrypted, or not all that is now. Rows without a seal are
	// read as they are, and so are properties that the declaration has and the row's seal does not, and rows of format version 1,
	// which signs nothing and binds no Context. While it is set, who can write rows can pass plaintext off as what was encrypted.
	// Reencrypt brings it to an end.
	AcceptPlaintext bool
	// RefuseVersion1 refuses rows of format version 1, once Reencrypt has written them all in version 2. Without it they are
	// read where nothing is declared that version 1 does not protect: no tag `encrypt:"sign"`, no Sign, no Context.
	RefuseVersion1 bool
	// Legacy reads rows that the client-side encryption of .NET, Java or Python has written, whose wrapping keys it holds; nil
	// refuses them. They have no MAC: who can write rows can change their values. Reencrypt brings it to an end.
	Legacy KeyWrapper
}

// Encryption is the pattern: it encrypts properties of the entities of the one Repository that it is given to.
type Encryption[T any] struct {
	hidden
	name       string
	registry   *Registry
	options    Options
	repository driver.Binding[T]
}

// New makes the pattern. Properties are encrypted whose field has the tag
//
//	Number string `encrypt:"true"`
//
// and those that Options.Resolver chooses. With `encrypt:"sign"`, and by Options.Sign, properties are signed only. It makes no
// request.
func New[T any](name string, registry *Registry, options *Options) *Encryption[T] {
	if options == nil {
		options = &Options{}
	}
	e := &Encryption[T]{name: name, registry: registry, options: *options}
	e.options.Plain = slices.Clone(options.Plain)
	return e
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (e *Encryption[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	c, err := e.cipherOf(host)
	return driver.Implementation[T]{Name: e.name, Binding: &e.repository, Pattern: c,
		Fits: func(all []driver.Implementation[T]) error {
			for _, p := range all {
				c.sealed = append(c.sealed, p.Seals...)
			}
			slices.Sort(c.sealed)
			return fits(c, all)
		},
		Transform: &driver.Transform[T]{Stage: driver.StageEncrypt, Load: c.load, Filterable: c.filterable, RefusesMerge: errMerge, Protects: c.protects,
			Store: func(ctx context.Context, change *driver.Change[T], p tables.Properties) (tables.Properties, error) {
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
	table    string
	tagged   []string // properties to encrypt, sorted
	signed   []string // properties to sign, sorted
	sealed   []string // those that other patterns have added, sorted
}

// cipherOf makes the rowCipher of a repository, and refuses a type that does not fit.
func (e *Encryption[T]) cipherOf(host driver.Host[T]) (*rowCipher, error) {
	c := &rowCipher{registry: e.registry, options: e.options, table: host.Table().Name()}
	switch {
	case e.registry == nil || e.registry.state == nil:
		return c, errors.New("the encryption has no registry of data keys")
	case e.options.Padding < 0 || e.options.Padding > maxPadding:
		return c, fmt.Errorf("a padding of %d; it is at most %d", e.options.Padding, maxPadding)
	}
	entity := reflect.TypeFor[T]()
	all, err := taggedProperties(entity)
	if err != nil {
		return c, err
	}
	c.tagged, c.signed = all[tagEncrypt], all[tagSign]
	if err := c.checkNames(host.PropertyNames(), entity); err != nil {
		return c, err
	}
	if len(c.tagged)+len(c.signed) == 0 && e.options.Resolver == nil && e.options.Sign == nil {
		return c, fmt.Errorf("no property is to be encrypted: no field of %s has the tag, and there is no resolver", entity)
	}
	return c, nil
}

// checkNames refuses tags and names that do not fit the type, whose properties are known, nil for any.
func (c *rowCipher) checkNames(known []string, entity reflect.Type) error {
	for _, name := range slices.Concat(c.tagged, c.signed) {
		if known != nil && !slices.Contains(known, name) {
			return fmt.Errorf("property %s has the tag, and %s does not store it", name, entity)
		}
		if slices.Contains(c.options.Plain, name) && slices.Contains(c.tagged, name) {
			return fmt.Errorf("property %s has the tag, and is to be plain", name)
		}
	}
	for _, name := range known {
		if isOurs(name) {
			return fmt.Errorf("property name %s is not for entities", name)
		}
	}
	return nil
}

// fits refuses a second encryption, and properties that another pattern takes out of the row before they can be encrypted.
func fits[T any](c *rowCipher, all []driver.Implementation[T]) error {
	var names []string
	for _, p := range all {
		if other, ok := p.Pattern.(*rowCipher); ok && other != c {
			return fmt.Errorf("%q encrypts properties of the same entities, and an entity has one seal", p.Name)
		}
	}
	codec, err := tables.NewCodec[T]()
	if err != nil {
		return err
	}
	names = append(slices.Clone(c.tagged), codec.PropertyNames()...)
	for _, p := range all {
		if p.Transform == nil || p.Transform.Stage != driver.StageSpill || p.Transform.Filterable == nil {
			continue
		}
		for _, name := range append(names, p.Name) { // of a property that nobody lists, it may be called by
			chosen := slices.Contains(c.tagged, name) || c.options.Resolver != nil && !slices.Contains(c.options.Plain, name)
			if chosen && !p.Transform.Filterable(name) {
				return fmt.Errorf("property %s is to be encrypted, and pattern %q stores it elsewhere, in clear", name, p.Name)
			}
		}
	}
	return nil
}

// maxPadding keeps a padded value within a property.
const maxPadding = 4096

// isOurs reports whether a name is one of the encryption's own properties, of this one or the legacy one.
func isOurs(name string) bool {
	return name == SealProperty || name == legacyMetadata || name == legacyNames
}

// declared reports whether a property is to be encrypted.
func (c *rowCipher) declared(key tables.Key, property string) bool {
	if slices.Contains(c.tagged, property) {
		return true
	}
	return c.options.Resolver != nil && !slices.Contains(c.options.Plain, property) && c.options.Resolver(key.Partition, key.Row, property)
}

// signs reports whether a property that is not encrypted is to be signed.
func (c *rowCipher) signs(key tables.Key, property string) bool {
	if slices.Contains(c.signed, property) || slices.Contains(c.sealed, property) {
		return true
	}
	return c.options.Sign != nil && c.options.Sign(key.Partition, key.Row, property)
}

// place is what the values of an entity are bound to. Names of tables do not differ by case.
func (c *rowCipher) place(ctx context.Context, key tables.Key) (place, error) {
	at := place{scope: c.options.Scope, table: strings.ToLower(c.table), partition: key.Partition, row: key.Row}
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

// filterable reports whether rows hold a property as it is.
func (c *rowCipher) filterable(property string) bool {
	if isOurs(property) || slices.Contains(c.tagged, property) {
		return false
	}
	return c.options.Resolver == nil || slices.Contains(c.options.Plain, property)
}

// protects returns how a property is protected.
func (c *rowCipher) protects(entity tables.Key, property string) driver.Protection {
	switch {
	case c.declared(entity, property):
		return driver.Encrypted
	case c.signs(entity, property):
		return driver.Signed
	}
	return driver.Unprotected
}
