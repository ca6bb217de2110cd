package exchange

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// metaPrefix is the beginning of the names of metadata headers.
const metaPrefix = "x-ms-meta-"

// Call is one request to the queue or the blob service.
type Call struct {
	*protocol.Call
	Header   http.Header // the request's headers, with canonical names: in the transport they still have the spelling of the SDK
	Query    url.Values
	Metadata map[string]string // x-ms-meta-*, with the names as sent
}

// newCall returns the Call of a request. Services that store the body keep it without a copy.
func newCall(call *protocol.Call) *Call {
	c := &Call{Call: call, Header: make(http.Header, len(call.Req.Header)), Query: protocol.Query(call.Req.URL)}
	for name, values := range call.Req.Header {
		if len(name) >= len(metaPrefix) && strings.EqualFold(name[:len(metaPrefix)], metaPrefix) {
			if c.Metadata == nil {
				c.Metadata = map[string]string{}
			}
			c.Metadata[name[len(metaPrefix):]] = strings.TrimSpace(strings.Join(values, ","))
			continue
		}
		c.Header[http.CanonicalHeaderKey(name)] = values
	}
	return c
}

func (c *Call) requestID() string { return ID("request", c.Serial) }

// ID returns an id in the services' format. It does not show the order in which ids were made, and a run with the same seed
// makes the same ids.
func ID(kind string, serial uint64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", kind, serial))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// finish adds the headers that every response has.
func (c *Call) finish(a *protocol.Answer) *protocol.Answer {
	a.Header.Set("x-ms-request-id", c.requestID())
	a.Header.Set("Date", Time(c.Now))
	if v := c.Header.Get("x-ms-version"); v != "" {
		a.Header.Set("x-ms-version", v)
	}
	if id := c.Header.Get("x-ms-client-request-id"); id != "" {
		a.Header.Set("x-ms-client-request-id", id)
	}
	return a
}

// Since reports whether the request's protocol version is the given one or later. A request without a version has the newest.
func (c *Call) Since(version string) bool {
	v := c.Header.Get("x-ms-version")
	return v == "" || v >= version
}

// Number returns a query parameter, which must be between least and most, or the value standard if the
// parameter is absent.
func (c *Call) Number(name string, standard, least, most int64) (int64, *protocol.Fault) {
	if !c.Query.Has(name) {
		return standard, nil
	}
	text := c.Query.Get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, InvalidQuery(name, text, "Failed to parse the value as an integer.")
	}
	if n < least || n > most {
		return 0, queryOutOfRange(name, n, least, most)
	}
	return n, nil
}

// HeaderNumber returns a header that must be a number of 0 or more, or -1 if it is absent.
func (c *Call) HeaderNumber(name string) (int64, *protocol.Fault) {
	text := c.Header.Get(name)
	if text == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, InvalidHeader(name, text)
	}
	return n, nil
}

// Includes reports whether the include parameter of a listing contains the word what.
func (c *Call) Includes(what string) bool {
	for _, item := range strings.Split(c.Query.Get("include"), ",") {
		if strings.TrimSpace(item) == what {
			return true
		}
	}
	return false
}

// maxMetadata is the maximum size of metadata in bytes, names and values together.
const maxMetadata = 8 << 10

// CheckMetadata checks the names and the size of metadata.
func (c *Call) CheckMetadata() *protocol.Fault {
	total := 0
	for name, value := range c.Metadata {
		if name == "" {
			return protocol.Refuse(http.StatusBadRequest, "EmptyMetadataKey",
				"The key for one of the metadata key-value pairs is empty.")
		}
		total += len(name) + len(value)
		if !metadataName(name) || !metadataValue(value) {
			return protocol.Refuse(http.StatusBadRequest, "InvalidMetadata",
				"The metadata specified is invalid. It has characters that are not permitted.")
		}
	}
	if total > maxMetadata {
		return protocol.Refuse(http.StatusBadRequest, "MetadataTooLarge",
			"The size of the specified metadata exceeds the maximum size permitted.")
	}
	return nil
}

// metadataName reports whether name is an ASCII identifier; headers cannot contain others.
func metadataName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func metadataValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < 0x20 && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// SetMetadata adds metadata to the headers of a response.
func SetMetadata(h http.Header, m map[string]string) {
	for name, value := range m {
		h.Set(metaPrefix+name, value)
	}
}
