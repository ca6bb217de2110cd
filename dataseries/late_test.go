package dataseries_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// holding keeps the first write to itself, and lets the caller repeat it.
type holding struct {
	inner policy.Transporter
	held  *http.Request
}

func (h *holding) Do(req *http.Request) (*http.Response, error) {
	if h.held != nil || req.Method == http.MethodGet {
		return h.inner.Do(req)
	}
	body, _ := io.ReadAll(req.Body)
	h.held = req.Clone(context.Background())
	h.held.Body = io.NopCloser(bytes.NewReader(body))
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// TestLateSetUndoesNothing: a Set was acknowledged, then an addition; the first attempt of the Set comes late.
func TestLateSetUndoesNothing(t *testing.T) {
	for _, p := range places {
		t.Run(string(p), func(t *testing.T) {
			s, w := storagetest.Simulator(t, nil), &world{place: p}
			w.open(t, s)
			h := &holding{}
			slow := s.WithRetries(3).WithTransport(func(inner policy.Transporter) policy.Transporter { h.inner = inner; return h })
			c := assert.Must[*dataseries.Counter[int64]](t)(w.start(slow))
			if err := c.Set(t.Context(), today, 3, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := c.AddOnce(t.Context(), today, 3, 5, "a"); err != nil {
				t.Fatal(err)
			}
			if _, err := h.inner.Do(h.held); err != nil {
				t.Fatal(err)
			}
			if n, err := held(t.Context(), w, s, today, 3); n != 5 || err != nil {
				t.Errorf("%d %v, and 5 were counted", n, err)
			}
		})
	}
}
