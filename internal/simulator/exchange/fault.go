package simulator

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// refuse answers with a fault: its code in a header, and again in a body unless the request or the status allows none.
func (c *xmlCall) refuse(f *Fault) *answer {
	a := newAnswer(f.Status)
	a.header.Set("x-ms-error-code", f.Code)
	if c.Req.Method == http.MethodHead || f.Status == http.StatusNotModified {
		return a
	}
	w := newXMLWriter("Error")
	w.element("Code", f.Code)
	w.element("Message", fmt.Sprintf("%s\nRequestId:%s\nTime:%s", f.Message, c.requestID(), c.Now.Format(TimeFormat)))
	for _, d := range f.Details {
		w.element(d[0], d[1])
	}
	return w.answer(a)
}

func xmlInvalidQuery(name, value, reason string) *Fault {
	return faultQueryValue().
		with("QueryParameterName", name).with("QueryParameterValue", value).with("Reason", reason)
}

func xmlQueryOutOfRange(name string, value, least, most int64) *Fault {
	return refuse(http.StatusBadRequest, "OutOfRangeQueryParameterValue",
		"One of the query parameters specified in the request URI is outside the permissible range.").
		with("QueryParameterName", name).with("QueryParameterValue", strconv.FormatInt(value, 10)).
		with("MinimumAllowed", strconv.FormatInt(least, 10)).with("MaximumAllowed", strconv.FormatInt(most, 10))
}

func xmlMissingQuery(name string) *Fault {
	return refuse(http.StatusBadRequest, "MissingRequiredQueryParameter",
		"A query parameter that's mandatory for this request is not specified.").with("QueryParameterName", name)
}

func xmlInvalidHeader(name, value string) *Fault {
	return faultHeaderValue().with("HeaderName", name).with("HeaderValue", value)
}

func xmlMissingHeader(name string) *Fault {
	return faultMissingHeader().with("HeaderName", name)
}

func xmlUnsupportedHeader(name string) *Fault {
	return refuse(http.StatusBadRequest, "UnsupportedHeader",
		"One of the HTTP headers specified in the request is not supported.").with("HeaderName", name)
}

func xmlUnsupportedVerb(method string) *Fault {
	return refuse(http.StatusMethodNotAllowed, "UnsupportedHttpVerb",
		"The resource doesn't support specified Http Verb.").with("Verb", method)
}

func xmlBodyTooLarge(limit int64) *Fault {
	return faultTooLarge().with("MaxLimit", strconv.FormatInt(limit, 10))
}

// xmlCheckName holds the rule that names of queues and containers share: 3 to 63 lower-case letters, digits and single
// dashes, with a letter or digit first and last.
func xmlCheckName(name string) *Fault {
	if len(name) < 3 || len(name) > 63 {
		return refuse(http.StatusBadRequest, "OutOfRangeInput",
			"The specified resource name length is not within the permissible limits.")
	}
	for i := range len(name) {
		c := name[i]
		dash := c == '-' && i > 0 && i < len(name)-1 && name[i-1] != '-'
		if !dash && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return refuse(http.StatusBadRequest, "InvalidResourceName",
				"The specifed resource name contains invalid characters.")
		}
	}
	return nil
}

// xmlTime is a time as headers and bodies of both services have it: to the second.
func xmlTime(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
