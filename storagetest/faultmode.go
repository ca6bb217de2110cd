package storagetest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Mode is one of the ways in which a call goes wrong. It is a [Fault], and the [Injector] of itself into every call.
type Mode uint8

const (
	// NotSent: the connection cannot be made, so the service surely never saw the call.
	NotSent Mode = iota + 1
	// LostAnswer: the service did its work, and the connection was reset before the answer.
	LostAnswer
	// Applied500: the service did its work, and answered 500 InternalError all the same.
	Applied500
	// Before500: the service did nothing, and answered 500 InternalError.
	Before500
	// Throttled: the service did nothing, and answered 503 ServerBusy.
	Throttled
	// DiesBefore: the client's process dies with the call unsent. This call and all later ones of the client fail.
	DiesBefore
	// DiesAfter: the client's process dies after the service did its work. This call and all later ones of the client fail.
	DiesAfter
)

var modeNames = [...]string{"None", "NotSent", "LostAnswer", "Applied500", "Before500", "Throttled", "DiesBefore", "DiesAfter"}

// String is the constant's name.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Inject injects the mode into every call; the zero Mode into none.
func (m Mode) Inject(Call) Fault {
	if m == 0 {
		return nil
	}
	return m
}

// Meet applies the mode to a call.
func (m Mode) Meet(call Call, req *http.Request, send Send) (*http.Response, error) {
	switch m {
	case NotSent:
		closeBody(req)
		return nil, transportError(req, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})
	case Before500:
		closeBody(req)
		return errorAnswer(call, req, http.StatusInternalServerError, "InternalError", internalErrorText), nil
	case Throttled:
		closeBody(req)
		return errorAnswer(call, req, http.StatusServiceUnavailable, "ServerBusy", "The server is busy."), nil
	case DiesBefore:
		closeBody(req)
		return nil, diedError{}
	}
	resp, err := send()
	if err != nil {
		return nil, err
	}
	switch m {
	case LostAnswer:
		discard(resp)
		return nil, transportError(req, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)})
	case Applied500:
		discard(resp)
		return errorAnswer(call, req, http.StatusInternalServerError, "InternalError", internalErrorText), nil
	case DiesAfter:
		discard(resp)
		return nil, diedError{}
	}
	return resp, nil
}

const internalErrorText = "Server encountered an internal error. Please try again after some time."

// transportError is err as http.Client hands it over, with the call's address; without its signature, since this ends up
// in a test's log.
func transportError(req *http.Request, err error) error {
	verb := req.Method[:1] + strings.ToLower(req.Method[1:])
	return &url.Error{Op: verb, URL: wire.RedactText(req.URL.String()), Err: err}
}

// closeBody does what a transport owes to the body of a request that it does not send.
func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// discard gives a connection back. It reads the answer to its end: one that is not read is not always done on the service,
// and a fault that says so has to be true.
func discard(resp *http.Response) {
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// Before is a fault that does something else first, such as a rival's write, and then leaves the call as it is. Name is
// for String.
func Before(name string, do func()) Fault { return aside{name: "Before " + name, before: do} }

// After is a fault that does something else once the service has answered, and then hands over the answer.
func After(name string, do func()) Fault { return aside{name: "After " + name, after: do} }

type aside struct {
	name          string
	before, after func()
}

func (a aside) String() string { return a.name }

func (a aside) Meet(_ Call, _ *http.Request, send Send) (*http.Response, error) {
	if a.before != nil {
		a.before()
	}
	resp, err := send()
	if a.after != nil {
		a.after()
	}
	return resp, err
}
