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

// Mode is one of the ways in which a call fails. It is a [Fault], and an [Injector] that injects itself into every
// call.
type Mode uint8

const (
	// NotSent refuses the connection, so the service certainly never received the call.
	NotSent Mode = iota + 1
	// LostAnswer resets the connection after the service has carried out the call, before the response arrives.
	LostAnswer
	// Applied500 answers 500 InternalError, although the service has carried out the call.
	Applied500
	// Before500 answers 500 InternalError, and the service does nothing.
	Before500
	// Throttled answers 503 ServerBusy, and the service does nothing.
	Throttled
	// DiesBefore ends the client's process before it sends the call. This call and all later ones of the client
	// fail.
	DiesBefore
	// DiesAfter ends the client's process after the service has carried out the call. This call and all later ones
	// of the client fail.
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

// Inject injects the mode into every call; the zero Mode injects nothing.
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

// transportError wraps err as http.Client does, with the call's address but without its signature, since
// tests log the error.
func transportError(req *http.Request, err error) error {
	verb := req.Method[:1] + strings.ToLower(req.Method[1:])
	return &url.Error{Op: verb, URL: wire.RedactText(req.URL.String()), Err: err}
}

// closeBody closes the body of a request that is not sent, as a transport must.
func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// discard reads a response to its end and returns the connection to the pool. Without reading, the service
// might not have finished the call, which a fault like LostAnswer guarantees.
func discard(resp *http.Response) {
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// Before returns a fault that calls do first, for example to make a concurrent write, and then sends the call
// unchanged. Its String method returns "Before " and name.
func Before(name string, do func()) Fault { return aside{name: "Before " + name, before: do} }

// After returns a fault that calls do after the service has answered, and then returns the response.
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
