// Package fields converts the fields of a struct into properties and back, by reflection. A Plan says which field is
// stored under which name and EDM type. The caller chooses the types of a property and of a value, with an edm.Access
// and Types.
package fields

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// Plan describes how a struct type is stored.
type Plan struct {
	Type                      reflect.Type
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
	readsBack  bool // the type encodes itself, so that encode checks that its text can be decoded
}

// New makes the plan of a struct type.
func New(t reflect.Type) (*Plan, error) {
	p := &Plan{Type: t, byName: map[string]int{}}
	if f, ok := t.FieldByName(metaType.Name()); ok && f.Type == metaType && f.Anonymous {
		p.meta = f.Index
	}
	for _, sf := range reflect.VisibleFields(t) {
		if err := p.add(sf); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, sf.Name, err)
		}
	}
	return p, nil
}

func (p *Plan) add(sf reflect.StructField) error {
	tag, tagged := sf.Tag.Lookup("table")
	name, options, _ := strings.Cut(tag, ",")
	flat := sf.Anonymous && !tagged && p.flattens(sf.Type)
	if tagged && name != "-" && !sf.Anonymous && !sf.IsExported() {
		return fmt.Errorf("the field is tagged but not exported, and only exported fields are stored; export the field or remove the tag")
	}
	if name == "-" || sf.Type == metaType || flat || p.below(sf.Index) || !sf.IsExported() {
		if flat && sf.Type.Kind() == reflect.Pointer && !sf.IsExported() {
			return fmt.Errorf("the field embeds a pointer to an unexported type, which reading cannot set; embed the struct itself or export the type")
		}
		if flat && !p.below(sf.Index) {
			return p.checkAmbiguous(sf.Type)
		}
		return nil
	}
	name = cmp.Or(name, sf.Name)
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
			return fmt.Errorf("unknown option %q in its tag; the options are omitempty, omitzero, json and rest", option)
		}
	}
	if err := edm.CheckName(name); err != nil {
		return err
	}
	if strings.HasPrefix(name, rows.Prefix) {
		return fmt.Errorf("property names that begin with %s are reserved for the library; choose another name", rows.Prefix)
	}
	if _, taken := p.byName[name]; taken {
		return fmt.Errorf("another field is stored as %s, too; give one of them another name in its tag", name)
	}
	var err error
	if f.conversion, f.pointer, err = conversionOf(sf.Type, asJSON); err != nil {
		return err
	}
	f.readsBack = f.conversion == asText || f.conversion == asJSONText
	p.byName[name] = len(p.fields)
	p.fields = append(p.fields, f)
	return nil
}

// checkAmbiguous refuses a field that another embedded struct has at the same depth: Go promotes neither of
// the two fields, so neither would be stored, without an error.
func (p *Plan) checkAmbiguous(embedded reflect.Type) error {
	if embedded.Kind() == reflect.Pointer {
		embedded = embedded.Elem()
	}
	for i := range embedded.NumField() {
		sf := embedded.Field(i)
		if sf.Tag.Get("table") == "-" || !sf.IsExported() {
			continue
		}
		if _, found := p.Type.FieldByName(sf.Name); !found {
			return fmt.Errorf("two embedded structs at the same depth have a field %s, and Go promotes neither; tag one of them `table:\"-\"`", sf.Name)
		}
	}
	return nil
}

func (p *Plan) addSystem(name string, sf reflect.StructField) (done bool, err error) {
	var index *[]int
	switch name {
	case "PartitionKey", "RowKey":
		if sf.Type.Kind() != reflect.String {
			return true, fmt.Errorf("field %s has another type; it must be a string", name)
		}
		index = &p.partition
		if name == "RowKey" {
			index = &p.row
		}
	case "Timestamp":
		if sf.Type != reflect.TypeFor[time.Time]() {
			return true, fmt.Errorf("field Timestamp has another type; it must be a time.Time")
		}
		index = &p.timestamp
	default:
		return false, nil
	}
	if *index != nil {
		return true, fmt.Errorf("another field is the %s, too; only one may be", name)
	}
	*index = sf.Index
	return true, nil
}

func (p *Plan) addRest(sf reflect.StructField) error {
	if sf.Type != reflect.MapOf(reflect.TypeFor[string](), valueType) {
		return fmt.Errorf("a field tagged \"rest\" must be a map[string]%s, not a %s", valueType, sf.Type)
	}
	if p.rest != nil {
		return errors.New("only one field may be tagged \"rest\"")
	}
	p.rest = sf.Index
	return nil
}

// below reports whether the field is promoted from a struct whose fields are not stored as properties: a Meta, a tagged
// field, or a type that is stored as one property.
func (p *Plan) below(index []int) bool {
	t := p.Type
	for _, i := range index[:len(index)-1] {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		sf := t.Field(i)
		if _, tagged := sf.Tag.Lookup("table"); tagged || sf.Type == metaType || !p.flattens(sf.Type) {
			return true
		}
		t = sf.Type
	}
	return false
}

// flattens reports whether the fields of an embedded field of this type are stored as properties of their own.
func (p *Plan) flattens(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == metaType {
		return false
	}
	_, _, err := conversionOf(t, false)
	return err != nil
}

