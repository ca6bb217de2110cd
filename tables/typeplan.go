package tables

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// typePlan is what a Codec knows of a struct type.
type typePlan struct {
	typ                       reflect.Type
	fields                    []field
	byName                    map[string]int
	rest                      []int
	meta                      []int
	partition, row, timestamp []int
}

// field is one struct field that is stored as one property.
type field struct {
	name       string
	index      []int
	conversion conversion
	pointer    bool
	omitEmpty  bool
	omitZero   bool
}

func newTypePlan(t reflect.Type) (*typePlan, error) {
	p := &typePlan{typ: t, byName: map[string]int{}, meta: metaIndex(t)}
	for _, sf := range reflect.VisibleFields(t) {
		if err := p.add(sf); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, sf.Name, err)
		}
	}
	return p, nil
}

func (p *typePlan) add(sf reflect.StructField) error {
	tag, tagged := sf.Tag.Lookup("table")
	name, options, _ := strings.Cut(tag, ",")
	flattens := sf.Anonymous && !tagged && isFlattened(sf.Type)
	if tagged && name != "-" && !sf.Anonymous && !sf.IsExported() {
		return fmt.Errorf("its tag has no effect: a field that is not exported is not stored")
	}
	if name == "-" || sf.Type == metaType || flattens || p.below(sf.Index) || !sf.IsExported() {
		if flattens && sf.Type.Kind() == reflect.Pointer && !sf.IsExported() {
			return fmt.Errorf("an embedded pointer to an unexported type cannot be set on reading")
		}
		if flattens && !p.below(sf.Index) {
			return p.checkAmbiguous(sf.Type)
		}
		return nil
	}
	if name == "" {
		name = sf.Name
	}
	if done, err := p.addSystem(name, sf); done || err != nil {
		return err
	}
	f := field{name: name, index: sf.Index}
	asJSON := false
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.omitZero = true
		case "json":
			asJSON = true
		case "rest":
			return p.addRest(sf)
		default:
			return fmt.Errorf("unknown option %q in its tag", option)
		}
	}
	if err := edm.CheckName(name); err != nil {
		return err
	}
	if strings.HasPrefix(name, rows.Prefix) {
		return fmt.Errorf("property names with prefix %s are the library's", rows.Prefix)
	}
	if _, taken := p.byName[name]; taken {
		return fmt.Errorf("two fields are stored as %s", name)
	}
	var err error
	if f.conversion, f.pointer, err = conversionOf(sf.Type, asJSON); err != nil {
		return err
	}
	p.byName[name] = len(p.fields)
	p.fields = append(p.fields, f)
	return nil
}

// checkAmbiguous refuses a field that another embedded struct has at the same depth: Go promotes neither, and both
// would be left out without a word.
func (p *typePlan) checkAmbiguous(embedded reflect.Type) error {
	if embedded.Kind() == reflect.Pointer {
		embedded = embedded.Elem()
	}
	for i := range embedded.NumField() {
		sf := embedded.Field(i)
		if sf.Tag.Get("table") == "-" || !sf.IsExported() {
			continue
		}
		if _, found := p.typ.FieldByName(sf.Name); !found {
			return fmt.Errorf("%s is in two embedded structs, and neither goes first", sf.Name)
		}
	}
	return nil
}

func (p *typePlan) addSystem(name string, sf reflect.StructField) (done bool, err error) {
	var index *[]int
	switch name {
	case "PartitionKey", "RowKey":
		if sf.Type.Kind() != reflect.String {
			return true, fmt.Errorf("%s must be a string", name)
		}
		index = &p.partition
		if name == "RowKey" {
			index = &p.row
		}
	case "Timestamp":
		if sf.Type != reflect.TypeFor[time.Time]() {
			return true, fmt.Errorf("a Timestamp must be a time.Time")
		}
		index = &p.timestamp
	default:
		return false, nil
	}
	if *index != nil {
		return true, fmt.Errorf("two fields are the %s", name)
	}
	*index = sf.Index
	return true, nil
}

func (p *typePlan) addRest(sf reflect.StructField) error {
	if sf.Type != reflect.TypeFor[map[string]Value]() {
		return fmt.Errorf("the rest must be a map[string]tables.Value")
	}
	if p.rest != nil {
		return fmt.Errorf("there is a second rest")
	}
	p.rest = sf.Index
	return nil
}

