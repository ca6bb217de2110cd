package entity

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Metadata is how much an answer says of its entities.
type Metadata uint8

// The levels of metadata.
const (
	Minimal Metadata = iota
	None
	Full
)

// ContentType is the header of an answer with that much metadata.
func (m Metadata) ContentType() string {
	switch m {
	case None:
		return "application/json;odata=nometadata;streaming=true;charset=utf-8"
	case Full:
		return "application/json;odata=fullmetadata;streaming=true;charset=utf-8"
	}
	return "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
}

// Writer writes entities as one table's answers have them.
type Writer struct {
	metadata Metadata
	endpoint string // of the service, without a slash at its end
	account  string
	table    string
	fields   []string // of $select, as they were asked for; nil is all
	selected bool     // there is a $select, which may be empty
	// ordered are the fields as an entity has them: see inOrder.
	ordered []string
}

// NewWriter makes the writer of a request for entities.
func NewWriter(m Metadata, endpoint, account, table string, fields []string, selected bool) *Writer {
	return &Writer{metadata: m, endpoint: endpoint, account: account, table: table, fields: fields, selected: selected, ordered: inOrder(fields)}
}

// inOrder returns selected properties in the order in which the service gives them: the system properties, then the others
// by name, however they were asked for.
func inOrder(fields []string) []string {
	system := [...]string{PartitionKey, RowKey, timestampProperty}
	sorted := slices.Clone(fields)
	slices.SortFunc(sorted, func(a, b string) int {
		i, j := slices.Index(system[:], a), slices.Index(system[:], b)
		return cmp.Or(cmp.Compare(uint(i), uint(j)), compoundkey.Compare(a, b)) // as a uint, -1 is behind all others
	})
	return sorted
}

// AppendOne appends an answer that is one entity.
func (w *Writer) AppendOne(dst []byte, e *Stored) []byte {
	dst = append(dst, '{')
	if w.metadata != None {
		dst = w.appendContext(dst, "/@Element")
	}
	return Escaped(w.appendBody(dst, e))
}

// AppendPage appends an answer that is a list of entities.
func (w *Writer) AppendPage(dst []byte, entities []*Stored) []byte {
	dst = append(dst, '{')
	if w.metadata != None {
		dst = w.appendContext(dst, "")
	}
	dst = append(dst, `"value":[`...)
	for i, e := range entities {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.appendBody(append(dst, '{'), e)
	}
	return Escaped(append(dst, "]}"...))
}

// appendContext appends the metadata address, which names what was selected.
func (w *Writer) appendContext(dst []byte, of string) []byte {
	dst = append(append(dst, `"odata.metadata":"`...), w.endpoint...)
	dst = append(append(append(dst, `/$metadata#`...), w.table...), of...)
	if w.selected {
		dst = append(append(dst, "&$select="...), strings.Join(w.fields, ",")...)
	}
	return append(dst, `",`...)
}

// Escaped writes the characters of a JSON text that are not ASCII as the service does: as \u and the hexadecimal digits of
// their UTF-16 units. They stand in strings and names alone.
func Escaped(text []byte) []byte {
	at := bytes.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
	if at < 0 {
		return text
	}
	escaped := append(make([]byte, 0, len(text)+len(text)/2), text[:at]...)
	for _, r := range string(text[at:]) {
		if r < utf8.RuneSelf {
			escaped = append(escaped, byte(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, unit)
		}
	}
	return escaped
}

// appendBody appends what follows an entity's opening brace.
func (w *Writer) appendBody(dst []byte, e *Stored) []byte {
	if w.metadata == Full {
		address := string(AppendAddress(nil, w.table, e.Partition, e.Row))
		dst = append(append(append(append(dst, `"odata.type":"`...), w.account...), '.'), w.table...)
		dst = append(dst, `","odata.id":`...)
		dst = edm.AppendQuoted(dst, w.endpoint+"/"+address)
		dst = append(dst, `,"odata.etag":`...)
		dst = edm.AppendQuoted(dst, e.ETag)
		dst = append(dst, `,"odata.editLink":`...)
		dst = append(edm.AppendQuoted(dst, address), ',')
	} else if w.metadata == Minimal {
		dst = append(dst, `"odata.etag":`...)
		dst = append(edm.AppendQuoted(dst, e.ETag), ',')
	}
	if w.fields != nil {
		for _, name := range w.ordered {
			dst = append(w.appendProperty(dst, name, e.Get(name)), ',')
		}
	} else {
		dst = append(w.appendProperty(dst, PartitionKey, edm.String(e.Partition)), ',')
		dst = append(w.appendProperty(dst, RowKey, edm.String(e.Row)), ',')
		dst = append(w.appendProperty(dst, timestampProperty, e.Timestamp), ',')
		for i := range e.Properties {
			dst = append(w.appendProperty(dst, e.Properties[i].name, e.Properties[i].value), ',')
		}
	}
	if dst[len(dst)-1] == ',' {
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}')
}

// appendProperty annotates what the service annotates: not a finite double, although a whole one, which always has its
// ".0", looks like an integer to whoever reads numbers by value; and Timestamp only with full metadata.
func (w *Writer) appendProperty(dst []byte, name string, v edm.Value) []byte {
	if w.metadata != None && annotated(v) && (name != timestampProperty || w.metadata == Full) {
		dst = append(append(dst, '"'), name...)
		dst = append(dst, `@odata.type":"`...)
		dst = append(append(dst, v.Type().String()...), `",`...)
	}
	dst = append(append(dst, '"'), name...)
	return edm.AppendValue(append(dst, `":`...), v)
}

func annotated(v edm.Value) bool {
	switch v.Type() {
	case edm.TypeInt64, edm.TypeDateTime, edm.TypeGuid, edm.TypeBinary:
		return true
	case edm.TypeDouble:
		f, _ := v.Float()
		return math.IsNaN(f) || math.IsInf(f, 0)
	}
	return false
}