// Names lists the properties of the type; nil means that a field tagged rest accepts any property.
func (p *Plan) Names() []string {
	if p.rest != nil {
		return nil
	}
	names := make([]string, len(p.fields))
	for i := range p.fields {
		names[i] = p.fields[i].name
	}
	return names
}

// Known returns Names as a map, for a reader of rows.
func (p *Plan) Known() map[string]int {
	if p.rest != nil {
		return nil
	}
	return p.byName
}

// EDMType returns the type under which a property is stored, TypeNull if the struct type does not determine it.
func (p *Plan) EDMType(name string) edm.Type {
	if i, ok := p.byName[name]; ok {
		return p.fields[i].conversion.edmType()
	}
	return edm.TypeNull
}

// Key reads the fields PartitionKey and RowKey of the struct s.
func (p *Plan) Key(s reflect.Value) (partition, row string, err error) {
	if p.partition == nil || p.row == nil {
		return "", "", fmt.Errorf("%s has no fields PartitionKey and RowKey; add both as strings, or use a Repository with Schema.Key", p.Type)
	}
	partitionField, ok1 := at(s, p.partition, false)
	rowField, ok2 := at(s, p.row, false)
	if !ok1 || !ok2 {
		return "", "", fmt.Errorf("the embedded pointer of %s that holds PartitionKey and RowKey is nil; set it", p.Type)
	}
	return partitionField.String(), rowField.String(), nil
}

// SetKey sets the fields PartitionKey and RowKey of the struct s if they exist.
func (p *Plan) SetKey(s reflect.Value, partition, row string) {
	if p.partition != nil {
		field, _ := at(s, p.partition, true)
		field.SetString(partition)
	}
	if p.row != nil {
		field, _ := at(s, p.row, true)
		field.SetString(row)
	}
}

// SetTimestamp sets the field Timestamp of the struct s, if it has one.
func (p *Plan) SetTimestamp(s reflect.Value, t time.Time) {
	if p.timestamp != nil {
		field, _ := at(s, p.timestamp, true)
		field.Set(reflect.ValueOf(t))
	}
}

// HasMeta reports whether the type embeds an entity.Meta.
func (p *Plan) HasMeta() bool { return p.meta != nil }

// Meta returns a pointer to the embedded entity.Meta of the struct s. HasMeta must be true.
func (p *Plan) Meta(s reflect.Value) *entity.Meta {
	field, _ := at(s, p.meta, true)
	return field.Addr().Interface().(*entity.Meta)
}

// at does what reflect.Value.FieldByIndex does, without a panic: it returns false at a nil embedded pointer, or allocates
// the struct if create is set.
func at(s reflect.Value, index []int, create bool) (reflect.Value, bool) {
	for i, n := range index {
		if i > 0 && s.Kind() == reflect.Pointer {
			if s.IsNil() {
				if !create {
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

// Assign copies the fields of the named properties from one struct to another.
func (p *Plan) Assign(to, from reflect.Value, names []string) {
	for _, name := range names {
		i, known := p.byName[name]
		switch {
		case known:
			target, _ := at(to, p.fields[i].index, true)
			source, _ := at(from, p.fields[i].index, true)
			target.Set(source)
		case p.rest != nil:
			source, _ := at(from, p.rest, true)
			if v := source.MapIndex(reflect.ValueOf(name)); v.IsValid() {
				p.decodeRest(to, name, v)
			}
		}
	}
}

// IsNil reports whether v is nil, or a nil pointer in an interface.
func IsNil(v any) bool {
	p := reflect.ValueOf(v)
	return !p.IsValid() || p.Kind() == reflect.Pointer && p.IsNil()
}

// Field describes one stored field.
type Field struct {
	Name  string // of the property
	Field string // name of the struct field, with the names of the embedded structs that hold it
	// Optional reports that the field can be stored as an absent property, and that an absent property is
	// read back as the same value: a pointer, bytes, omitempty, omitzero.
	Optional bool
	// ZeroRefused reports that the zero value of the field cannot be stored.
	ZeroRefused bool
}

// Fields describes the stored fields, in order, without keys and the field tagged rest.
func (p *Plan) Fields() []Field {
	all := make([]Field, len(p.fields))
	for i := range p.fields {
		f := &p.fields[i]
		all[i] = Field{Name: f.name, Field: p.path(f.index)}
		zero := reflect.New(p.Type).Elem()
		at(zero, f.index, true) // allocate embedded pointers, as decoding does
		value, err := f.encode(zero)
		all[i].Optional, all[i].ZeroRefused = err == nil && value.IsNull(), err != nil
	}
	return all
}

// path names a field with the embedded structs that hold it.
func (p *Plan) path(index []int) string {
	t, names := p.Type, []string{}
	for _, i := range index {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		names, t = append(names, t.Field(i).Name), t.Field(i).Type
	}
	return strings.Join(names, ".")
}

// HasRest reports whether a field holds the properties that have no field of their own.
func (p *Plan) HasRest() bool { return p.rest != nil }
