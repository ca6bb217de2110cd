package request

import (
	"net/http"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
)

// Call is one request to the table service.
type Call struct {
	*protocol.Call
	requestID string
}

// NewCall returns the Call of a request.
func NewCall(c *protocol.Call) *Call { return &Call{c, requestID(c.Serial)} }

// requestID makes an id in the service's format from the request's number.
func requestID(serial uint64) string {
	const digits = "0123456789abcdef"
	id := []byte("00000000-0002-0000-0000-000000000000")
	for i := len(id) - 1; serial > 0 && i >= 24; i-- {
		id[i] = digits[serial&15]
		serial >>= 4
	}
	return string(id)
}

// Refuse returns the response for a fault.
func (c *Call) Refuse(f *protocol.Fault) *protocol.Answer {
	a := c.Begin(f.Status)
	// An error is written at the level of metadata that the request accepts, or at the minimal level if it accepts none.
	level, _ := c.Level()
	a.Header["Content-Type"] = []string{level.ContentType()}
	if prefer := preferenceOf(c.Req.Header); prefer != "" && c.Req.Method == http.MethodPost {
		a.Header["Preference-Applied"] = []string{prefer}
	}
	a.Body = c.faultBody(f)
	return a
}

// Begin begins a response of the table service, with the headers that all of them have.
func (c *Call) Begin(status int) *protocol.Answer {
	values := [...]string{c.requestID, c.Now.Format(http.TimeFormat), "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0", "nosniff",
		"no-cache", protocol.Header(c.Req.Header, "x-ms-version"), protocol.Header(c.Req.Header, "x-ms-client-request-id")}
	h := make(http.Header, 12)
	h["X-Ms-Request-Id"] = values[0:1:1]
	h["Date"] = values[1:2:2]
	h["Server"] = values[2:3:3]
	h["X-Content-Type-Options"] = values[3:4:4]
	h["Cache-Control"] = values[4:5:5]
	if values[5] != "" {
		h["X-Ms-Version"] = values[5:6:6]
	}
	if values[6] != "" {
		h["X-Ms-Client-Request-Id"] = values[6:7:7]
	}
	return &protocol.Answer{Status: status, Header: h}
}

// Level returns the level of metadata that the request asks for.
func (c *Call) Level() (entity.Metadata, *protocol.Fault) {
	return metadataOf(protocol.Header(c.Req.Header, "Accept"), formatOf(c.Req.URL.RawQuery))
}

// Operation parses the request as an operation on the entity of an address.
func (c *Call) Operation(a Address) (*Operation, *protocol.Fault) {
	return parseOperation(c.Req.Method, a, c.Req.Header, formatOf(c.Req.URL.RawQuery), c.Body)
}

// Batch parses the request's body as a batch.
func (c *Call) Batch() (*Batch, *protocol.Fault) {
	return parseBatch(protocol.Header(c.Req.Header, "Content-Type"), c.Body)
}

// formatOf returns the $format of a query.
func formatOf(raw string) string {
	if raw == "" {
		return ""
	}
	return protocol.ParseQuery(raw).Get("$format")
}

// faultBody returns the body of an error response.
func (c *Call) faultBody(f *protocol.Fault) []byte {
	dst := append(append([]byte(nil), `{"odata.error":{"code":"`...), f.Code...)
	dst = append(dst, `","message":{"lang":"en-US","value":`...)
	dst = append(dst, entity.Escaped(edm.AppendQuoted(nil, strings.ToValidUTF8(f.Message, "\uFFFD")))...)
	dst = append(append(dst[:len(dst)-1], `\nRequestId:`...), c.requestID...)
	dst = c.Now.UTC().AppendFormat(append(dst, `\nTime:`...), protocol.TimeFormat)
	return append(dst, `"}}}`...)
}
