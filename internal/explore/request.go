package explore

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// walkRequest is a recorded request that can be served in any number of states.
type walkRequest struct {
	call   storagetest.Call
	url    *url.URL
	header http.Header
	body   []byte
	// identity is equal for requests that the service treats alike.
	identity string
}

// newWalkRequest records a request, including its body.
func newWalkRequest(call storagetest.Call, req *http.Request) (*walkRequest, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	r := &walkRequest{call: call, url: req.URL, header: req.Header.Clone(), body: body}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", req.Method, req.URL)
	for _, name := range slices.Sorted(maps.Keys(r.header)) {
		if !incidental(name) {
			fmt.Fprintf(&b, "%s: %q\n", name, r.header[name])
		}
	}
	b.Write(body)
	r.identity = b.String()
	return r, nil
}

// incidental reports whether a header does not affect the result, such as user agent, date and request ID.
func incidental(name string) bool {
	for _, other := range [...]string{"Authorization", "Date", "X-Ms-Date", "X-Ms-Client-Request-Id", "User-Agent", "Content-Length"} {
		if strings.EqualFold(name, other) {
			return true
		}
	}
	return false
}

// request makes a request that can be sent. It has no client request ID, because the response would repeat it.
func (r *walkRequest) request() *http.Request {
	header := r.header.Clone()
	for name := range header {
		if strings.EqualFold(name, "x-ms-client-request-id") {
			delete(header, name)
		}
	}
	return &http.Request{Method: r.call.Method, URL: r.url, Host: r.url.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(r.body)), ContentLength: int64(len(r.body))}
}

// String describes the request.
func (r *walkRequest) String() string { return fmt.Sprintf("%s %s", r.call.Kind, r.call.Path) }

// walkAnswer is a recorded answer that can be given to any number of processes.
type walkAnswer struct {
	status   int
	header   http.Header
	body     []byte
	identity string
}

func newWalkAnswer(resp *http.Response) (*walkAnswer, error) {
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	a := &walkAnswer{status: resp.StatusCode, header: resp.Header, body: body}
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", a.status)
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		fmt.Fprintf(&b, "%s: %q\n", name, a.header[name])
	}
	b.Write(body)
	a.identity = b.String()
	return a, nil
}

// response returns the answer as the response to a request.
func (a *walkAnswer) response(req *http.Request) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}
}

// String describes the answer: its status, and the error code if it has one.
func (a *walkAnswer) String() string {
	if code := a.header.Get("X-Ms-Error-Code"); code != "" {
		return fmt.Sprintf("%d %s", a.status, code)
	}
	if _, rest, found := bytes.Cut(a.body, []byte(`{"odata.error":{"code":"`)); found {
		if code, _, found := bytes.Cut(rest, []byte(`"`)); found {
			return fmt.Sprintf("%d %s", a.status, code)
		}
	}
	return fmt.Sprint(a.status)
}

// numbered assigns numbers to values, the same number to equal ones.
type numbered[T any] struct {
	all []T
	ids map[string]int32
}

func (n *numbered[T]) number(identity string, thing T) int32 {
	if id, known := n.ids[identity]; known {
		return id
	}
	if n.ids == nil {
		n.ids = map[string]int32{}
	}
	id := int32(len(n.all))
	n.ids[identity] = id
	n.all = append(n.all, thing)
	return id
}
