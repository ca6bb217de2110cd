package protocol

import (
	"net/http"
)

// Fault is a refusal, with the service's status, code and message. Clients act on the code alone; the message is worded as the
// service words it, so that a test's log looks like one of production.
type Fault struct {
	Status        int
	Code, Message string
	Details       [][2]string // further elements of a body in XML, in order: name, text
}

// Error returns code and message.
func (f *Fault) Error() string { return f.Code + ": " + f.Message }

// TimeFormat is the form of times in refusals and policies.
const TimeFormat = "2006-01-02T15:04:05.0000000Z"

// WithoutCode is the fault as half of the failing transactions tell it.
func (f *Fault) WithoutCode() *Fault {
	told := *f
	told.Code = ""
	return &told
}

// With returns the fault with one more detail.
func (f *Fault) With(name, text string) *Fault {
	f.Details = append(f.Details, [2]string{name, text})
	return f
}

// Refuse makes a fault.
func Refuse(status int, code, message string) *Fault {
	return &Fault{Status: status, Code: code, Message: message}
}

// The faults that more than one place finds.

// InvalidInput refuses a request for a reason that the message gives.
func InvalidInput(message string) *Fault {
	return Refuse(http.StatusBadRequest, "InvalidInput", message)
}

// InvalidSyntax refuses an address or a query that cannot be parsed.
func InvalidSyntax() *Fault { return InvalidInput("Bad Request - Error in query syntax.") }

// MethodNotAllowed refuses a method.
func MethodNotAllowed() *Fault {
	return Refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "The requested method is not allowed on the specified resource.")
}

// InvalidQueryValue refuses the value of a query parameter.
func InvalidQueryValue() *Fault {
	return Refuse(http.StatusBadRequest, "InvalidQueryParameterValue", "Value for one of the query parameters specified in the request URI is invalid.")
}

// InvalidHeaderValue refuses the value of a header.
func InvalidHeaderValue() *Fault {
	return Refuse(http.StatusBadRequest, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.")
}

// ServerBusy refuses any request: the service is overloaded.
func ServerBusy() *Fault {
	return Refuse(http.StatusServiceUnavailable, "ServerBusy", "The server is busy.")
}

// BodyTooLarge refuses a body that is longer than its limit.
func BodyTooLarge() *Fault {
	return Refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit.")
}

// MissingHeader refuses a request without a header.
func MissingHeader() *Fault {
	return Refuse(http.StatusBadRequest, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified.")
}
