package simulator

import (
	"math"

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
	fields   []string // of $select; nil is all
}

// appendOne appends an answer that is one entity.
func (w *entityWriter) appendOne(dst []byte, e *entity) []byte {
	dst = append(dst, '{')
	if w.metadata != noMetadata {
		dst = w.appendContext(dst)
		dst = append(dst, `/@Element",`...)
	}
	return w.appendBody(dst, e)
}

// appendContext appends the metadata address, open at its end.
func (w *entityWriter) appendContext(dst []byte) []byte {
	dst = append(append(dst, `"odata.metadata":"`...), w.endpoint...)
	return append(append(dst, `/$metadata#`...), w.table...)
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
		for _, name := range w.fields {
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
