package exchange

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/document"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// refuse answers with a fault: its code in a header, and again in a body unless the request or the status allows none.
func (c *Call) refuse(f *protocol.Fault) *protocol.Answer {
	a := protocol.NewAnswer(f.Status)
	a.Header.Set("x-ms-error-code", f.Code)
	if c.Req.Method == http.MethodHead || f.Status == http.StatusNotModified {
		return a
	}
	w := document.New("Error")
	w.Element("Code", f.Code)
	w.Element("Message", fmt.Sprintf("%s\nRequestId:%s\nTime:%s", f.Message, c.requestID(), c.Now.Format(protocol.TimeFormat)))
	for _, d := range f.Details {
		w.Element(d[0], d[1])
	}
	return w.Answer(a)
}

// InvalidQuery refuses the value of a query parameter, and says why.
func InvalidQuery(name, value, reason string) *protocol.Fault {
	return protocol.InvalidQueryValue().
		With("QueryParameterName", name).With("QueryParameterValue", value).With("Reason", reason)
}

func queryOutOfRange(name string, value, least, most int64) *protocol.Fault {
	return protocol.Refuse(http.StatusBadRequest, "OutOfRangeQueryParameterValue",
		"One of the query parameters specified in the request URI is outside the permissible range.").
		With("QueryParameterName", name).With("QueryParameterValue", strconv.FormatInt(value, 10)).
		With("MinimumAllowed", strconv.FormatInt(least, 10)).With("MaximumAllowed", strconv.FormatInt(most, 10))
}

// MissingQuery refuses a request without a query parameter.
func MissingQuery(name string) *protocol.Fault {
	return protocol.Refuse(http.StatusBadRequest, "MissingRequiredQueryParameter",
		"A query parameter that's mandatory for this request is not specified.").With("QueryParameterName", name)
}

// InvalidHeader refuses the value of a header.
func InvalidHeader(name, value string) *protocol.Fault {
	return protocol.InvalidHeaderValue().With("HeaderName", name).With("HeaderValue", value)
}

// MissingHeader refuses a request without a header.
func MissingHeader(name string) *protocol.Fault {
	return protocol.MissingHeader().With("HeaderName", name)
}

// UnsupportedHeader refuses a header that the simulator does not implement.
func UnsupportedHeader(name string) *protocol.Fault {
	return protocol.Refuse(http.StatusBadRequest, "UnsupportedHeader",
		"One of the HTTP headers specified in the request is not supported.").With("HeaderName", name)
}

// UnsupportedVerb refuses a method.
func UnsupportedVerb(method string) *protocol.Fault {
	return protocol.Refuse(http.StatusMethodNotAllowed, "UnsupportedHttpVerb",
		"The resource doesn't support specified Http Verb.").With("Verb", method)
}

// BodyTooLarge refuses a body of more bytes than the limit.
func BodyTooLarge(limit int64) *protocol.Fault {
	return protocol.BodyTooLarge().With("MaxLimit", strconv.FormatInt(limit, 10))
}

// CheckName holds the rule that names of queues and containers share: 3 to 63 lower-case letters, digits and single
// dashes, with a letter or digit first and last.
func CheckName(name string) *protocol.Fault {
	if len(name) < 3 || len(name) > 63 {
		return protocol.Refuse(http.StatusBadRequest, "OutOfRangeInput",
			"The specified resource name length is not within the permissible limits.")
	}
	for i := range len(name) {
		c := name[i]
		dash := c == '-' && i > 0 && i < len(name)-1 && name[i-1] != '-'
		if !dash && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return protocol.Refuse(http.StatusBadRequest, "InvalidResourceName",
				"The specifed resource name contains invalid characters.")
		}
	}
	return nil
}

// Time is a time as headers and bodies of both services have it: to the second.
func Time(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
