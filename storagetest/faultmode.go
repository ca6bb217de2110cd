package storagetest

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Mode is a way in which a call fails: a [Fault], and an [Injector] of itself into every call.
type Mode uint8

const (
	// NotSent refuses the connection: the service never received the call.
	NotSent Mode = iota + 1
	// LostAnswer resets the connection after the service has carried out the call.
	LostAnswer
	// Applied500 answers 500 InternalError after the service has carried out the call.
	Applied500
	// Before500 answers 500 InternalError, and the service does nothing.
	Before500
	// Throttled answers 503 ServerBusy, and the service does nothing.
	Throttled
	// DiesBefore ends the client's process before it sends the call; all later calls fail, too.
	DiesBefore
	// DiesAfter ends the client's process after the service has carried out the call; all later calls fail, too.
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

// transportError wraps err as http.Client does, without the signature in the address, since tests log it.
func transportError(req *http.Request, err error) error {
	verb := req.Method[:1] + strings.ToLower(req.Method[1:])
	return &url.Error{Op: verb, URL: wire.RedactText(req.URL.String()), Err: err}
}

// closeBody is a duty of a transport that does not send a request.
func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// discard reads a response to its end: then the service has finished the call, as LostAnswer promises, and the connection is free.
func discard(resp *http.Response) {
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// Before returns a fault that calls do, for example for a concurrent write, and then sends the call unchanged. Its String is "Before " and name.
func Before(name string, do func()) Fault {
	return aside{"Before " + name, func(send Send) (*http.Response, error) {
		do()
		return send()
	}}
}

// After returns a fault that calls do when the service has answered.
func After(name string, do func()) Fault {
	return aside{"After " + name, func(send Send) (*http.Response, error) {
		resp, err := send()
		do()
		return resp, err
	}}
}

type aside struct {
	name string
	meet func(send Send) (*http.Response, error)
}

func (a aside) String() string { return a.name }

func (a aside) Meet(_ Call, _ *http.Request, send Send) (*http.Response, error) { return a.meet(send) }

// Refusal is a fault in which the service only refuses a call with a status and a code, such as 409 BlobArchived; also an [Injector] of itself into
// every call.
type Refusal struct {
	// Status is the response's status.
	Status int
	// Code is the error code; "" for none, as of a gateway.
	Code string
}

// String says, for example, "Refusal(409 BlobArchived)".
func (r Refusal) String() string {
	return "Refusal(" + strings.TrimSpace(strconv.Itoa(r.Status)+" "+r.Code) + ")"
}

// Inject injects the refusal into every call.
func (r Refusal) Inject(Call) Fault { return r }

// Meet answers the call. A transaction is refused as a whole.
func (r Refusal) Meet(call Call, req *http.Request, _ Send) (*http.Response, error) {
	closeBody(req)
	resp := errorAnswer(call, req, r.Status, r.Code, "The service refused the request.")
	if r.Code == "" {
		resp.Header.Del("X-Ms-Error-Code")
		resp.Header.Set("Content-Length", "0")
		resp.ContentLength, resp.Body = 0, http.NoBody
	}
	return resp, nil
}

// errorAnswer has the form of the call's service.
func errorAnswer(call Call, req *http.Request, status int, code, message string) *http.Response {
	id := fmt.Sprintf("00000000-0000-4000-8000-%012x", call.Index)
	text := message + "\nRequestId:" + id + "\nTime:" + time.Now().UTC().Format("2006-01-02T15:04:05.0000000Z")
	h := http.Header{"X-Ms-Request-Id": {id}, "X-Ms-Version": {header(req, "x-ms-version")}}
	var body string
	if call.Service == TableService {
		h.Set("Content-Type", "application/json;odata=minimalmetadata;streaming=true;charset=utf-8")
		value, _ := json.Marshal(text)
		body = `{"odata.error":{"code":"` + code + `","message":{"lang":"en-US","value":` + string(value) + `}}}`
	} else {
		h.Set("Content-Type", "application/xml")
		h.Set("X-Ms-Error-Code", code)
		var escaped strings.Builder
		xml.EscapeText(&escaped, []byte(text))
		body = `<?xml version="1.0" encoding="utf-8"?><Error><Code>` + code + `</Code><Message>` + escaped.String() + `</Message></Error>`
	}
	if req.Method == http.MethodHead {
		body = ""
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

// Cut is a fault in which the service carries out the call, and the client gets only the beginning of the response body; also an [Injector] of
// itself into every call.
type Cut struct {
	silent   bool
	relative bool
	at       int64
	fraction float64
}

// CutAnswer ends the response body after n bytes, at most all of them, with io.ErrUnexpectedEOF; a negative n counts from the end. Without a body,
// the call fails with that error.
func CutAnswer(n int64) Cut { return Cut{at: n} }

// CutAnswerAt is [CutAnswer] after a part of the body: 0.5 is half of it.
func CutAnswerAt(fraction float64) Cut { return Cut{relative: true, fraction: fraction} }

// CutSilently ends the response body after n bytes as if it were complete, as a proxy can do; a negative n counts from the end. A body of at most n
// bytes is not changed.
func CutSilently(n int64) Cut { return Cut{silent: true, at: n} }

// CutSilentlyAt is [CutSilently] after a part of the body: 0.5 is half of it.
func CutSilentlyAt(fraction float64) Cut {
	return Cut{silent: true, relative: true, fraction: fraction}
}

// String says where the cut is.
func (c Cut) String() string {
	name := "CutAnswer"
	if c.silent {
		name = "CutSilently"
	}
	if c.relative {
		return fmt.Sprintf("%sAt(%g)", name, c.fraction)
	}
	return fmt.Sprintf("%s(%d)", name, c.at)
}

// Inject injects the cut into every call.
func (c Cut) Inject(Call) Fault { return c }

// Meet sends the call and cuts its response.
func (c Cut) Meet(_ Call, req *http.Request, send Send) (*http.Response, error) {
	resp, err := send()
	if err != nil {
		return nil, err
	}
	if bodyless(resp, req) {
		if c.silent {
			return resp, nil
		}
		discard(resp)
		return nil, transportError(req, io.ErrUnexpectedEOF)
	}
	at, known, err := c.position(resp)
	if err != nil {
		return nil, err
	}
	if c.silent && known && at >= resp.ContentLength {
		return resp, nil
	}
	body := resp.Body
	var rest io.Reader = brokenOff{}
	if c.silent {
		rest = bytes.NewReader(nil)
		resp.ContentLength = -1
		resp.Header = resp.Header.Clone()
		resp.Header.Del("Content-Length")
		resp.Header.Del("Content-MD5") // the checksum would show that the body is incomplete
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(body, at), rest), body}
	return resp, nil
}

// position returns how many bytes to let through, and whether the body's length is known. It reads the body, which can be too large for memory,
// only if it needs the length and no header has it.
func (c Cut) position(resp *http.Response) (at int64, known bool, err error) {
	if (c.relative || c.at < 0) && resp.ContentLength < 0 {
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return 0, false, err
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	length := resp.ContentLength
	switch {
	case c.relative:
		at = int64(float64(length) * c.fraction)
	case c.at < 0:
		at = length + c.at
	default:
		at = c.at
	}
	return max(at, 0), length >= 0, nil
}

func bodyless(resp *http.Response, req *http.Request) bool {
	return req.Method == http.MethodHead || resp.ContentLength == 0 ||
		resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
}

// brokenOff stands for the rest of a body after a reset.
type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Inside is a failure of an entity group transaction that Azure reports inside a response with status 202: too busy (503, 429) or out of time
// (500), often without an error code. It is also an [Injector] of itself into every call of kind [Batch].
//
// Azure sends 429, and 503 with code ServerBusy, only before it applies anything: with Applied, these never occur on the service.
type Inside struct {
	// Status is the part's status.
	Status int
	// Code may be empty.
	Code string
	// Applied makes the service apply the transaction first.
	Applied bool
}

// String says, for example, "Inside(503 ServerBusy)", "Inside(500 applied)".
func (f Inside) String() string {
	text := strconv.Itoa(f.Status)
	if f.Code != "" {
		text += " " + f.Code
	}
	if f.Applied {
		text += " applied"
	}
	return "Inside(" + text + ")"
}

// Inject injects the fault into transactions.
func (f Inside) Inject(call Call) Fault {
	if call.Kind != Batch {
		return nil
	}
	return f
}

// Meet returns the failure as the response to the transaction.
func (f Inside) Meet(call Call, req *http.Request, send Send) (*http.Response, error) {
	if call.Kind != Batch {
		return send()
	}
	if f.Applied {
		resp, err := send()
		if err != nil {
			return nil, err
		}
		discard(resp)
	} else {
		closeBody(req)
	}
	return f.answer(call, req)
}

// answer is a multipart body in a multipart body.
func (f Inside) answer(call Call, req *http.Request) (*http.Response, error) {
	resp := errorAnswer(call, req, f.Status, f.Code, insideText(f.Status))
	refusal, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	id := resp.Header.Get("X-Ms-Request-Id")
	body := fmt.Appendf(nil, "--batchresponse_%[1]s\r\nContent-Type: multipart/mixed; boundary=changesetresponse_%[1]s\r\n\r\n"+
		"--changesetresponse_%[1]s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
		"HTTP/1.1 %[2]d %[3]s\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nDataServiceVersion: 3.0;\r\nContent-Type: %[4]s\r\n\r\n%[5]s\r\n"+
		"--changesetresponse_%[1]s--\r\n--batchresponse_%[1]s--\r\n", id, f.Status, http.StatusText(f.Status), resp.Header.Get("Content-Type"), refusal)
	resp.StatusCode, resp.Status = http.StatusAccepted, "202 Accepted"
	resp.Header.Set("Content-Type", "multipart/mixed; boundary=batchresponse_"+id)
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.ContentLength, resp.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

func insideText(status int) string {
	switch status {
	case http.StatusServiceUnavailable:
		return "The server is busy."
	case http.StatusTooManyRequests:
		return "The request rate is too large."
	}
	return "Operation could not be completed within the specified time."
}
