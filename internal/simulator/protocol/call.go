package protocol

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Service is the part of a host name that identifies a service of the account.
type Service string

// The services of an account.
const (
	Table Service = "table"
	Queue Service = "queue"
	Blob  Service = "blob"
)

// Call is one request to a service. Serial is its number within the account, and Now the account's time.
type Call struct {
	Req    *http.Request
	Body   []byte
	Serial uint64
	Now    time.Time
}

// Endpoint returns the service's URL from the request, without a slash at its end.
func (c *Call) Endpoint() string { return c.Req.URL.Scheme + "://" + c.Req.URL.Host }

// Header returns a header of the request, whose name may be in the canonical form or spelled exactly as in
// name.
func Header(h http.Header, name string) string {
	if value := h.Get(name); value != "" {
		return value
	}
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Query returns the query parameters of a URL.
func Query(u *url.URL) url.Values { return ParseQuery(u.RawQuery) }

// ParseQuery parses a query. A semicolon is an ordinary character; net/url drops parameters that contain one.
func ParseQuery(raw string) url.Values {
	if strings.IndexByte(raw, ';') >= 0 {
		raw = strings.ReplaceAll(raw, ";", "%3B")
	}
	// Malformed parameters are omitted, as in url.URL.Query.
	values, _ := url.ParseQuery(raw)
	return values
}

// SameName compares names of tables, ignoring case. Names are ASCII, so names of different lengths in bytes
// differ, even if Unicode would fold a longer character to an ASCII letter.
func SameName(a, b string) bool { return len(a) == len(b) && strings.EqualFold(a, b) }
