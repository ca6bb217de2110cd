package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tablepatterns/tablepatterns/internal/kinds"
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

// Batch writes the body of an entity group transaction.
type Batch struct {
	Endpoint string // the service's address without query
	ID       string // a part of the boundaries, so that they do not occur in the bodies
	// Cosmos gives merges the older form that Cosmos DB requires, because it does not support PATCH.
	Cosmos bool
	Body   []byte
	n      int
}

// ContentType returns the content type of the body.
func (b *Batch) ContentType() string { return "multipart/mixed; boundary=batch_" + b.ID }

func (b *Batch) text(all ...string) {
	for _, s := range all {
		b.Body = append(b.Body, s...)
	}
}

// Add appends the write of one row with its encoded body. ifMatch is "" for none.
func (b *Batch) Add(verb Verb, address Address, ifMatch string, body []byte) {
	if b.n++; b.n == 1 {
		b.text("--batch_", b.ID, "\r\nContent-Type: multipart/mixed; boundary=changeset_", b.ID, "\r\n\r\n")
	}
	method, override := verb.Method(), ""
	if b.Cosmos && verb == VerbMerge {
		method, override = http.MethodPost, "X-HTTP-Method: MERGE\r\n"
	}
	b.text("--changeset_", b.ID, "\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n", method, " ", b.Endpoint, "/")
	if verb == VerbInsert {
		b.text(address.Table)
	} else {
		b.Body = address.AppendEscaped(b.Body)
	}
	b.text(" HTTP/1.1\r\nContent-ID: ")
	b.Body = strconv.AppendInt(b.Body, int64(b.n), 10)
	b.text("\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n", override)
	if verb == VerbInsert {
		b.text("Prefer: return-no-content\r\n")
	}
	if ifMatch != "" {
		b.text("If-Match: ", ifMatch, "\r\n")
	}
	if verb != VerbDelete {
		b.text("Content-Type: application/json\r\nContent-Length: ")
		b.Body = strconv.AppendInt(b.Body, int64(len(body)), 10)
		b.text("\r\n")
	}
	b.text("\r\n")
	b.Body = append(b.Body, body...)
	b.text("\r\n")
}

// End appends the closing boundaries.
func (b *Batch) End() { b.text("--changeset_", b.ID, "--\r\n--batch_", b.ID, "--\r\n") }

// BatchAnswer is the response to an entity group transaction: an ETag for each operation ("" for a delete), or one failure
// for all of them.
type BatchAnswer struct {
	ETags   []string
	Failure *BatchFailure
}

// BatchFailure is the failure of an entity group transaction. Index is the index of the operation that
// failed, or -1 if the response does not name it.
type BatchFailure struct {
	Status  int
	Index   int
	Code    string
	Message string
}

func garbled(format string, args ...any) error {
	return fmt.Errorf("%w: %s", kinds.ErrCutOff, fmt.Sprintf(format, args...))
}

// ParseBatchAnswer parses the multipart response to a transaction of n operations. It accepts only a complete response, with
// both closing boundaries and n successes or one failure.
func ParseBatchAnswer(contentType string, body []byte, n int) (BatchAnswer, error) {
	parts, err := changeSetParts(contentType, body, n)
	if err != nil {
		return BatchAnswer{}, err
	}
	answer := BatchAnswer{ETags: make([]string, 0, n)}
	for i, raw := range parts {
		p, err := readPart(raw)
		if err != nil {
			return BatchAnswer{}, err
		}
		if p.status >= 400 {
			code, message := ErrorCode(p.content)
			return BatchAnswer{Failure: &BatchFailure{Status: p.status, Index: failureIndex(message, n, i), Code: code, Message: message}}, nil
		}
		answer.ETags = append(answer.ETags, string(header(p.head, "ETag")))
	}
	if len(answer.ETags) != n {
		return BatchAnswer{}, garbled("it has the results of %d operations, and %d were sent", len(answer.ETags), n)
	}
	return answer, nil
}

// mayHaveFailed reports whether the response to a transaction may have a part for which readPart returns a failure. It is a quick look: most
// transactions succeed, and their response is then split only once.
func mayHaveFailed(body []byte) bool {
	for {
		at := bytes.Index(body, []byte(version))
		if at < 0 || len(body) < at+statusEnd {
			return false
		}
		if class := body[at+statusStart]; class == '4' || class == '5' {
			return true
		}
		body = body[at+len(version):]
	}
}

