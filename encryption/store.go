package encryption

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns"
)

// Store implements patterns.PropertyTransformer: it encrypts what is declared, under keys of this write alone, and adds the
// seal. A dry run makes no request and uses a key that is thrown away; what it returns has the right size.
func (e *Encryption) Store(ctx context.Context, change *patterns.Change, p patterns.Properties) (patterns.Properties, error) {
	if change.Kind == patterns.ChangeMerge {
		return nil, errMerge
	}
	var names []string
	for i := range p {
		switch encoded, binary := p[i].Value.Bytes(); {
		case isOurs(p[i].Name):
			return nil, invalidf("Store", "property name %s is not for entities", p[i].Name)
		case e.declared(change.Key, p[i].Name) && !p[i].Value.IsNull():
			names = append(names, p[i].Name)
		case binary && looksEncrypted(encoded):
			return nil, invalidf("Store", "property %s is not to be encrypted and begins as an encrypted value does", p[i].Name)
		}
	}
	slices.Sort(names)
	id, key, err := e.writeKey(ctx, change.DryRun)
	if err != nil {
		return nil, err
	}
	return e.seal(p, names, change.Key, id, key)
}

func (e *Encryption) writeKey(ctx context.Context, dryRun bool) (id DataKeyID, key []byte, err error) {
	if dryRun {
		key = make([]byte, keySize)
		rand.Read(key)
		return id, key, nil
	}
	return e.registry.state.writeKey(ctx)
}

// seal encrypts the named properties, which are sorted, and adds the seal.
func (e *Encryption) seal(p patterns.Properties, names []string, entity patterns.Key, id DataKeyID, key []byte) (patterns.Properties, error) {
	o, keys, err := newWrite(key, domainValue, id)
	if err != nil {
		return nil, err
	}
	at := e.place(entity)
	context := at.context(domainValue)
	out := make(patterns.Properties, 0, len(p)+1)
	for _, property := range p {
		if index, encrypted := slices.BinarySearch(names, property.Name); encrypted {
			property.Value = patterns.Binary(keys.seal(o, context, property.Name, index, property.Value, e.options.Padding))
		}
		out = append(out, property)
	}
	return append(out, patterns.Property{Name: SealProperty, Value: patterns.Binary(keys.appendSeal(o, at, names))}), nil
}
