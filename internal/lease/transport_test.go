package lease

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// endingBody ends a lease when the first bytes of it have been read, which are a read of their own.
type endingBody struct {
	*strings.Reader
	lease *Lease
	first int64
}

func (b *endingBody) Read(p []byte) (int, error) {
	until := b.first - (b.Size() - int64(b.Len()))
	if until <= 0 {
		return b.Reader.Read(p)
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), until)])
	if int64(n) == until {
		b.lease.End(ErrLost)
	}
	return n, err
}

// unsized is a policy after which the length of a body is not known, so that HTTP/1 sends it in chunks.
type unsized struct{}

func (unsized) Do(req *policy.Request) (*http.Response, error) {
	req.Raw().ContentLength = -1
	return req.Next()
}

// TestBodyOverNetwork sends bodies through net/http's transport under a lease that ends while the body is being read. If a
// byte is missing, the service does not get the whole request and the error says that it was not sent. If the lease ends
// with the last byte, the service may have the request, so the policy must not say that it was not sent.
func TestBodyOverNetwork(t *testing.T) {
	for name, tc := range map[string]struct {
		size, first int64
		chunked     bool
		whole       bool
	}{
		"half of 64 KiB":               {64 << 10, 32 << 10, false, false},
		"all but one byte":             {64 << 10, 64<<10 - 1, false, false},
		"all of 64 KiB":                {64 << 10, 64 << 10, false, true},
		"all of a body in one buffer":  {100, 100, false, true},
		"half, in chunks":              {64 << 10, 32 << 10, true, false},
		"all but the end of chunks":    {64 << 10, 64 << 10, true, false},
		"all of one chunk, no end yet": {100, 100, true, false},
	} {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
			t.Run(name+" over "+protocol, func(t *testing.T) {
				l := New(t.Context(), time.Now(), visible)
				defer l.End(context.Canceled)
				arrived, ex, err := sendOver(t, protocol, l, tc.size, tc.first, tc.chunked)
				if tc.whole {
					if err != nil || !arrived || ex.Last != wire.OutcomeSucceeded {
						t.Errorf("%v, outcome %d, arrived is %v", err, ex.Last, arrived)
					}
				} else if !errors.Is(err, ErrLost) || arrived || ex.Last != wire.OutcomeNotSent || ex.Unknown != 0 || ex.Lost() {
					t.Errorf("%v, outcome %d, %d unknown, arrived is %v", err, ex.Last, ex.Unknown, arrived)
				}
				if l.Unsure() {
					t.Error("the policy doubts what is certain")
				}
			})
		}
	}
}

// sendOver makes one request through the policies of an account and a transport of its own, and reports whether a server
// got the whole body.
func sendOver(t *testing.T, protocol string, l *Lease, size, first int64, chunked bool) (whole bool, ex wire.Exchange, err error) {
	var arrived atomic.Bool
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		assert.Equal(t, req.Proto, protocol, "the protocol")
		if n, err := io.Copy(io.Discard, req.Body); err == nil && n == size {
			arrived.Store(true)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that the transport opened and did not use
	server.EnableHTTP2 = protocol == "HTTP/2.0"
	server.StartTLS()
	attempts := []policy.Policy{wire.Observer{}, Policy{}}
	if chunked {
		attempts = append([]policy.Policy{unsized{}}, attempts...)
	}
	pl := runtime.NewPipeline("lease", "v0", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: server.Client(),
		PerRetryPolicies: attempts, Retry: policy.RetryOptions{MaxRetries: 3, RetryDelay: time.Millisecond}})
	// A context that outlives the lease's own: else the transport returns the end of the context, of which nothing follows.
	ctx := context.WithValue(wire.With(t.Context(), &ex), leaseKey{}, l)
	req, err := runtime.NewRequest(ctx, http.MethodPut, server.URL)
	if err == nil {
		err = req.SetBody(streaming.NopCloser(&endingBody{strings.NewReader(strings.Repeat("a", int(size))), l, first}), "text/plain")
	}
	if err == nil {
		_, err = pl.Do(req)
	}
	server.Close() // waits for the handler
	return arrived.Load(), ex, err
}
