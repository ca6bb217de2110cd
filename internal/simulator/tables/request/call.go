package simulator

import (
	"net/http"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// tableCall is one request to the table service.
type tableCall struct {
	*Call
	requestID string
}

func newTableCall(c *Call) *tableCall { return &tableCall{c, requestID(c.Serial)} }

// requestID makes an id of the usual shape out of the request's number.
func requestID(serial uint64) string {
	const digits = "0123456789abcdef"
	id := []byte("00000000-0002-0000-0000-000000000000")
	for i := len(id) - 1; serial > 0 && i >= 24; i-- {
		id[i] = digits[serial&15]
		serial >>= 4
	}
	return string(id)
}

// refuse answers with a fault.
func (c *tableCall) refuse(f *Fault) *answer {
	a := c.answer(f.Status)
	// A refusal is written at the level that the request accepts, or at the minimum: a level that is none has no text.
	level, _ := c.level()
	a.header["Content-Type"] = []string{level.contentType()}
	if prefer := preferenceOf(c.Req.Header); prefer != "" && c.Req.Method == http.MethodPost {
		a.header["Preference-Applied"] = []string{prefer}
	}
	a.body = c.faultBody(f)
	return a
}

// answer begins an answer of the table service, with the headers that all of them have.
func (c *tableCall) answer(status int) *answer {
	values := [...]string{c.requestID, c.Now.Format(http.TimeFormat), "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0", "nosniff",
		"no-cache", Header(c.Req.Header, "x-ms-version"), Header(c.Req.Header, "x-ms-client-request-id")}
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
	return &answer{status: status, header: h}
}

// level is the level of metadata that the request asks for.
func (c *tableCall) level() (metadata, *Fault) {
	return metadataOf(Header(c.Req.Header, "Accept"), formatOf(c.Req.URL.RawQuery))
}

// endpoint is the service's address as the request has it.
func (c *tableCall) endpoint() string { return c.Req.URL.Scheme + "://" + c.Req.URL.Host }

// formatOf is the $format of a query.
func formatOf(raw string) string {
	if raw == "" {
		return ""
	}
	return ParseQuery(raw).Get("$format")
}

// faultBody is the body of a refusal.
func (c *tableCall) faultBody(f *Fault) []byte {
	dst := append(append([]byte(nil), `{"odata.error":{"code":"`...), f.Code...)
	dst = append(dst, `","message":{"lang":"en-US","value":`...)
	dst = append(dst, escapedText(edm.AppendQuoted(nil, strings.ToValidUTF8(f.Message, "\uFFFD")))...)
	dst = append(append(dst[:len(dst)-1], `\nRequestId:`...), c.requestID...)
	dst = c.Now.UTC().AppendFormat(append(dst, `\nTime:`...), TimeFormat)
	return append(dst, `"}}}`...)
}
