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

// store encrypts the declared properties of an entity under keys that only this write uses, and adds the
// seal, which lists the entity's copies. A dry run makes no request and uses a temporary key; its result has
// the right size.
func (c *rowCipher) store(ctx context.Context, entity tables.Key, copies []copyPlace, dryRun bool, p tables.Properties) (tables.Properties, error) {
	var held contents
	for i := range p {
		switch encoded, binary := p[i].Value.Bytes(); {
		case isOurs(p[i].Name):
			return nil, tables.Invalidf("Store", "property name %s is reserved for the encryption; choose another name", p[i].Name)
		case c.declared(entity, p[i].Name) && !p[i].Value.IsNull():
			held.names = append(held.names, p[i].Name)
		case binary && hasHeader(encoded):
			return nil, tables.Invalidf("Store", "property %s is not to be encrypted, but its value begins like an encrypted one and would be read as such; encrypt the property or change the value", p[i].Name)
		}
	}
	slices.Sort(held.names)
	at, err := c.place(ctx, entity)
	if err != nil {
		return nil, err
	}
	id, key, err := c.writeKey(ctx, dryRun)
	if err != nil {
		return nil, err
	}
	o, keys, err := newWrite(key, domainValue(version2), version2, id)
	if err != nil {
		return nil, err
	}
	for _, copied := range copies {
		held.copies = append(held.copies, keys.copyDigest(copied.table, copied.key))
	}
	slices.SortFunc(held.copies, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	return c.seal(p, &held, at, o, keys), nil
}

// copyPlace is the location of a copy of an entity.
type copyPlace struct {
	table string
	key   tables.Key
}

// copiesOf lists the rows that hold copies of the entity. If a key function refuses the entity, it returns no
// copies, because the repository then refuses the whole change.
func copiesOf[T any](host driver.Host[T], change *driver.Change[T]) (copies []copyPlace) {
	if change.Entity == nil {
		return nil
	}
	own := host.Table().Name()
	for _, p := range host.Patterns() {
		if p.Copies != nil {
			made, err := p.Copies(change.Entity)
			for i := range made {
				if err == nil {
					copies = append(copies, copyPlace{own, tables.Key{Partition: change.Key.Partition, Row: made[i].RowKey}})
				}
			}
		}
		if p.Outside != nil {
			table := own
			if p.Outside.Table != nil {
				table = p.Outside.Table.Name()
			}
			made, err := p.Outside.Copies(change.Entity)
			for i := range made {
				if err == nil {
					copies = append(copies, copyPlace{table, made[i].Key})
				}
			}
		}
	}
	return copies
}

func (c *rowCipher) writeKey(ctx context.Context, dryRun bool) (id DataKeyID, key []byte, err error) {
	if dryRun {
		key = make([]byte, keySize)
		rand.Read(key)
		return id, key, nil
	}
	return c.registry.state.writeKey(ctx)
}

// seal encrypts the named properties, which are sorted, signs the properties declared as signed, and adds the seal.
func (c *rowCipher) seal(p tables.Properties, held *contents, at place, o origin, keys *writeKeys) tables.Properties {
	required := at.context(domainValue(o.version), o.version)
	entity := tables.Key{Partition: at.partition, Row: at.row}
	out := make(tables.Properties, 0, len(p)+1)
	for _, property := range p {
		if index, encrypted := slices.BinarySearch(held.names, property.Name); encrypted {
			property.Value = tables.Binary(keys.seal(o, required, property.Name, index, property.Value, c.options.Padding))
		} else if !property.Value.IsNull() && c.signs(entity, property.Name) {
			held.signed = append(held.signed, signedValue{property.Name, keys.signedDigest(property.Name, property.Value)})
		}
		out = append(out, property)
	}
	slices.SortFunc(held.signed, func(a, b signedValue) int { return strings.Compare(a.name, b.name) })
	return append(out, tables.Property{Name: SealProperty, Value: tables.Binary(keys.appendSeal(o, at, held))})
}
