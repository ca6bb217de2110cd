package simulator

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

func (f *Fault) Error() string { return f.Code + ": " + f.Message }

// TimeFormat is the form of times in refusals and policies.
const TimeFormat = "2006-01-02T15:04:05.0000000Z"

// WithoutCode is the fault as half of the failing transactions tell it.
func (f *Fault) WithoutCode() *Fault {
	told := *f
	told.Code = ""
	return &told
}

// with returns the fault with one more detail.
func (f *Fault) with(name, text string) *Fault {
	f.Details = append(f.Details, [2]string{name, text})
	return f
}

func refuse(status int, code, message string) *Fault {
	return &Fault{Status: status, Code: code, Message: message}
}

// The faults that more than one place finds.

func faultInput(message string) *Fault {
	return refuse(http.StatusBadRequest, "InvalidInput", message)
}

func faultSyntax() *Fault { return faultInput("Bad Request - Error in query syntax.") }

func faultMethod() *Fault {
	return refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "The requested method is not allowed on the specified resource.")
}

func faultQueryValue() *Fault {
	return refuse(http.StatusBadRequest, "InvalidQueryParameterValue", "Value for one of the query parameters specified in the request URI is invalid.")
}

func faultHeaderValue() *Fault {
	return refuse(http.StatusBadRequest, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.")
}

func faultServerBusy() *Fault {
	return refuse(http.StatusServiceUnavailable, "ServerBusy", "The server is busy.")
}

func faultTooLarge() *Fault {
	return refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit.")
}

func faultMissingHeader() *Fault {
	return refuse(http.StatusBadRequest, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified.")
}
