package simulator

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

// metadata is how much an answer says of its entities.
type metadata uint8

const (
	minimalMetadata metadata = iota
	noMetadata
	fullMetadata
)

// contentType is the header of an answer with that much metadata.
func (m metadata) contentType() string {
	switch m {
	case noMetadata:
		return "application/json;odata=nometadata;streaming=true;charset=utf-8"
	case fullMetadata:
		return "application/json;odata=fullmetadata;streaming=true;charset=utf-8"
	}
	return "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
}

// entityWriter writes entities as one table's answers have them.
type entityWriter struct {
	metadata metadata
	endpoint string // of the service, without a slash at its end
	account  string
	table    string
	fields   []string // of $select, as they were asked for; nil is all
	selected bool     // there is a $select, which may be empty
	// ordered are the fields as an entity has them: see inOrder.
	ordered []string
}

// newEntityWriter makes the writer of a request for entities.
func newEntityWriter(m metadata, endpoint, account, table string, fields []string, selected bool) *entityWriter {
	return &entityWriter{metadata: m, endpoint: endpoint, account: account, table: table, fields: fields, selected: selected, ordered: inOrder(fields)}
}

// inOrder returns selected properties in the order in which the service gives them: the system properties, then the others
// by name, however they were asked for.
func inOrder(fields []string) []string {
	system := [...]string{partitionKeyName, rowKeyName, timestampName}
	sorted := slices.Clone(fields)
	slices.SortFunc(sorted, func(a, b string) int {
		i, j := slices.Index(system[:], a), slices.Index(system[:], b)
		return cmp.Or(cmp.Compare(uint(i), uint(j)), compoundkey.Compare(a, b)) // as a uint, -1 is behind all others
	})
	return sorted
}

// appendOne appends an answer that is one entity.
func (w *entityWriter) appendOne(dst []byte, e *entity) []byte {
	dst = append(dst, '{')
	if w.metadata != noMetadata {
		dst = w.appendContext(dst, "/@Element")
	}
	return escapedText(w.appendBody(dst, e))
}

// appendPage appends an answer that is a list of entities.
func (w *entityWriter) appendPage(dst []byte, entities []*entity) []byte {
	dst = append(dst, '{')
	if w.metadata != noMetadata {
		dst = w.appendContext(dst, "")
	}
	dst = append(dst, `"value":[`...)
	for i, e := range entities {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.appendBody(append(dst, '{'), e)
	}
	return escapedText(append(dst, "]}"...))
}

// appendContext appends the metadata address, which names what was selected.
func (w *entityWriter) appendContext(dst []byte, of string) []byte {
	dst = append(append(dst, `"odata.metadata":"`...), w.endpoint...)
	dst = append(append(append(dst, `/$metadata#`...), w.table...), of...)
	if w.selected {
		dst = append(append(dst, "&$select="...), strings.Join(w.fields, ",")...)
	}
	return append(dst, `",`...)
}

// escapedText writes the characters of a JSON text that are not ASCII as the service does: as \u and the hexadecimal digits of
// their UTF-16 units. They stand in strings and names alone.
func escapedText(text []byte) []byte {
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
func (w *entityWriter) appendBody(dst []byte, e *entity) []byte {
	if w.metadata == fullMetadata {
		address := string(appendEntityAddress(nil, w.table, e.pk, e.rk))
		dst = append(append(append(append(dst, `"odata.type":"`...), w.account...), '.'), w.table...)
		dst = append(dst, `","odata.id":`...)
		dst = edm.AppendQuoted(dst, w.endpoint+"/"+address)
		dst = append(dst, `,"odata.etag":`...)
		dst = edm.AppendQuoted(dst, e.etag)
		dst = append(dst, `,"odata.editLink":`...)
		dst = append(edm.AppendQuoted(dst, address), ',')
	} else if w.metadata == minimalMetadata {
		dst = append(dst, `"odata.etag":`...)
		dst = append(edm.AppendQuoted(dst, e.etag), ',')
	}
	if w.fields != nil {
		for _, name := range w.ordered {
			dst = append(w.appendProperty(dst, name, e.get(name)), ',')
		}
	} else {
		dst = append(w.appendProperty(dst, partitionKeyName, edm.String(e.pk)), ',')
		dst = append(w.appendProperty(dst, rowKeyName, edm.String(e.rk)), ',')
		dst = append(w.appendProperty(dst, timestampName, e.timestamp), ',')
		for i := range e.properties {
			dst = append(w.appendProperty(dst, e.properties[i].name, e.properties[i].value), ',')
		}
	}
	if dst[len(dst)-1] == ',' {
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}')
}

// appendProperty annotates what the service annotates: not a finite double, although a whole one, which always has its
// ".0", looks like an integer to whoever reads numbers by value; and Timestamp only with full metadata.
func (w *entityWriter) appendProperty(dst []byte, name string, v edm.Value) []byte {
	if w.metadata != noMetadata && annotated(v) && (name != timestampName || w.metadata == fullMetadata) {
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
