package protocol

import (
	"net/http"
)

// Fault is an error response, with the service's status, code and message. Clients depend only on the code; the message has
// the service's wording, so that a test's log resembles one of production.
type Fault struct {
	Status        int
	Code, Message string
	Details       [][2]string // further elements of an XML body, in order: name, text
}

// Error returns code and message.
func (f *Fault) Error() string { return f.Code + ": " + f.Message }

// TimeFormat is the format of times in error responses and policies.
const TimeFormat = "2006-01-02T15:04:05.0000000Z"

// WithoutCode returns the fault without code, as it is reported for half of the failing transactions.
func (f *Fault) WithoutCode() *Fault {
	told := *f
	told.Code = ""
	return &told
}

// With returns the fault with an additional detail.
func (f *Fault) With(name, text string) *Fault {
	f.Details = append(f.Details, [2]string{name, text})
	return f
}

// Refuse makes a fault from status, code and message.
func Refuse(status int, code, message string) *Fault {
	return &Fault{Status: status, Code: code, Message: message}
}

// The faults that several parts of the simulator return.

// InvalidInput returns the fault of a request, with a message that gives the reason.
func InvalidInput(message string) *Fault {
	return Refuse(http.StatusBadRequest, "InvalidInput", message)
}

// InvalidSyntax returns the fault of a URL or query that cannot be parsed.
func InvalidSyntax() *Fault { return InvalidInput("Bad Request - Error in query syntax.") }

// MethodNotAllowed returns the fault of a method that is not allowed.
func MethodNotAllowed() *Fault {
	return Refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "The requested method is not allowed on the specified resource.")
}

// InvalidQueryValue returns the fault of an invalid query parameter.
func InvalidQueryValue() *Fault {
	return Refuse(http.StatusBadRequest, "InvalidQueryParameterValue", "Value for one of the query parameters specified in the request URI is invalid.")
}

// InvalidHeaderValue returns the fault of an invalid header.
func InvalidHeaderValue() *Fault {
	return Refuse(http.StatusBadRequest, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.")
}

// ServerBusy returns the fault of an overloaded service.
func ServerBusy() *Fault {
	return Refuse(http.StatusServiceUnavailable, "ServerBusy", "The server is busy.")
}

// BodyTooLarge returns the fault of a body that is too long.
func BodyTooLarge() *Fault {
	return Refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit.")
}

// MissingHeader returns the fault of a request without a required header.
func MissingHeader() *Fault {
	return Refuse(http.StatusBadRequest, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified.")
}
