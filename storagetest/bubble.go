package storagetest

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// InBubble runs a test in a bubble of testing/synctest, where waiting takes no real time, on a fresh
// [Simulator] whose clock follows the clock of the bubble. In the bubble, a worker polls, renews and waits as
// in production. The rules of testing/synctest hold: make the clients inside the test; t cannot run subtests
// or be parallel.
func InBubble(t *testing.T, test func(t *testing.T, s *Service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := Simulator(t, nil)
		clock := &following{clock: s.Clock, last: time.Now()}
		test(t, s.WithTransport(func(inner policy.Transporter) policy.Transporter {
			clock.inner = inner
			return clock
		}))
	})
}

// following is a transport that, before each request, advances the simulator's clock by the time that has
// passed in the bubble since the last request.
type following struct {
	inner policy.Transporter
	clock *Clock

	mu   sync.Mutex
	last time.Time
}

// Do implements policy.Transporter.
func (f *following) Do(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	now := time.Now()
	f.clock.Advance(now.Sub(f.last))
	f.last = now
	f.mu.Unlock()
	return f.inner.Do(req)
}
