package encryption

import (
	"context"
	"crypto/subtle"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// load reverses store. It returns ErrNotAuthentic for anything that store did not write. In a partial read, load cannot distinguish a
// property that was not read from one that somebody removed; it checks each value that was read.
func (c *rowCipher) load(ctx context.Context, of driver.Reading, p tables.Properties) (tables.Properties, error) {
	key := of.Key
	switch {
	case p.Has(SealProperty):
		return c.loadSealed(ctx, key, p, of.Partial)
	case c.options.Legacy != nil && p.Has(legacyMetadata):
		return c.loadLegacy(ctx, key, p)
	case of.Partial:
		return c.loadProjected(ctx, key, p)
	case c.options.AcceptPlaintext && !slices.ContainsFunc(p, isEncrypted):
		return p, nil
	}
	return nil, ErrNotAuthentic
}

func isEncrypted(p tables.Property) bool {
	b, binary := p.Value.Bytes()
	return binary && hasHeader(b)
}

// row decrypts one row. It always does all the work, so that its time does not tell which check failed.
type row struct {
	e       *rowCipher
	key     tables.Key
	at      place
	context []byte
	keys    *writeKeys
	origin  origin
	genuine bool // no check has failed so far
}

// begin fetches the keys of a row. A missing key counts as tampering.
func (c *rowCipher) begin(ctx context.Context, key tables.Key, o origin, genuine bool) (*row, error) {
	at, err := c.place(ctx, key)
	if err != nil {
		return nil, err
	}
	genuine = genuine && (o.version != version1 || c.acceptsVersion1())
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
	keys, err := derive(dataKey, domainValue(o.version), o.key, &o.salt)
	if err != nil {
		return nil, err
	}
	return &row{e: c, key: key, at: at, context: at.context(domainValue(o.version), o.version), keys: keys, origin: o, genuine: genuine}, nil
}

// acceptsVersion1 reports whether rows of version 1 are accepted. Rows of version 1 bind no Context and sign
// nothing.
func (c *rowCipher) acceptsVersion1() bool {
	return !c.options.RefuseVersion1 && (c.options.Context == nil || c.options.AcceptPlaintext)
}

// open decrypts a property; index is its position among the encrypted properties; with -1, the index in its
// header counts.
func (r *row) open(p tables.Property, index int) tables.Property {
	stored, _ := p.Value.Bytes()
	h, _, ok := parseHeader(stored, kindValue)
	v, opened := r.keys.open(h, r.context, p.Name, stored)
	r.genuine = r.genuine && ok && opened && h.origin == r.origin && (index < 0 || int(h.index) == index)
	return tables.Property{Name: p.Name, Value: v}
}

// plain copies a property that is neither encrypted nor signed.
func (r *row) plain(p tables.Property) tables.Property {
	undeclared := r.e.options.AcceptPlaintext || !r.e.declared(r.key, p.Name) && !r.mustBeSigned(p.Name)
	r.genuine = r.genuine && undeclared && !isEncrypted(p) && !isOurs(p.Name)
	return p
}

// mustBeSigned reports whether a property that the row's seal does not sign should have been signed. Version 1 signed
// nothing, so there the properties that other patterns add are accepted unsigned.
func (r *row) mustBeSigned(name string) bool {
	if r.origin.version != version2 && slices.Contains(r.e.sealed, name) {
		return false
	}
	return r.e.signs(r.key, name)
}

// signedAs checks a property against its entry in the seal.
func (r *row) signedAs(p tables.Property, s signedValue) tables.Property {
	code := r.keys.signedDigest(p.Name, p.Value)
	r.genuine = r.genuine && subtle.ConstantTimeCompare(code[:], s.code[:]) == 1
	return p
}

// loadSealed decrypts and checks the properties that the seal names.
func (c *rowCipher) loadSealed(ctx context.Context, key tables.Key, p tables.Properties, partial bool) (tables.Properties, error) {
	stored, _ := p.Get(SealProperty).Bytes()
	s, ok := parseSeal(stored)
	r, err := c.begin(ctx, key, s.origin, ok)
	if err != nil {
		return nil, err
	}
	verified := r.keys.verifies(&s, r.at)
	r.genuine = r.genuine && verified
	out := make(tables.Properties, 0, len(p))
	found := 0
	for _, property := range p {
		if property.Name == SealProperty {
			continue
		}
		index, named := slices.BinarySearch(s.names, property.Name)
		signed := s.signedIndex(property.Name)
		switch {
		case named:
			found++
			out = append(out, r.open(property, index))
		case signed >= 0:
			found++
			out = append(out, r.signedAs(property, s.signed[signed]))
		case isEncrypted(property): // decrypt it anyway, so that a read of a row with an invalid list of names takes the same time
			r.open(property, -1)
			r.genuine = false
		default:
			out = append(out, r.plain(property))
		}
	}
	if !r.genuine || found != len(s.names)+len(s.signed) && !partial {
		return nil, ErrNotAuthentic
	}
	return out, nil
}

// loadProjected decrypts a row that was read without its seal, which happens only with version 1; all its values must be of one write.
// Reads of version 2 always include the seal.
func (c *rowCipher) loadProjected(ctx context.Context, key tables.Key, p tables.Properties) (tables.Properties, error) {
	if !c.acceptsVersion1() && !c.options.AcceptPlaintext {
		return nil, ErrNotAuthentic
	}
	first := slices.IndexFunc(p, isEncrypted)
	if first < 0 {
		r := &row{e: c, key: key, genuine: true}
		for _, property := range p {
			r.plain(property)
		}
		if !r.genuine {
			return nil, ErrNotAuthentic
		}
		return p, nil
	}
	stored, _ := p[first].Value.Bytes()
	h, _, ok := parseHeader(stored, kindValue)
	r, err := c.begin(ctx, key, h.origin, ok && h.version == version1)
	if err != nil {
		return nil, err
	}
	out := make(tables.Properties, 0, len(p))
	for _, property := range p {
		if isEncrypted(property) {
			out = append(out, r.open(property, -1))
		} else {
			out = append(out, r.plain(property))
		}
	}
	if !r.genuine {
		return nil, ErrNotAuthentic
	}
	return out, nil
}

// provesCopy reports whether the seal proves that the row held a copy of the entity at its last write. A copy in another
// row may belong to an index that was attached later.
func (c *rowCipher) provesCopy(ctx context.Context, of driver.Reading, table *tables.Table, at tables.Key, p tables.Properties) (bool, error) {
	stored, _ := p.Get(SealProperty).Bytes()
	s, ok := parseSeal(stored)
	if !ok || s.version == version1 {
		return false, nil
	}
	r, err := c.begin(ctx, of.Key, s.origin, ok)
	if err != nil {
		return false, err
	}
	verified := r.keys.verifies(&s, r.at)
	return verified && r.genuine && slices.Contains(s.copies, r.keys.copyDigest(table.Name(), at)), nil
}
