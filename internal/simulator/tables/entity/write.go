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

// Metadata is the level of metadata in a response.
type Metadata uint8

// The levels of metadata.
const (
	Minimal Metadata = iota
	None
	Full
)

// ContentType returns the Content-Type header of a response with this level.
func (m Metadata) ContentType() string {
	switch m {
	case None:
		return "application/json;odata=nometadata;streaming=true;charset=utf-8"
	case Full:
		return "application/json;odata=fullmetadata;streaming=true;charset=utf-8"
	}
	return "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
}

// Writer writes the entities of one table's responses.
type Writer struct {
	metadata Metadata
	endpoint string // the service's URL, without a slash at its end
	account  string
	table    string
	fields   []string // of $select, in the order of the request; nil means all
	selected bool     // the request has a $select, which may be empty
	// ordered are the fields in the order of the response: see inOrder.
	ordered []string
}

// NewWriter returns the writer for a request for entities.
func NewWriter(m Metadata, endpoint, account, table string, fields []string, selected bool) *Writer {
	return &Writer{metadata: m, endpoint: endpoint, account: account, table: table, fields: fields, selected: selected, ordered: inOrder(fields)}
}

// inOrder returns the selected properties in the order in which the service returns them, whatever the order of the request:
// the system properties, then the others by name.
func inOrder(fields []string) []string {
	system := [...]string{PartitionKey, RowKey, timestampProperty}
	sorted := slices.Clone(fields)
	slices.SortFunc(sorted, func(a, b string) int {
		i, j := slices.Index(system[:], a), slices.Index(system[:], b)
		return cmp.Or(cmp.Compare(uint(i), uint(j)), compoundkey.Compare(a, b)) // as a uint, -1 sorts last
	})
	return sorted
}

// AppendOne appends a response that is one entity.
func (w *Writer) AppendOne(dst []byte, e *Stored) []byte {
	dst = append(dst, '{')
	if w.metadata != None {
		dst = w.appendContext(dst, "/@Element")
	}
	return Escaped(w.appendBody(dst, e))
}

// AppendPage appends a response that is a list of entities.
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

// appendContext appends the metadata URL, which names the selected properties.
func (w *Writer) appendContext(dst []byte, of string) []byte {
	dst = append(append(dst, `"odata.metadata":"`...), w.endpoint...)
	dst = append(append(append(dst, `/$metadata#`...), w.table...), of...)
	if w.selected {
		dst = append(append(dst, "&$select="...), strings.Join(w.fields, ",")...)
	}
	return append(dst, `",`...)
}

// Escaped escapes the non-ASCII characters of a JSON text as the service does: as \u and the hexadecimal digits of their
// UTF-16 units. They occur only in strings and names.
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

// appendBody appends the content of an entity's JSON object, after the opening brace.
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

// appendProperty appends a property with the type annotation that the service writes. A finite double has no
// annotation; if it is a whole number, it is written with ".0", although readers that look only at the value
// take it for an integer. Timestamp has an annotation only with full metadata.
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