// below reports whether the field is promoted out of something that is not flattened: a Meta, a field with a name
// of its own, a type that is stored whole.
func (p *typePlan) below(index []int) bool {
	t := p.typ
	for _, i := range index[:len(index)-1] {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		sf := t.Field(i)
		if _, tagged := sf.Tag.Lookup("table"); tagged || sf.Type == metaType || !isFlattened(sf.Type) {
			return true
		}
		t = sf.Type
	}
	return false
}

// isFlattened reports whether an embedded field of this type gives its fields away instead of being one property.
func isFlattened(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == metaType {
		return false
	}
	_, _, err := conversionOf(t, false)
	return err != nil
}

// encode returns the properties of a struct.
func (p *typePlan) encode(s reflect.Value) (Properties, error) {
	out := make(Properties, 0, len(p.fields))
	for i := range p.fields {
		var err error
		if out, err = p.fields[i].encode(s, out); err != nil {
			return nil, err
		}
	}
	if p.rest != nil {
		return p.encodeRest(s, out)
	}
	return out, nil
}

// encodeOnly returns the properties of a struct that are named.
func (p *typePlan) encodeOnly(s reflect.Value, names []string) (out Properties, err error) {
	for _, name := range names {
		if i, known := p.byName[name]; known {
			if out, err = p.fields[i].encode(s, out); err != nil {
				return nil, err
			}
		}
	}
	if p.rest == nil {
		return out, nil
	}
	if out, err = p.encodeRest(s, out); err != nil {
		return nil, err
	}
	return out.Only(names), nil
}

// encode appends the property of one field, if the struct s has it.
func (f *field) encode(s reflect.Value, out Properties) (Properties, error) {
	v, ok := fieldAt(s, f.index, false)
	if !ok || f.omitEmpty && isEmpty(v) || f.omitZero && isZero(v) {
		return out, nil
	}
	if f.pointer {
		if v.IsNil() {
			return out, nil
		}
		v = v.Elem()
	}
	value, err := f.conversion.store(v)
	if err != nil {
		return nil, fmt.Errorf("property %s: %w", f.name, err)
	}
	if !value.IsNull() {
		out = append(out, Property{Name: f.name, Value: value})
	}
	return out, nil
}

func (p *typePlan) encodeRest(s reflect.Value, out Properties) (Properties, error) {
	v, ok := fieldAt(s, p.rest, false)
	if !ok {
		return out, nil
	}
	for _, name := range sortedNames(v.Interface().(map[string]Value)) {
		if _, known := p.byName[name]; known {
			return nil, fmt.Errorf("property %s is in the rest and has a field of its own", name)
		}
		value := v.Interface().(map[string]Value)[name]
		if !value.IsNull() {
			out = append(out, Property{Name: name, Value: value})
		}
	}
	return out, nil
}

// decode sets the fields of a struct.
func (p *typePlan) decode(properties Properties, s reflect.Value) error {
	next := 0 // properties mostly come in the order of the fields, which saves the search
	for i := range properties {
		name, value := properties[i].Name, properties[i].Value
		n, known := next, true
		if n >= len(p.fields) || p.fields[n].name != name {
			n, known = p.byName[name]
		}
		next = n + 1
		if !known {
			if p.rest != nil {
				p.decodeRest(s, name, value)
			}
			continue
		}
		f := &p.fields[n]
		v, _ := fieldAt(s, f.index, true)
		if f.pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		if err := f.conversion.load(v, value); err != nil {
			return fmt.Errorf("property %s, stored as %s: %w", name, value.Type(), err)
		}
	}
	return nil
}

func (p *typePlan) decodeRest(s reflect.Value, name string, value Value) {
	v, _ := fieldAt(s, p.rest, true)
	rest := v.Interface().(map[string]Value)
	if rest == nil {
		rest = map[string]Value{}
		v.Set(reflect.ValueOf(rest))
	}
	rest[name] = value
}

// fieldAt is FieldByIndex through embedded pointers, which it makes when asked to.
func fieldAt(s reflect.Value, index []int, make bool) (reflect.Value, bool) {
	for i, n := range index {
		if i > 0 && s.Kind() == reflect.Pointer {
			if s.IsNil() {
				if !make {
					return reflect.Value{}, false
				}
				s.Set(reflect.New(s.Type().Elem()))
			}
			s = s.Elem()
		}
		s = s.Field(n)
	}
	return s, true
}
