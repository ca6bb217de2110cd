package encryption

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// store encrypts the declared properties under keys of this write, and adds the seal. A dry run needs only the size: it makes no request and uses a
// random data key.
func (c *rowCipher) store(ctx context.Context, entity tables.Key, copies []location, dryRun bool, p tables.Properties) (tables.Properties, error) {
	var held contents
	for i := range p {
		switch encoded, binary := p[i].Value.Bytes(); {
		case isOurs(p[i].Name):
			return nil, errs.Invalidf("Store", "property name %s is reserved for the encryption; choose another name", p[i].Name)
		case c.declared(entity, p[i].Name) && !p[i].Value.IsNull():
			held.names = append(held.names, p[i].Name)
		case binary && hasHeader(encoded):
			return nil, errs.Invalidf("Store", "property %s is not to be encrypted, but its value begins like an encrypted one and would be read as such; encrypt the property or change the value", p[i].Name)
		}
	}
	slices.Sort(held.names)
	at, err := c.place(ctx, entity)
	if err != nil {
		return nil, err
	}
	var id DataKeyID
	key := randomKey()
	if !dryRun {
		if id, key, err = c.registry.state.writeKey(ctx); err != nil {
			return nil, err
		}
	}
	o, keys, err := newWrite(key, domainValue, id)
	if err != nil {
		return nil, err
	}
	for _, copied := range copies {
		held.copies = append(held.copies, keys.copyDigest(copied))
	}
	slices.SortFunc(held.copies, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	return c.seal(p, &held, at, o, keys), nil
}

// copiesOf lists the rows with copies of the entity. It ignores a key function that refuses the entity: the repository then refuses the change.
func copiesOf(host driver.Host, change *driver.Change) (copies []location) {
	if change.Entity == nil {
		return nil
	}
	own := host.Table()
	for _, p := range host.Patterns() {
		if p.Copies != nil {
			made, err := p.Copies(change.Entity)
			for i := range made {
				if err == nil {
					copies = append(copies, locationOf(own, tables.Key{Partition: change.Key.Partition, Row: made[i].RowKey}))
				}
			}
		}
		if p.Outside != nil {
			table := cmp.Or(p.Outside.Table, own)
			made, err := p.Outside.Copies(change.Entity)
			for i := range made {
				if err == nil {
					copies = append(copies, locationOf(table, made[i].Key))
				}
			}
		}
	}
	return copies
}

func (c *rowCipher) seal(p tables.Properties, held *contents, at place, o origin, keys *writeKeys) tables.Properties {
	bound := at.context(domainValue)
	out := make(tables.Properties, 0, len(p)+1)
	for _, property := range p {
		if _, encrypted := slices.BinarySearch(held.names, property.Name); encrypted {
			property.Value = tables.Binary(keys.seal(o, bound, property.Name, property.Value, c.options.Padding))
		} else if !property.Value.IsNull() && !c.unsigned(property.Name) {
			held.signed = append(held.signed, signedValue{property.Name, keys.signedDigest(property.Name, property.Value)})
		}
		out = append(out, property)
	}
	slices.SortFunc(held.signed, func(a, b signedValue) int { return strings.Compare(a.name, b.name) })
	return append(out, tables.Property{Name: SealProperty, Value: tables.Binary(keys.appendSeal(o, at, held))})
}

// load reverses store, and returns ErrNotAuthentic for anything that store did not write. A partial read does not notice a value that somebody
// removed, but it asks for the seal, too.
func (c *rowCipher) load(ctx context.Context, of driver.Reading, p tables.Properties) (tables.Properties, error) {
	switch {
	case p.Has(SealProperty):
		return c.loadSealed(ctx, of.Key, p, of.Partial)
	case c.options.Legacy != nil && p.Has(legacyMetadata):
		return c.loadLegacy(ctx, of.Key, p)
	case c.options.AcceptPlaintext && !slices.ContainsFunc(p, func(property tables.Property) bool { return isEncrypted(property) || isOurs(property.Name) }):
		return p, nil
	}
	return nil, ErrNotAuthentic
}

func isEncrypted(p tables.Property) bool {
	b, binary := p.Value.Bytes()
	return binary && hasHeader(b)
}

// row decrypts one row, with all checks even if one fails, so that its time does not show which did.
type row struct {
	cipher  *rowCipher
	at      place
	context []byte
	keys    *writeKeys
	origin  origin
	genuine bool // no check has failed so far
}

// begin derives the keys of a row. Without the data key, the row is not genuine: an attacker may have changed the key's id.
func (c *rowCipher) begin(ctx context.Context, key tables.Key, o origin, genuine bool) (*row, error) {
	at, err := c.place(ctx, key)
	if err != nil {
		return nil, err
	}
	dataKey := make([]byte, keySize)
	if genuine {
		found, err := c.registry.state.dataKey(ctx, o.key)
		switch {
		case err == nil:
			dataKey = found
		case unreadable(err):
			genuine = false
		default:
			return nil, err
		}
	}
	keys, err := derive(dataKey, domainValue, o.key, &o.salt)
	if err != nil {
		return nil, err
	}
	return &row{cipher: c, at: at, context: at.context(domainValue), keys: keys, origin: o, genuine: genuine}, nil
}

func (r *row) open(p tables.Property) tables.Property {
	stored, _ := p.Value.Bytes()
	h, _, ok := parseHeader(stored, kindValue)
	v, opened := r.keys.open(h, r.context, p.Name, stored)
	r.genuine = r.genuine && ok && opened && h.origin == r.origin
	return tables.Property{Name: p.Name, Value: v}
}

// checkPlain checks a property that the seal does not name.
func (r *row) checkPlain(p tables.Property) {
	accepted := r.cipher.options.AcceptPlaintext || r.cipher.unsigned(p.Name)
	r.genuine = r.genuine && accepted && !isOurs(p.Name)
}

// loadSealed checks what the seal names. Options.Unsigned is the reader's: it also exempts a property that an earlier build has signed.
func (c *rowCipher) loadSealed(ctx context.Context, key tables.Key, p tables.Properties, partial bool) (tables.Properties, error) {
	stored, _ := p.Get(SealProperty).Bytes()
	s, ok := parseSeal(stored)
	r, err := c.begin(ctx, key, s.origin, ok)
	if err != nil {
		return nil, err
	}
	verified := r.keys.verifies(&s, r.at)
	r.genuine = r.genuine && verified
	s.signed = slices.DeleteFunc(s.signed, func(v signedValue) bool { return c.unsigned(v.name) })
	out := make(tables.Properties, 0, len(p))
	found := 0
	for _, property := range p {
		if property.Name == SealProperty {
			continue
		}
		_, named := slices.BinarySearch(s.names, property.Name)
		signed := s.signedIndex(property.Name)
		switch {
		case named:
			found++
			out = append(out, r.open(property))
		case signed >= 0:
			found++
			code := r.keys.signedDigest(property.Name, property.Value)
			equal := subtle.ConstantTimeCompare(code[:], s.signed[signed].code[:]) == 1
			r.genuine = r.genuine && equal
			out = append(out, property)
		case isEncrypted(property): // decrypt anyway, so that the time does not show that the list of names is wrong
			r.open(property)
			r.genuine = false
		default: // for the same reason
			r.keys.signedDigest(property.Name, property.Value)
			r.checkPlain(property)
			out = append(out, property)
		}
	}
	if !r.genuine || found != len(s.names)+len(s.signed) && !partial {
		return nil, ErrNotAuthentic
	}
	return out, nil
}

// provesCopy reports whether the seal proves a copy of the entity. Otherwise it may still be genuine, such as that of an index that was attached
// later.
func (c *rowCipher) provesCopy(ctx context.Context, of driver.Reading, table *tables.Table, at tables.Key, p tables.Properties) (bool, error) {
	stored, _ := p.Get(SealProperty).Bytes()
	s, ok := parseSeal(stored)
	if !ok {
		return false, nil
	}
	r, err := c.begin(ctx, of.Key, s.origin, ok)
	if err != nil {
		return false, err
	}
	verified := r.keys.verifies(&s, r.at)
	return verified && r.genuine && slices.Contains(s.copies, r.keys.copyDigest(locationOf(table, at))), nil
}
