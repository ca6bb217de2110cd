package explore

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// heldCalls are the calls that wait until the scheduler or the walk answers them, or releases them all.
type heldCalls[C comparable] struct {
	mu    sync.Mutex
	calls []C
	over  bool // calls are no longer held
}

// hold adds a call, unless calls are no longer held.
func (h *heldCalls[C]) hold(c C) (wait bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.calls = append(h.calls, c)
	}
	return !h.over
}

// leave removes a call whose context has ended.
func (h *heldCalls[C]) leave(c C) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = slices.DeleteFunc(h.calls, func(other C) bool { return other == c })
}

// release lets all waiting and later calls go, and calls tell for each waiting call.
func (h *heldCalls[C]) release(tell func(C)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for _, c := range h.calls {
		tell(c)
	}
	h.calls = nil
}

// refuse returns the error of a call whose context ended before the call was sent: the error that http.Client
// would return, without the signature in the address.
func refuse(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	verb := req.Method[:1] + strings.ToLower(req.Method[1:])
	return nil, &url.Error{Op: verb, URL: wire.RedactText(req.URL.String()), Err: req.Context().Err()}
}
