package simulator

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// metaPrefix begins the names of headers that hold metadata.
const metaPrefix = "x-ms-meta-"

// xmlCall is one request to the queue or the blob service.
type xmlCall struct {
	*Call
	header   http.Header // the request's, with canonical names: a transport sees them as the SDK spelled them
	query    url.Values
	metadata map[string]string // x-ms-meta-*, names as they were sent
}

// newXMLCall reads the request. The body is kept, not copied, by services that store it.
func newXMLCall(call *Call) *xmlCall {
	c := &xmlCall{Call: call, header: make(http.Header, len(call.Req.Header)), query: Query(call.Req.URL)}
	for name, values := range call.Req.Header {
		if len(name) >= len(metaPrefix) && strings.EqualFold(name[:len(metaPrefix)], metaPrefix) {
			if c.metadata == nil {
				c.metadata = map[string]string{}
			}
			c.metadata[name[len(metaPrefix):]] = strings.TrimSpace(strings.Join(values, ","))
			continue
		}
		c.header[http.CanonicalHeaderKey(name)] = values
	}
	return c
}

func (c *xmlCall) requestID() string { return xmlID("request", c.Serial) }

// xmlID makes an id of the usual shape. It tells nothing of the order ids were made in, and a seeded run makes the same ones.
func xmlID(kind string, serial uint64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", kind, serial))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// finish adds the headers that every answer has.
func (c *xmlCall) finish(a *answer) *answer {
	a.header.Set("x-ms-request-id", c.requestID())
	a.header.Set("Date", xmlTime(c.Now))
	if v := c.header.Get("x-ms-version"); v != "" {
		a.header.Set("x-ms-version", v)
	}
	if id := c.header.Get("x-ms-client-request-id"); id != "" {
		a.header.Set("x-ms-client-request-id", id)
	}
	return a
}

// since says whether the request speaks the given version of the protocol or a later one; one that names none, the newest.
func (c *xmlCall) since(version string) bool {
	v := c.header.Get("x-ms-version")
	return v == "" || v >= version
}

// number reads a query parameter between two bounds; absent, it is standard.
func (c *xmlCall) number(name string, standard, least, most int64) (int64, *Fault) {
	if !c.query.Has(name) {
		return standard, nil
	}
	text := c.query.Get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, xmlInvalidQuery(name, text, "Failed to parse the value as an integer.")
	}
	if n < least || n > most {
		return 0, xmlQueryOutOfRange(name, n, least, most)
	}
	return n, nil
}

// headerNumber reads a header that holds a number not below zero; absent, it is -1.
func (c *xmlCall) headerNumber(name string) (int64, *Fault) {
	text := c.header.Get(name)
	if text == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, xmlInvalidHeader(name, text)
	}
	return n, nil
}

// includes says whether a listing was asked for something more.
func (c *xmlCall) includes(what string) bool {
	for _, item := range strings.Split(c.query.Get("include"), ",") {
		if strings.TrimSpace(item) == what {
			return true
		}
	}
	return false
}

// xmlMaxMetadata is the most bytes of metadata, names and values together.
const xmlMaxMetadata = 8 << 10

// checkMetadata holds the rules for names and for size.
func (c *xmlCall) checkMetadata() *Fault {
	total := 0
	for name, value := range c.metadata {
		if name == "" {
			return refuse(http.StatusBadRequest, "EmptyMetadataKey",
				"The key for one of the metadata key-value pairs is empty.")
		}
		total += len(name) + len(value)
		if !xmlMetadataName(name) || !xmlMetadataValue(value) {
			return refuse(http.StatusBadRequest, "InvalidMetadata",
				"The metadata specified is invalid. It has characters that are not permitted.")
		}
	}
	if total > xmlMaxMetadata {
		return refuse(http.StatusBadRequest, "MetadataTooLarge",
			"The size of the specified metadata exceeds the maximum size permitted.")
	}
	return nil
}

// xmlMetadataName says whether name is an identifier: headers cannot hold others than ASCII ones.
func xmlMetadataName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func xmlMetadataValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < 0x20 && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// setMetadata puts metadata among an answer's headers.
func setMetadata(h http.Header, m map[string]string) {
	for name, value := range m {
		h.Set(metaPrefix+name, value)
	}
}
