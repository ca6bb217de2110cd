package probe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// Start is the initial time of the tests' clocks: a whole second, so that a header represents it exactly.
func Start() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// Service is a service's entry point.
type Service func(*protocol.Call, *authorization.Grant) *protocol.Answer

// Do serves a request of the SDK without authorization.
func (f Service) Do(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	return f.serve(req, body).Response(req), nil
}

// serve serves a request as the account's owner.
func (f Service) serve(req *http.Request, body []byte) *protocol.Answer {
	return f(&protocol.Call{Req: req, Body: body}, &authorization.Grant{Owner: true})
}

// Options returns options for an SDK client of the service, without retries.
func (f Service) Options() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: f, Retry: policy.RetryOptions{MaxRetries: -1}}
}

// Call is one hand-written request.
type Call struct {
	Method, Target string
	Header         map[string]string
	Body           string
}

// NewCall returns a Call with these parts.
func NewCall(method, target string, header map[string]string, body string) Call {
	return Call{Method: method, Target: target, Header: header, Body: body}
}

// Send sends the request to the service.
func (f Service) Send(t testing.TB, call Call) *protocol.Answer {
	t.Helper()
	return f.SendBytes(t, call, []byte(call.Body))
}

// SendBytes does what Send does, with another body.
func (f Service) SendBytes(t testing.TB, call Call, body []byte) *protocol.Answer {
	t.Helper()
	req := httptest.NewRequest(call.Method, "http://contoso.sim.test"+call.Target, http.NoBody)
	for name, value := range call.Header {
		// Set the header directly, as the SDK does, so that its name keeps its spelling.
		req.Header[name] = []string{value}
	}
	return f.serve(req, body)
}

// Want sends the request and checks status and error code; code is empty for a success.
func (f Service) Want(t testing.TB, call Call, status int, code string) *protocol.Answer {
	t.Helper()
	a := f.Send(t, call)
	CheckAnswer(t, call, a, status, code)
	return a
}

// CheckAnswer checks status, error code and the headers that every response has.
func CheckAnswer(t testing.TB, call Call, a *protocol.Answer, status int, code string) {
	t.Helper()
	if a.Status != status || a.Header.Get("x-ms-error-code") != code {
		t.Errorf("%s %s %v: %d %s, want %d %s\n%s", call.Method, call.Target, call.Header,
			a.Status, a.Header.Get("x-ms-error-code"), status, code, a.Body)
	}
	bodiless := call.Method == http.MethodHead || status == http.StatusNotModified
	if code != "" && bodiless != (len(a.Body) == 0) {
		t.Errorf("%s %s: error with a body of %d bytes", call.Method, call.Target, len(a.Body))
	}
	if code != "" && !bodiless && !bytes.Contains(a.Body, []byte("<Code>"+code+"</Code><Message>")) {
		t.Errorf("%s %s: the body does not name %s: %s", call.Method, call.Target, code, a.Body)
	}
	for _, name := range []string{"x-ms-request-id", "Date"} {
		if a.Header.Get(name) == "" {
			t.Errorf("%s %s: no %s", call.Method, call.Target, name)
		}
	}
}

// WantError checks that an error of the SDK has the status and the code.
func WantError(t testing.TB, err error, status int, code string) {
	t.Helper()
	var response *azcore.ResponseError
	if !errors.As(err, &response) || response.StatusCode != status || response.ErrorCode != code {
		t.Errorf("error %v, want %d %s", err, status, code)
	}
}

// Context returns a context with a short deadline, because no call of these tests waits.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// MetadataRule is a rule for metadata: headers that break it, and the error code of the refusal.
type MetadataRule struct {
	Header map[string]string
	Code   string
}

// MetadataRules returns the rules for metadata.
func MetadataRules() map[string]MetadataRule {
	return map[string]MetadataRule{
		"letters and digits": {map[string]string{"x-ms-meta-A_1": "x"}, ""},
		"digit first":        {map[string]string{"x-ms-meta-1a": "x"}, "InvalidMetadata"},
		"dash":               {map[string]string{"x-ms-meta-a-b": "x"}, "InvalidMetadata"},
		"no name":            {map[string]string{"x-ms-meta-": "x"}, "EmptyMetadataKey"},
		"not ASCII":          {map[string]string{"x-ms-meta-a": "ä"}, "InvalidMetadata"},
		"8 KiB":              {map[string]string{"x-ms-meta-a": strings.Repeat("x", 8<<10-1)}, ""},
		"8 KiB and one":      {map[string]string{"x-ms-meta-a": strings.Repeat("x", 8<<10)}, "MetadataTooLarge"},
	}
}

// BenchCall sends a request and checks its status.
func BenchCall(b *testing.B, f Service, call Call, status int) {
	req := httptest.NewRequest(call.Method, "http://contoso.sim.test"+call.Target, http.NoBody)
	for name, value := range call.Header {
		req.Header[name] = []string{value}
	}
	if a := f.serve(req, []byte(call.Body)); a.Status != status {
		b.Fatalf("%s %s: %d %s", call.Method, call.Target, a.Status, a.Body)
	}
}

// Together runs work concurrently in n goroutines.
func Together(n int, work func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { work(i) })
	}
	wg.Wait()
}
