package encryption

import (
	"bytes"
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Store implements driver.PropertyTransformer: it encrypts what is declared, under keys of this write alone, and adds the
// seal. A dry run makes no request and uses a key that is thrown away; what it returns has the right size.
func (e *Encryption) Store(ctx context.Context, change *driver.Change, p tables.Properties) (tables.Properties, error) {
	if change.Kind == driver.ChangeMerge {
		return nil, errMerge
	}
	var c contents
	for i := range p {
		switch encoded, binary := p[i].Value.Bytes(); {
		case isOurs(p[i].Name):
			return nil, invalidf("Store", "property name %s is not for entities", p[i].Name)
		case e.declared(change.Key, p[i].Name) && !p[i].Value.IsNull():
			c.names = append(c.names, p[i].Name)
		case binary && looksEncrypted(encoded):
			return nil, invalidf("Store", "property %s is not to be encrypted and begins as an encrypted value does", p[i].Name)
		}
	}
	slices.Sort(c.names)
	at, err := e.place(ctx, change.Key)
	if err != nil {
		return nil, err
	}
	id, key, err := e.writeKey(ctx, change.DryRun)
	if err != nil {
		return nil, err
	}
	o, keys, err := newWrite(key, domainValue(version2), version2, id)
	if err != nil {
		return nil, err
	}
	if change.Entity != nil {
		c.copies = e.copiesOf(change, keys)
	}
	return e.seal(p, &c, at, o, keys), nil
}

// copiesOf lists the rows that hold copies of the entity. Where a key function refuses the entity there are none: then the
// repository refuses the change.
func (e *Encryption) copiesOf(change *driver.Change, keys *writeKeys) (copies []digest) {
	for _, p := range patternsOf(e.host) {
		if x, ok := p.(driver.CopyContributor); ok {
			made, err := x.Copies(change.Entity)
			for i := range made {
				if err == nil {
					copies = append(copies, keys.copyDigest(e.host.Table().Name(), tables.Key{Partition: change.Key.Partition, Row: made[i].RowKey}))
				}
			}
		}
		if x, ok := p.(driver.OutsideCopyContributor); ok {
			made, err := x.OutsideCopies(change.Entity)
			for i := range made {
				if err == nil {
					copies = append(copies, keys.copyDigest(x.OutsideTable().Name(), made[i].Key))
				}
			}
		}
	}
	slices.SortFunc(copies, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	return copies
}

func (e *Encryption) writeKey(ctx context.Context, dryRun bool) (id DataKeyID, key []byte, err error) {
	if dryRun {
		key = make([]byte, keySize)
		rand.Read(key)
		return id, key, nil
	}
	return e.registry.state.writeKey(ctx)
}

// seal encrypts the named properties, which are sorted, signs those that are declared so, and adds the seal.
func (e *Encryption) seal(p tables.Properties, c *contents, at place, o origin, keys *writeKeys) tables.Properties {
	context := at.context(domainValue(o.version), o.version)
	entity := tables.Key{Partition: at.partition, Row: at.row}
	out := make(tables.Properties, 0, len(p)+1)
	for _, property := range p {
		if index, encrypted := slices.BinarySearch(c.names, property.Name); encrypted {
			property.Value = tables.Binary(keys.seal(o, context, property.Name, index, property.Value, e.options.Padding))
		} else if !property.Value.IsNull() && e.signs(entity, property.Name) {
			c.signed = append(c.signed, signedValue{property.Name, keys.signedDigest(property.Name, property.Value)})
		}
		out = append(out, property)
	}
	slices.SortFunc(c.signed, func(a, b signedValue) int { return strings.Compare(a.name, b.name) })
	return append(out, tables.Property{Name: SealProperty, Value: tables.Binary(keys.appendSeal(o, at, c))})
}
