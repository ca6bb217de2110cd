package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// attempt is one answer of the network: a status, or an error.
type attempt struct {
	status int
	err    error
}

// call sends one PUT whose attempts meet the script, and returns its exchange.
func call(t *testing.T, ctx context.Context, after func(), script ...attempt) (*Exchange, error) {
	t.Helper()
	n := 0
	f := transport(func(req *http.Request) (*http.Response, error) {
		a := script[min(n, len(script)-1)]
		n++
		if after != nil {
			after()
		}
		if a.err != nil {
			return nil, a.err
		}
		return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
	})
	p := runtime.NewPipeline("test", "v1", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: f,
		Retry:           policy.RetryOptions{MaxRetries: 3, RetryDelay: time.Microsecond},
		PerCallPolicies: []policy.Policy{Caller{Paths{Tables: true}}}, PerRetryPolicies: []policy.Policy{Observer{}, Sender{}}})
	var ex Exchange
	req := assert.Must[*policy.Request](t)(runtime.NewRequest(With(ctx, &ex), http.MethodPut, "https://t.test/"))
	resp, err := p.Do(req)
	if err == nil && resp.StatusCode >= 300 {
		err = runtime.NewResponseError(resp)
	}
	return &ex, err
}

func TestOutcomes(t *testing.T) {
	dial := attempt{err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	dns := attempt{err: &net.DNSError{Err: "no such host"}}
	reset := attempt{err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}
	cut := attempt{err: fmt.Errorf("write error: %w", NotSent{errors.New("too late")})}
	cutWithSecret := attempt{err: &url.Error{Op: "Put", URL: "https://t.test/?sig=secret", Err: cut.err}}
	status := func(code int) attempt { return attempt{status: code} }
	for name, tc := range map[string]struct {
		script        []attempt
		last          Outcome
		unknown       int
		earlier, lost bool
	}{
		"success":                  {[]attempt{status(204)}, OutcomeSucceeded, 0, false, true},
		"refused":                  {[]attempt{status(409)}, OutcomeRefused, 0, false, false},
		"refused for its load":     {[]attempt{status(429)}, OutcomeRefused, 0, false, false},
		"never sent":               {[]attempt{dial}, OutcomeNotSent, 0, false, false},
		"no such host":             {[]attempt{dns}, OutcomeNotSent, 0, false, false},
		"cut off":                  {[]attempt{cut}, OutcomeNotSent, 0, false, false},
		"cut off, with a secret":   {[]attempt{cutWithSecret}, OutcomeNotSent, 0, false, false},
		"reset, then cut off":      {[]attempt{reset, cut}, OutcomeNotSent, 1, true, true},
		"reset":                    {[]attempt{reset}, OutcomeUnknown, 4, true, true},
		"500":                      {[]attempt{status(500)}, OutcomeUnknown, 4, true, true},
		"408, 502, 503, 504":       {[]attempt{status(408), status(502), status(503), status(504)}, OutcomeUnknown, 4, true, true},
		"a gateway's own code":     {[]attempt{status(520)}, OutcomeUnknown, 1, false, true},
		"501 is a refusal":         {[]attempt{status(501)}, OutcomeRefused, 0, false, false},
		"reset, then refused":      {[]attempt{reset, status(409)}, OutcomeRefused, 1, true, false},
		"reset, then never sent":   {[]attempt{reset, dial}, OutcomeNotSent, 1, true, true},
		"500, then 429":            {[]attempt{status(500), status(429)}, OutcomeRefused, 1, true, false},
		"never sent, then refused": {[]attempt{dial, status(412)}, OutcomeRefused, 0, false, false},
		"three refusals, then 500": {[]attempt{status(429), status(429), status(429), status(500)}, OutcomeUnknown, 1, false, true},
	} {
		ex, err := call(t, context.Background(), nil, tc.script...)
		if (err == nil) != (name == "success") {
			t.Errorf("%s: error is %v", name, err)
		}
		if ex.Last != tc.last || ex.Unknown != tc.unknown || ex.EarlierUnknown() != tc.earlier || ex.Lost() != tc.lost {
			t.Errorf("%s: last %d, unknown %d, earlier %v, lost %v", name, ex.Last, ex.Unknown, ex.EarlierUnknown(), ex.Lost())
		}
	}
}

// TestOutcomeOfEndedContext: ended before the attempt nothing is sent, ended with the answer it is lost.
func TestOutcomeOfEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ex, err := call(t, ctx, cancel, attempt{status: 204})
	if !errors.Is(err, context.Canceled) || !ex.Lost() || ex.Last != OutcomeSucceeded {
		t.Errorf("ended with the answer: %v, last %d", err, ex.Last)
	}
	sent := 0
	ex, err = call(t, ctx, func() { sent++ }, attempt{status: 204})
	if !errors.Is(err, context.Canceled) || ex.Lost() || ex.Last != OutcomeNotSent || sent != 0 {
		t.Errorf("ended before: %v, last %d, %d sent", err, ex.Last, sent)
	}
	ctx, cancel = context.WithCancel(context.Background())
	if ex, err = call(t, ctx, cancel, attempt{status: 409}); !errors.Is(err, context.Canceled) || ex.Lost() {
		t.Errorf("ended with a refusal: %v, last %d", err, ex.Last)
	}
}

// TestOutcomeOfRepeatedSuccess: a caller that repeats a success did not see it.
func TestOutcomeOfRepeatedSuccess(t *testing.T) {
	var ex Exchange
	for range 2 {
		if _, err := runtime.NewPipeline("test", "v1", runtime.PipelineOptions{}, &policy.ClientOptions{
			Transport: transport(func(req *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			}), PerRetryPolicies: []policy.Policy{Observer{}, Sender{}},
		}).Do(func() *policy.Request {
			req := assert.Must[*policy.Request](t)(runtime.NewRequest(With(context.Background(), &ex), http.MethodPut, "https://t.test/"))
			return req
		}()); err != nil {
			t.Fatal(err)
		}
	}
	if !ex.EarlierUnknown() || ex.Unknown != 1 {
		t.Errorf("unknown %d", ex.Unknown)
	}
}
