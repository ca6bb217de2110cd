package protocol

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Service is the part of a host that tells the services of an account apart.
type Service string

// The services of an account.
const (
	Table Service = "table"
	Queue Service = "queue"
	Blob  Service = "blob"
)

// Call is one request on its way to a service: the Serial-th of its account, at a time of the account's clock.
type Call struct {
	Req    *http.Request
	Body   []byte
	Serial uint64
	Now    time.Time
}

// Endpoint is the service's address as the request has it, without a slash at its end.
func (c *Call) Endpoint() string { return c.Req.URL.Scheme + "://" + c.Req.URL.Host }

// Header reads a header that clients spell in the canonical way or as it is spelled here.
func Header(h http.Header, name string) string {
	if value := h.Get(name); value != "" {
		return value
	}
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Query reads an address's query.
func Query(u *url.URL) url.Values { return ParseQuery(u.RawQuery) }

// ParseQuery reads a query. A semicolon is a character like any other, though Go's reader drops what holds one.
func ParseQuery(raw string) url.Values {
	if strings.IndexByte(raw, ';') >= 0 {
		raw = strings.ReplaceAll(raw, ";", "%3B")
	}
	// What is malformed is left out, as url.URL.Query leaves it out.
	values, _ := url.ParseQuery(raw)
	return values
}

// SameName compares names of tables, which know no difference in case. They are ASCII: what Unicode folds to a letter of it
// is longer.
func SameName(a, b string) bool { return len(a) == len(b) && strings.EqualFold(a, b) }
