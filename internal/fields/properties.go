package fields

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Encode returns the properties of the struct s.
func (p *Plan) Encode(s reflect.Value) (entity.Properties, error) {
	out := make(entity.Properties, 0, len(p.fields))
	for i := range p.fields {
		v, err := p.fields[i].encode(s)
		if err != nil {
			return nil, err
		}
		if !v.IsNull() {
			out = append(out, entity.Property{Name: p.fields[i].name, Value: entity.Value(v)})
		}
	}
	return p.encodeRest(s, nil, out)
}

// EncodeOnly returns the named properties of the struct s; its other fields may hold values that cannot be stored.
func (p *Plan) EncodeOnly(s reflect.Value, names []string) (out entity.Properties, err error) {
	for _, name := range names {
		i, known := p.byName[name]
		if !known {
			continue
		}
		v, err := p.fields[i].encode(s)
		if err != nil {
			return nil, err
		}
		if !v.IsNull() {
			out = append(out, entity.Property{Name: name, Value: entity.Value(v)})
		}
	}
	return p.encodeRest(s, names, out)
}

// EncodeMerge returns the named properties of the struct s, all if none is named, for a merge. A merge cannot remove a
// property from a row, so each of them must have a value.
func (p *Plan) EncodeMerge(s reflect.Value, names []string) (entity.Properties, error) {
	if len(names) == 0 {
		names = p.stored(s)
	} else {
		names = slices.Compact(slices.Sorted(slices.Values(names)))
	}
	out, err := p.EncodeOnly(s, names)
	if err != nil || len(out) == len(names) {
		return out, err
	}
	for _, name := range names {
		if !out.Has(name) {
			return nil, NoValue(name)
		}
	}
	return out, nil
}

// NoValue is the error of a merge of a property that has no value.
func NoValue(property string) error {
	return fmt.Errorf("property %s has no value, and a merge cannot remove a property from the stored row; name only properties that have a value, or use Replace", property)
}

// stored returns the names of all properties of the struct s, with those in the map that is tagged "rest".
func (p *Plan) stored(s reflect.Value) []string {
	names := make([]string, 0, len(p.fields))
	for i := range p.fields {
		names = append(names, p.fields[i].name)
	}
	if p.rest == nil {
		return names
	}
	if rest, ok := at(s, p.rest, false); ok {
		for _, key := range rest.MapKeys() {
			names = append(names, key.String())
		}
	}
	return names
}

// encode returns the value of one field of the struct s, null if s has no value to store.
func (f *field) encode(s reflect.Value) (edm.Value, error) {
	v, ok := at(s, f.index, false)
	if !ok || f.omitEmpty && isEmpty(v) || f.omitZero && isZero(v) {
		return edm.Value{}, nil
	}
	if f.pointer {
		if v.IsNil() {
			return edm.Value{}, nil
		}
		v = v.Elem()
	}
	value, err := f.conversion.store(v)
	if err == nil && f.readsBack {
		if unreadable := f.conversion.load(reflect.New(v.Type()).Elem(), value); unreadable != nil {
			err = fmt.Errorf("the text that the value encodes to could not be read back: %w; correct the value or the conversion, or, if the zero value means none, tag the field omitzero", unreadable)
		}
	}
	if err != nil {
		return edm.Value{}, fmt.Errorf("property %s: %w", f.name, err)
	}
	return value, nil
}

// encodeRest appends the properties of the field that is tagged "rest"; if names is not nil, only those in names.
func (p *Plan) encodeRest(s reflect.Value, names []string, out entity.Properties) (entity.Properties, error) {
	if p.rest == nil {
		return out, nil
	}
	rest, ok := at(s, p.rest, false)
	if !ok {
		return out, nil
	}
	keys := rest.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		name := key.String()
		if _, known := p.byName[name]; known {
			return nil, fmt.Errorf("property %s is in the map tagged \"rest\", but %s has a field of this name; remove it from the map", name, p.Type)
		}
		v := rest.MapIndex(key).Interface().(entity.Value)
		if !v.IsNull() && (names == nil || slices.Contains(names, name)) {
			out = append(out, entity.Property{Name: name, Value: v})
		}
	}
	return out, nil
}

// Decode sets each field of the struct s from the property of the same name.
func (p *Plan) Decode(properties entity.Properties, s reflect.Value) error {
	next := 0 // properties are usually in the order of the fields, which saves a search
	for i := range properties {
		name, value := properties[i].Name, properties[i].Value
		n, known := next, true
		if n >= len(p.fields) || p.fields[n].name != name {
			n, known = p.byName[name]
		}
		next = n + 1
		if !known {
			p.decodeRest(s, name, reflect.ValueOf(value))
			continue
		}
		f := &p.fields[n]
		v, _ := at(s, f.index, true)
		if f.pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		if err := f.conversion.load(v, edm.Value(value)); err != nil {
			return fmt.Errorf("property %s is stored as %s, but %w; change the type of the field, or the stored property", name, value.Type(), err)
		}
	}
	return nil
}

// decodeRest puts a property without a field of its own into the field that is tagged "rest", if there is one.
func (p *Plan) decodeRest(s reflect.Value, name string, value reflect.Value) {
	if p.rest == nil {
		return
	}
	rest, _ := at(s, p.rest, true)
	if rest.IsNil() {
		rest.Set(reflect.MakeMap(rest.Type()))
	}
	rest.SetMapIndex(reflect.ValueOf(name), value)
}
