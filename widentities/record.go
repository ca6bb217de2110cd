package widentities

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/tables"
)

// A record is one property as text: name, colon, letter of its type, number of bytes of the value, colon,
// value. The value is not escaped, since the number of bytes says where it ends:
//
//	LastName:s5:Jones
//	Age:i2:34
//
// The value is written as in the service's JSON, without quotation marks.

// letters holds the letters of the types, in the order of edm.Type.
const letters = "-sbtildmg"

// appendRecord appends the record of a property.
func appendRecord(dst []byte, p *tables.Property) ([]byte, error) {
	text, err := textOf(p.Value)
	if err != nil {
		return nil, fmt.Errorf("property %s: %w", p.Name, err)
	}
	if err := edm.CheckName(p.Name); err != nil {
		return nil, err
	}
	switch p.Name {
	case "PartitionKey", "RowKey", "Timestamp": // no property can have these names, so no record can either
		return nil, fmt.Errorf("%s is a system property, which an entity's properties must not contain; rename it", p.Name)
	}
	dst = append(append(dst, p.Name...), ':', letters[p.Value.Type()])
	dst = append(strconv.AppendInt(dst, int64(len(text)), 10), ':')
	return append(dst, text...), nil
}

// textOf returns the text of a value in a record.
func textOf(v tables.Value) ([]byte, error) {
	if text, ok := v.Text(); ok {
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("the text is not valid UTF-8; store such bytes in a Binary property ([]byte)")
		}
		return []byte(text), nil
	}
	if v.IsNull() {
		return nil, fmt.Errorf("the value is null, which the service does not store; leave the property out")
	}
	return bytes.Trim(edm.AppendValue(nil, edm.Value(v)), `"`), nil
}

// readRecord reads the record at the beginning of text, and returns the rest of text.
func readRecord(text string) (p tables.Property, rest string, err error) {
	name, rest, ok := cut(text, ':')
	if !ok || rest == "" {
		return p, "", errRecord
	}
	kind := edm.Type(bytes.IndexByte([]byte(letters), rest[0]))
	number, rest, ok := cut(rest[1:], ':')
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 || n > len(rest) || kind <= edm.TypeNull || kind > edm.TypeGuid {
		return p, "", errRecord
	}
	p.Name = name
	p.Value, err = valueOf(kind, rest[:n])
	return p, rest[n:], err
}

func valueOf(kind edm.Type, text string) (tables.Value, error) {
	switch kind {
	case edm.TypeString:
		return tables.String(text), nil
	case edm.TypeBoolean:
		if text != "true" && text != "false" {
			return tables.Value{}, errRecord
		}
		return tables.Boolean(text == "true"), nil
	}
	isNumber := len(text) > 0 && (text[0] == '-' || '0' <= text[0] && text[0] <= '9') && text != "-Infinity"
	parse := edm.FromText
	if kind == edm.TypeInt32 || kind == edm.TypeDouble && isNumber {
		parse = edm.FromNumber
	}
	v, err := parse(kind, []byte(text))
	return tables.Value(v), err
}

// cut does what strings.Cut does, but looks for the separator only as far as the longest name reaches.
func cut(text string, at byte) (before, after string, ok bool) {
	for i := range min(len(text), edm.MaxNameUnits*utf8.UTFMax+1) {
		if text[i] == at {
			return text[:i], text[i+1:], true
		}
	}
	return "", "", false
}
