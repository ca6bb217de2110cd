package encryption

import (
	"context"
	"errors"
	"fmt"
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
	// driver.SealedContributor stores, such as type and version of package heterogeneous, is always signed.
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
type Encryption struct {
	hidden
	name     string
	registry *Registry
	options  Options
	host     driver.Host
	tagged   []string // properties to encrypt, sorted
	signed   []string // properties to sign, sorted
	sealed   []string // those that other patterns have added, sorted
}

// New makes the pattern. Properties are encrypted whose field has the tag
//
//	Number string `encrypt:"true"`
//
// and those that Options.Resolver chooses. With `encrypt:"sign"`, and by Options.Sign, properties are signed only. It makes no
// request.
func New(name string, registry *Registry, o *Options) *Encryption {
	if o == nil {
		o = &Options{}
	}
	e := &Encryption{name: name, registry: registry, options: *o}
	e.options.Plain = slices.Clone(o.Plain)
	return e
}

// PatternName implements driver.Pattern.
func (e *Encryption) PatternName() string { return e.name }

// Attach implements driver.Pattern; NewRepository calls it.
func (e *Encryption) Attach(host driver.Host) error {
	if host == nil {
		e.host, e.tagged, e.signed, e.sealed = nil, nil, nil, nil
		return nil
	}
	switch {
	case e.host != nil:
		return fmt.Errorf("the encryption belongs to a repository on table %s already", e.host.Table().Name())
	case e.registry == nil || e.registry.state == nil:
		return errors.New("the encryption has no registry of data keys")
	case e.options.Padding < 0 || e.options.Padding > maxPadding:
		return fmt.Errorf("a padding of %d; it is at most %d", e.options.Padding, maxPadding)
	}
	all, err := taggedProperties(host.EntityType())
	if err != nil {
		return err
	}
	tagged, signed := all[tagEncrypt], all[tagSign]
	if err := e.checkNames(host, tagged, signed); err != nil {
		return err
	}
	if len(tagged)+len(signed) == 0 && e.options.Resolver == nil && e.options.Sign == nil {
		return fmt.Errorf("no property is to be encrypted: no field of %s has the tag, and there is no resolver", host.EntityType())
	}
	e.host, e.tagged, e.signed = host, tagged, signed
	for _, p := range patternsOf(host) {
		if x, ok := p.(driver.SealedContributor); ok {
			e.sealed = append(e.sealed, x.SealedProperties()...)
		}
	}
	slices.Sort(e.sealed)
	return nil
}

// checkNames refuses tags and names that do not fit the type, and patterns that do not fit the encryption.
func (e *Encryption) checkNames(host driver.Host, tagged, signed []string) error {
	known := host.PropertyNames()
	for _, name := range slices.Concat(tagged, signed) {
		if known != nil && !slices.Contains(known, name) {
			return fmt.Errorf("property %s has the tag, and %s does not store it", name, host.EntityType())
		}
		if slices.Contains(e.options.Plain, name) && slices.Contains(tagged, name) {
			return fmt.Errorf("property %s has the tag, and is to be plain", name)
		}
	}
	for _, name := range known {
		if isOurs(name) {
			return fmt.Errorf("property name %s is not for entities", name)
		}
	}
	for _, p := range patternsOf(host) {
		if other, ok := p.(*Encryption); ok && other != e {
			return fmt.Errorf("%q encrypts properties of the same entities, and an entity has one seal", other.name)
		}
	}
	return e.refuseSpilled(host, append(slices.Clone(tagged), known...), tagged)
}

// refuseSpilled refuses properties that another pattern takes out of the row before they can be encrypted.
func (e *Encryption) refuseSpilled(host driver.Host, names, tagged []string) error {
	for _, p := range patternsOf(host) {
		t, ok := p.(driver.PropertyTransformer)
		if !ok || t.Stage() != driver.StageSpill {
			continue
		}
		for _, name := range append(names, p.PatternName()) { // of a property that nobody lists, it may be called by
			chosen := slices.Contains(tagged, name) || e.options.Resolver != nil && !slices.Contains(e.options.Plain, name)
			if chosen && !t.Filterable(name) {
				return fmt.Errorf("property %s is to be encrypted, and pattern %q stores it elsewhere, in clear", name, p.PatternName())
			}
		}
	}
	return nil
}

// patternsOf are all patterns of the repository, those too that are attached later.
func patternsOf(host driver.Host) []driver.Pattern {
	if r, ok := host.(interface{ Patterns() []driver.Pattern }); ok {
		return r.Patterns()
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
func (e *Encryption) declared(key tables.Key, property string) bool {
	if slices.Contains(e.tagged, property) {
		return true
	}
	return e.options.Resolver != nil && !slices.Contains(e.options.Plain, property) && e.options.Resolver(key.Partition, key.Row, property)
}

// signs reports whether a property that is not encrypted is to be signed.
func (e *Encryption) signs(key tables.Key, property string) bool {
	if slices.Contains(e.signed, property) || slices.Contains(e.sealed, property) {
		return true
	}
	return e.options.Sign != nil && e.options.Sign(key.Partition, key.Row, property)
}

// place is what the values of an entity are bound to. Names of tables do not differ by case.
func (e *Encryption) place(ctx context.Context, key tables.Key) (place, error) {
	at := place{scope: e.options.Scope, table: strings.ToLower(e.host.Table().Name()), partition: key.Partition, row: key.Row}
	if e.options.Context == nil {
		return at, nil
	}
	pairs, err := e.options.Context(ctx, key)
	if err != nil {
		return at, &tables.Error{Op: "Context", Kind: tables.ErrInvalid, Err: err}
	}
	at.required = encodeContext(pairs)
	return at, nil
}

// Stage implements driver.PropertyTransformer.
func (e *Encryption) Stage() driver.Stage { return driver.StageEncrypt }

// RefusesMerge implements driver.PropertyTransformer, with the guide's reason.
func (e *Encryption) RefusesMerge() error { return errMerge }

// Filterable implements driver.PropertyTransformer.
func (e *Encryption) Filterable(property string) bool {
	if isOurs(property) || slices.Contains(e.tagged, property) {
		return false
	}
	return e.options.Resolver == nil || slices.Contains(e.options.Plain, property)
}

// Protects implements driver.PropertyProtector.
func (e *Encryption) Protects(entity tables.Key, property string) driver.Protection {
	switch {
	case e.declared(entity, property):
		return driver.Encrypted
	case e.signs(entity, property):
		return driver.Signed
	}
	return driver.Unprotected
}

// SealProperties implements driver.CopyAuthenticator.
func (e *Encryption) SealProperties() []string { return []string{SealProperty} }

// NotAuthentic implements driver.CopyAuthenticator.
func (e *Encryption) NotAuthentic() error { return ErrNotAuthentic }

var (
	_ driver.CopyAuthenticator = (*Encryption)(nil)
	_ driver.PropertyProtector = (*Encryption)(nil)
)
