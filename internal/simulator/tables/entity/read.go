package entity

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// Sent is an entity in a request's body, parsed but not yet checked.
type Sent struct {
	Partition, Row       string
	HasPartition, HasRow bool
	Properties           []Property
}

// rawProperty is a property whose type annotation may still follow.
type rawProperty struct {
	name string
	kind jsontext.Kind
	text string // of a string: without quotes and escapes
	typ  edm.Type
}

// Read parses a body. A value must have its annotated type, or the type of its JSON form: an integer without annotation is an
// Edm.Int32 and must fit, and a number with a point or exponent is an Edm.Double.
func Read(body []byte) (*Sent, *protocol.Fault) {
	raw, fault := readProperties(body)
	if fault != nil {
		return nil, fault
	}
	sent := &Sent{Properties: make([]Property, 0, len(raw))}
	for i := range raw {
		if fault := sent.add(&raw[i]); fault != nil {
			return nil, fault
		}
	}
	return sent, nil
}

// readProperties parses names, values and annotations, in any order.
func readProperties(body []byte) ([]rawProperty, *protocol.Fault) {
	d := jsontext.NewDecoder(bytes.NewBuffer(bytes.TrimPrefix(body, []byte("\uFEFF"))))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, invalidBody()
	}
	var all []rawProperty
	at := map[string]int{}
	of := func(name string) *rawProperty {
		i, ok := at[name]
		if !ok {
			i = len(all)
			at[name] = i
			all = append(all, rawProperty{name: name})
		}
		return &all[i]
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return nil, faultJSON(err)
		}
		name := t.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, faultJSON(err)
		}
		if target, ok := strings.CutSuffix(name, "@odata.type"); ok && target != "" {
			typ, ok := edm.ParseType([]byte(unquoted(value)))
			if !ok {
				return nil, invalidBody()
			}
			of(target).typ = typ
			continue
		}
		if strings.HasPrefix(name, "odata.") || strings.Contains(name, "@odata.") {
			continue // metadata of a response, sent back with the entity
		}
		p := of(name)
		p.kind, p.text = value.Kind(), unquoted(value)
	}
	if t, err := d.ReadToken(); err != nil || t.Kind() != '}' {
		return nil, faultJSON(err)
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, invalidBody()
	}
	return all, nil
}

func faultJSON(err error) *protocol.Fault {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return protocol.Refuse(http.StatusBadRequest, "DuplicatePropertiesSpecified", "A property is specified more than one time.")
	}
	return invalidBody()
}

// unquoted returns the text of a JSON string, and any other value unchanged.
func unquoted(v jsontext.Value) string {
	if v.Kind() != '"' {
		return string(v)
	}
	// The decoder has already checked the value.
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text)
}

// add adds a key or a custom property. It ignores null and the service's own Timestamp.
func (s *Sent) add(p *rawProperty) *protocol.Fault {
	switch p.name {
	case timestampProperty:
		return nil
	case PartitionKey, RowKey:
		if p.kind == 'n' || p.kind == 0 {
			return nil
		}
		if p.kind != '"' || p.typ != edm.TypeNull && p.typ != edm.TypeString {
			return invalidBody()
		}
		if p.name == PartitionKey {
			s.Partition, s.HasPartition = p.text, true
		} else {
			s.Row, s.HasRow = p.text, true
		}
		return nil
	}
	if fault := checkName(p.name); fault != nil {
		return fault
	}
	v, fault := p.value()
	if fault != nil || v.IsNull() {
		return fault
	}
	s.Properties = append(s.Properties, Property{p.name, v})
	return nil
}

// value returns the typed value.
func (p *rawProperty) value() (edm.Value, *protocol.Fault) {
	var v edm.Value
	var err error
	switch p.kind {
	case 'n':
		return edm.Value{}, nil
	case '"':
		v, err = edm.FromText(typeOr(p.typ, edm.TypeString), []byte(p.text))
	case 't', 'f':
		if typeOr(p.typ, edm.TypeBoolean) != edm.TypeBoolean {
			return edm.Value{}, invalidBody()
		}
		v = edm.Boolean(p.kind == 't')
	case '0':
		v, err = p.number()
	default: // objects and arrays; kind 0 means an annotation without a value
		return edm.Value{}, invalidBody()
	}
	if err != nil {
		return edm.Value{}, invalidBody()
	}
	if p.typ == edm.TypeDateTime && v.Check() != nil {
		return edm.Value{}, outOfRange(p.name, p.text)
	}
	return v, nil
}

var errNumber = errors.New("the number does not fit its type")

// number parses a JSON number. An Edm.Int64 must be a string, because a JSON number may lose digits.
func (p *rawProperty) number() (edm.Value, error) {
	if p.typ == edm.TypeInt64 {
		return edm.Value{}, errNumber
	}
	v, err := edm.FromNumber(p.typ, []byte(p.text))
	if err != nil {
		return v, err
	}
	if v.Type() == edm.TypeInt64 {
		return edm.Value{}, errNumber // more than 32 bits without annotation
	}
	if f, ok := v.Float(); ok && math.IsInf(f, 0) {
		return edm.Value{}, errNumber
	}
	return v, nil
}

func typeOr(t, absent edm.Type) edm.Type {
	if t == edm.TypeNull {
		return absent
	}
	return t
}

// ReadString parses a body with one property that must be a string, such as {"TableName":"x"}.
func ReadString(body []byte, property string) (string, *protocol.Fault) {
	raw, fault := readProperties(body)
	if fault != nil {
		return "", fault
	}
	for _, p := range raw {
		if p.name == property && p.kind == '"' {
			return p.text, nil
		}
	}
	return "", protocol.Refuse(http.StatusBadRequest, "PropertiesNeedValue", "The values are not specified for all properties in the entity.")
}