// changeSetParts returns the parts of the one change set, expected to be n, in a multipart response.
func changeSetParts(contentType string, body []byte, n int) ([][]byte, error) {
	boundary, ok := boundaryOf([]byte(contentType))
	if !ok {
		return nil, garbled("its content type has no boundary")
	}
	outer, err := splitParts(body, boundary, 1)
	if err != nil || len(outer) != 1 {
		return nil, garbled("the batch has %d parts, not 1", len(outer))
	}
	head, content, ok := cutHead(outer[0])
	if !ok {
		return nil, garbled("the header of the batch does not end")
	}
	inner, ok := boundaryOf(header(head, "Content-Type"))
	if !ok {
		return nil, garbled("the content type of the change set has no boundary")
	}
	return splitParts(content, inner, n)
}

// splitParts returns the contents between the boundary's lines, expected to be n. It returns an error if the closing boundary is missing.
func splitParts(body []byte, boundary string, n int) ([][]byte, error) {
	delimiter := []byte("--" + boundary)
	parts := make([][]byte, 0, n)
	first := bytes.Index(body, delimiter)
	if first < 0 {
		return nil, garbled("its boundary does not appear")
	}
	rest := body[first+len(delimiter):]
	for {
		if bytes.HasPrefix(rest, []byte("--")) {
			return parts, nil
		}
		_, content, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			return nil, garbled("it ends at a boundary that is not the closing one")
		}
		end := bytes.Index(content, delimiter)
		if end < 0 {
			return nil, garbled("its closing boundary is missing")
		}
		parts = append(parts, content[:end])
		rest = content[end+len(delimiter):]
	}
}

// part is the response to one operation, or to all of them.
type part struct {
	status        int
	head, content []byte
}

// version is where a status line begins. Behind it are the minor version, a space and the status.
const (
	version     = "HTTP/1."
	statusStart = len(version) + 2
	statusEnd   = statusStart + 3
)

func readPart(raw []byte) (part, error) {
	start := bytes.Index(raw, []byte(version))
	if start < 0 || len(raw) < start+statusEnd {
		return part{}, garbled("a part has no status line")
	}
	response := raw[start:]
	status, err := strconv.Atoi(string(response[statusStart:statusEnd]))
	if err != nil || status < 200 || status >= 300 && status < 400 || status > 599 {
		return part{}, garbled("a part has no status of an operation, 200 to 299 or 400 to 599")
	}
	head, content, ok := cutHead(response)
	if !ok {
		return part{}, garbled("the header of a part does not end")
	}
	return part{status, head, content}, nil
}

// failureIndex returns the index of the operation that failed. The message begins with this index and a colon, unless
// the transaction has one operation. If the service answers every operation, the index of the part is also the index of
// the operation.
func failureIndex(message string, operations, part int) int {
	for i := 0; i < len(message) && i < 4; i++ {
		if message[i] == ':' && i > 0 {
			if n, err := strconv.Atoi(message[:i]); err == nil && n >= 0 && n < operations {
				return n
			}
		}
	}
	if operations == 1 {
		return 0
	}
	if part > 0 && part < operations {
		return part
	}
	return -1
}

func cutHead(b []byte) (head, content []byte, ok bool) {
	if head, content, ok = bytes.Cut(b, []byte("\r\n\r\n")); ok {
		return head, content, true
	}
	return bytes.Cut(b, []byte("\n\n"))
}

func header(head []byte, name string) []byte {
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\n"))
		if key, value, ok := bytes.Cut(line, []byte(":")); ok && len(key) == len(name) && bytes.EqualFold(key, []byte(name)) {
			return bytes.TrimSpace(value)
		}
	}
	return nil
}

func boundaryOf(contentType []byte) (string, bool) {
	_, boundary, ok := bytes.Cut(contentType, []byte("boundary="))
	if !ok {
		return "", false
	}
	boundary, _, _ = bytes.Cut(boundary, []byte(";"))
	boundary = bytes.Trim(bytes.TrimSpace(boundary), `"`)
	return string(boundary), len(boundary) > 0
}

// ErrorCode returns code and message of the service's error body: {"odata.error":{"code":..,"message":{"value":..}}}. Both
// are empty if the body has another form.
func ErrorCode(body []byte) (code, message string) {
	var parsed struct {
		Error struct {
			Code    string `json:"code"`
			Message struct {
				Value string `json:"value"`
			} `json:"message"`
		} `json:"odata.error"`
	}
	if json.Unmarshal(bytes.TrimSpace(body), &parsed) != nil {
		return "", ""
	}
	return parsed.Error.Code, parsed.Error.Message.Value
}
