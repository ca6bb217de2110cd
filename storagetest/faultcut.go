package storagetest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// Cut is a fault in which the service carries out the call, but the client receives only the beginning of the response body. It is
// also an [Injector], which injects the cut into every call.
type Cut struct {
	silent   bool
	relative bool
	at       int64
	fraction float64
}

// CutAnswer ends the response body after n bytes, at most all of them, with io.ErrUnexpectedEOF; a negative n counts
// from the end. If the response has no body, the call fails with that error.
func CutAnswer(n int64) Cut { return Cut{at: n} }

// CutAnswerAt is [CutAnswer] after a part of the body: 0.5 is half of it.
func CutAnswerAt(fraction float64) Cut { return Cut{relative: true, fraction: fraction} }

// CutSilently ends the response body after n bytes as if it were complete, as a proxy between client and service can
// do; a negative n counts from the end. A body of at most n bytes is not changed.
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

// position returns the number of bytes to let through, and whether the body's length is known. It reads the
// body only if the length is needed and no header has it, since a body can be too large for memory.
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

// bodyless reports whether a response certainly has no body.
func bodyless(resp *http.Response, req *http.Request) bool {
	return req.Method == http.MethodHead || resp.ContentLength == 0 ||
		resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
}

// brokenOff is a reader that stands for the rest of a body whose connection was reset.
type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
