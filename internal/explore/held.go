package explore

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// heldCalls are the calls that wait until somebody decides on them. They may also be told to wait no more.
type heldCalls[C comparable] struct {
	mu    sync.Mutex
	calls []C
	over  bool // nobody is held any more
}

// hold adds a call, unless it is not to wait.
func (h *heldCalls[C]) hold(c C) (wait bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.calls = append(h.calls, c)
	}
	return !h.over
}

// leave takes away a call that waits no longer, since its context has ended.
func (h *heldCalls[C]) leave(c C) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = slices.DeleteFunc(h.calls, func(other C) bool { return other == c })
}

// release ends the waiting of all calls, those that wait and those that come; each is told.
func (h *heldCalls[C]) release(tell func(C)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for _, c := range h.calls {
		tell(c)
	}
	h.calls = nil
}

// refuse is what a call is told whose context has ended before it was sent: the error of http.Client, without the address's signature.
func refuse(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	verb := req.Method[:1] + strings.ToLower(req.Method[1:])
	return nil, &url.Error{Op: verb, URL: wire.RedactText(req.URL.String()), Err: req.Context().Err()}
}
