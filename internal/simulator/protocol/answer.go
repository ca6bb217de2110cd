package protocol

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
)

// Answer is a service's response to one request, before it is converted to an *http.Response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// NewAnswer returns a response without a body.
func NewAnswer(status int) *Answer { return &Answer{Status: status, Header: http.Header{}} }

// Response converts the response to an *http.Response for req, as net/http would return it.
func (a *Answer) Response(req *http.Request) *http.Response {
	if a.Header == nil {
		a.Header = http.Header{}
	}
	if req.Method != http.MethodHead {
		a.Header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	return &http.Response{
		Status: strconv.Itoa(a.Status) + " " + http.StatusText(a.Status), StatusCode: a.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.Header, Body: io.NopCloser(bytes.NewReader(a.Body)), ContentLength: int64(len(a.Body)), Request: req,
	}
}
