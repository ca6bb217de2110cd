package simulator

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// xmlError is a refusal by the queue or the blob service. Clients act on the code alone; status and message are worded as
// the services word them, so that what is logged in a test looks like what is logged in production.
type xmlError struct {
	status  int
	code    string
	message string
	details [][2]string // further elements of the body, in order: name, text
}

func (e *xmlError) Error() string { return strconv.Itoa(e.status) + " " + e.code + ": " + e.message }

// with returns the error with one more detail.
func (e *xmlError) with(name, text string) *xmlError {
	e.details = append(e.details, [2]string{name, text})
	return e
}

func newXMLError(status int, code, message string) *xmlError {
	return &xmlError{status: status, code: code, message: message}
}

// answer writes the error the way the services do: the code in a header, and again in a body unless none is allowed.
func (e *xmlError) answer(c *xmlCall) *answer {
	a := newAnswer(e.status)
	a.header.Set("x-ms-error-code", e.code)
	if c.req.Method == http.MethodHead || e.status == http.StatusNotModified {
		return a
	}
	w := newXMLWriter("Error")
	w.element("Code", e.code)
	w.element("Message", fmt.Sprintf("%s\nRequestId:%s\nTime:%s", e.message, c.requestID, c.now.Format("2006-01-02T15:04:05.0000000Z")))
	for _, d := range e.details {
		w.element(d[0], d[1])
	}
	return w.answer(a)
}

func xmlInvalidQuery(name, value, reason string) *xmlError {
	return newXMLError(http.StatusBadRequest, "InvalidQueryParameterValue",
		"Value for one of the query parameters specified in the request URI is invalid.").
		with("QueryParameterName", name).with("QueryParameterValue", value).with("Reason", reason)
}

func xmlQueryOutOfRange(name string, value, least, most int64) *xmlError {
	return newXMLError(http.StatusBadRequest, "OutOfRangeQueryParameterValue",
		"One of the query parameters specified in the request URI is outside the permissible range.").
		with("QueryParameterName", name).with("QueryParameterValue", strconv.FormatInt(value, 10)).
		with("MinimumAllowed", strconv.FormatInt(least, 10)).with("MaximumAllowed", strconv.FormatInt(most, 10))
}

func xmlMissingQuery(name string) *xmlError {
	return newXMLError(http.StatusBadRequest, "MissingRequiredQueryParameter",
		"A query parameter that's mandatory for this request is not specified.").with("QueryParameterName", name)
}

func xmlInvalidHeader(name, value string) *xmlError {
	return newXMLError(http.StatusBadRequest, "InvalidHeaderValue",
		"The value for one of the HTTP headers is not in the correct format.").
		with("HeaderName", name).with("HeaderValue", value)
}

func xmlMissingHeader(name string) *xmlError {
	return newXMLError(http.StatusBadRequest, "MissingRequiredHeader",
		"An HTTP header that's mandatory for this request is not specified.").with("HeaderName", name)
}

func xmlUnsupportedHeader(name string) *xmlError {
	return newXMLError(http.StatusBadRequest, "UnsupportedHeader",
		"One of the HTTP headers specified in the request is not supported.").with("HeaderName", name)
}

func xmlUnsupportedVerb(method string) *xmlError {
	return newXMLError(http.StatusMethodNotAllowed, "UnsupportedHttpVerb",
		"The resource doesn't support specified Http Verb.").with("Verb", method)
}

func xmlInvalidDocument(reason string) *xmlError {
	return newXMLError(http.StatusBadRequest, "InvalidXmlDocument", "XML specified is not syntactically valid.").
		with("Reason", reason)
}

func xmlInvalidNode(name, value string) *xmlError {
	return newXMLError(http.StatusBadRequest, "InvalidXmlNodeValue", "The value for one of the XML nodes is not in the correct format.").
		with("XmlNodeName", name).with("XmlNodeValue", value)
}

func xmlBodyTooLarge(limit int64) *xmlError {
	return newXMLError(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge",
		"The request body is too large and exceeds the maximum permissible limit.").
		with("MaxLimit", strconv.FormatInt(limit, 10))
}

// xmlCheckName holds the rule that names of queues and containers share: 3 to 63 lower-case letters, digits and single
// dashes, with a letter or digit first and last.
func xmlCheckName(name string) *xmlError {
	if len(name) < 3 || len(name) > 63 {
		return newXMLError(http.StatusBadRequest, "OutOfRangeInput",
			"The specified resource name length is not within the permissible limits.")
	}
	for i := range len(name) {
		c := name[i]
		dash := c == '-' && i > 0 && i < len(name)-1 && name[i-1] != '-'
		if !dash && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return newXMLError(http.StatusBadRequest, "InvalidResourceName",
				"The specifed resource name contains invalid characters.")
		}
	}
	return nil
}

// xmlTime is a time as headers and bodies of both services have it: to the second.
func xmlTime(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// ticksToUnix is how many ticks of 100 ns lie between the year 1 and the Unix epoch.
const ticksToUnix = 621355968000000000

// xmlETag makes an ETag of a change's time: in ticks, as the services' own. No two stamps of a Clock are equal, so no two
// ETags are.
func xmlETag(stamp time.Time) string {
	return fmt.Sprintf(`"0x%X"`, ticksToUnix+stamp.Unix()*1e7+int64(stamp.Nanosecond()/100))
}

// sameETag compares as the services do, which take an ETag without its quotes too.
func sameETag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }
