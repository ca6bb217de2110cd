package wire

import (
	"bytes"
	"net/http"
	"sync"
)

// lent is the body of a response that was read into memory that is used again. Policies of the caller can read it, as they can read the
// SDK's own.
type lent struct {
	bytes.Reader
	text *bytes.Buffer
}

// Close does nothing: the body of the transport is closed.
func (*lent) Close() error { return nil }

// mostKept is the largest memory that is kept: a page of the service has at most 4 MiB, and a buffer doubles.
const mostKept = 8 << 20

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// lend reads the body of the response, and replaces it by a lent one. An error is one of the attempt, as in the SDK's policy that reads
// bodies, so that the SDK repeats the request.
func lend(resp *http.Response) error {
	text := buffers.Get().(*bytes.Buffer)
	if n := resp.ContentLength; n > 0 && n < mostKept {
		text.Grow(int(n) + bytes.MinRead) // with this much room ReadFrom does not grow the buffer to find the end
	}
	_, err := text.ReadFrom(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		giveBack(text)
		return err
	}
	body := &lent{text: text}
	body.Reset(text.Bytes())
	resp.Body = body
	return nil
}

// Release gives the memory of Answer back. A policy of the caller that has kept the response reads nothing from then on, instead of another
// response.
func (ex *Exchange) Release() {
	ex.Answer = nil
	if ex.lent == nil {
		return
	}
	ex.lent.Reset(nil)
	giveBack(ex.lent.text)
	ex.lent.text, ex.lent = nil, nil
}

// giveBack makes the memory ready for the next response. It clears it, which costs 0.3 % of the reading of a page: so every test, and every
// program, shows at once if something that was read is still in that memory, instead of having it change under load.
func giveBack(text *bytes.Buffer) {
	clear(text.Bytes())
	text.Reset()
	if text.Cap() <= mostKept {
		buffers.Put(text)
	}
}
