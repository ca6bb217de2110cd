package simulator

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
)

// answer is what a service says to one request, before it is an *http.Response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func newAnswer(status int) *answer { return &answer{status: status, header: http.Header{}} }

// response makes the answer an *http.Response to req, as net/http would hand it over.
func (a *answer) response(req *http.Request) *http.Response {
	if a.header == nil {
		a.header = http.Header{}
	}
	if req.Method != http.MethodHead {
		a.header.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	return &http.Response{
		Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}
}
