package protocol

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
)

// Answer is what a service says to one request, before it is an *http.Response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// NewAnswer makes an answer without a body.
func NewAnswer(status int) *Answer { return &Answer{Status: status, Header: http.Header{}} }

// Response makes the answer an *http.Response to req, as net/http would hand it over.
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
