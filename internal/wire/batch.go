package wire

import (
	"net/http"
	"strconv"
)

// Verb is the kind of an operation. On the service, an update without If-Match is an upsert.
type Verb uint8

// The verbs of a single request and of an operation in an entity group transaction.
const (
	VerbInsert Verb = iota
	VerbReplace
	VerbMerge
	VerbDelete
)

// Method returns the verb's HTTP method.
func (v Verb) Method() string {
	return [...]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}[v]
}

// Operation is one operation of an entity group transaction, with its encoded body.
type Operation struct {
	Verb    Verb
	Address Address
	IfMatch string // "" sends no If-Match
	Body    []byte
}

// Batch is the encoded body of one entity group transaction.
type Batch struct {
	Body        []byte
	ContentType string
}

// AppendBatch encodes the operations. endpoint is the service's address without query. id is a part of the
// boundaries, so that they do not occur in the bodies. With cosmos, a merge has the older form that Cosmos DB
// requires, because it does not support PATCH.
func AppendBatch(dst []byte, endpoint, id string, cosmos bool, operations []Operation) Batch {
	boundary, changeset := "batch_"+id, "changeset_"+id
	dst = append(append(dst, "--"...), boundary...)
	dst = append(dst, "\r\nContent-Type: multipart/mixed; boundary="...)
	dst = append(append(dst, changeset...), "\r\n\r\n"...)
	for i := range operations {
		dst = append(append(dst, "--"...), changeset...)
		dst = append(dst, "\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"...)
		dst = operations[i].append(dst, endpoint, cosmos, i+1)
		dst = append(dst, "\r\n"...)
	}
	dst = append(append(append(dst, "--"...), changeset...), "--\r\n"...)
	dst = append(append(append(dst, "--"...), boundary...), "--\r\n"...)
	return Batch{Body: dst, ContentType: "multipart/mixed; boundary=" + boundary}
}

func (op *Operation) append(dst []byte, endpoint string, cosmos bool, id int) []byte {
	method, override := op.Verb.Method(), ""
	if cosmos && op.Verb == VerbMerge {
		method, override = http.MethodPost, "X-HTTP-Method: MERGE\r\n"
	}
	dst = append(append(dst, method...), ' ')
	dst = append(append(dst, endpoint...), '/')
	if op.Verb == VerbInsert {
		dst = append(dst, op.Address.Table...)
	} else {
		dst = op.Address.AppendEscaped(dst)
	}
	dst = append(dst, " HTTP/1.1\r\nContent-ID: "...)
	dst = strconv.AppendInt(dst, int64(id), 10)
	dst = append(dst, "\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n"...)
	dst = append(dst, override...)
	if op.Verb == VerbInsert {
		dst = append(dst, "Prefer: return-no-content\r\n"...)
	}
	if op.IfMatch != "" {
		dst = append(append(append(dst, "If-Match: "...), op.IfMatch...), "\r\n"...)
	}
	if op.Verb == VerbDelete {
		return append(dst, "\r\n"...)
	}
	dst = append(dst, "Content-Type: application/json\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(op.Body)), 10)
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, op.Body...)
}
