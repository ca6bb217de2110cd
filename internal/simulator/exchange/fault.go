package exchange

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/document"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// refuse returns the response for a fault: its code is in a header, and in the body unless method or status allow none.
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

// InvalidQuery returns the fault of an invalid query parameter, with a reason.
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

// MissingQuery returns the fault of a missing query parameter.
func MissingQuery(name string) *protocol.Fault {
	return protocol.Refuse(http.StatusBadRequest, "MissingRequiredQueryParameter",
		"A query parameter that's mandatory for this request is not specified.").With("QueryParameterName", name)
}

// InvalidHeader returns the fault of an invalid header.
func InvalidHeader(name, value string) *protocol.Fault {
	return protocol.InvalidHeaderValue().With("HeaderName", name).With("HeaderValue", value)
}

// MissingHeader returns the fault of a missing header.
func MissingHeader(name string) *protocol.Fault {
	return protocol.MissingHeader().With("HeaderName", name)
}

// UnsupportedHeader returns the fault of a header that the simulator does not implement.
func UnsupportedHeader(name string) *protocol.Fault {
	return protocol.Refuse(http.StatusBadRequest, "UnsupportedHeader",
		"One of the HTTP headers specified in the request is not supported.").With("HeaderName", name)
}

// UnsupportedVerb returns the fault of a method that is not supported.
func UnsupportedVerb(method string) *protocol.Fault {
	return protocol.Refuse(http.StatusMethodNotAllowed, "UnsupportedHttpVerb",
		"The resource doesn't support specified Http Verb.").With("Verb", method)
}

// BodyTooLarge returns the fault of a body of more bytes than the limit.
func BodyTooLarge(limit int64) *protocol.Fault {
	return protocol.BodyTooLarge().With("MaxLimit", strconv.FormatInt(limit, 10))
}

// CheckName checks the name of a queue or container: 3 to 63 lower-case letters, digits and single dashes, beginning and
// ending with a letter or digit.
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

// Time formats a time as in headers and bodies of both services, in whole seconds.
func Time(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
