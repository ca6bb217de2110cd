package simulator

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
)

// testStart is when the tests' clocks begin: a whole second, so that a header holds it without loss.
func testStart() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// serveFunc is a service's entry point.
type serveFunc func(*Call, *Grant) *answer

// Do makes a service a transport for the SDK, without any check of who asks.
func (f serveFunc) Do(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	return f.serve(req, body).response(req), nil
}

// serve serves a request that its sender may make.
func (f serveFunc) serve(req *http.Request, body []byte) *answer {
	return f(&Call{Req: req, Body: body}, &Grant{Owner: true})
}

// options are those of an SDK client on the service: nothing is sent twice.
func (f serveFunc) options() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: f, Retry: policy.RetryOptions{MaxRetries: -1}}
}

// rawCall is one request written out by hand.
type rawCall struct {
	method, target string
	header         map[string]string
	body           string
}

// send sends the request to the service.
func (f serveFunc) send(t testing.TB, call rawCall) *answer {
	t.Helper()
	return f.sendBytes(t, call, []byte(call.body))
}

func (f serveFunc) sendBytes(t testing.TB, call rawCall, body []byte) *answer {
	t.Helper()
	req := httptest.NewRequest(call.method, "http://contoso.sim.test"+call.target, http.NoBody)
	for name, value := range call.header {
		// As the SDK sets them, past the canonical spelling.
		req.Header[name] = []string{value}
	}
	return f.serve(req, body)
}

// want sends the request and checks status and error code; wantCode is empty for a success.
func (f serveFunc) want(t testing.TB, call rawCall, status int, code string) *answer {
	t.Helper()
	a := f.send(t, call)
	checkAnswer(t, call, a, status, code)
	return a
}

func checkAnswer(t testing.TB, call rawCall, a *answer, status int, code string) {
	t.Helper()
	if a.status != status || a.header.Get("x-ms-error-code") != code {
		t.Errorf("%s %s %v: %d %s, want %d %s\n%s", call.method, call.target, call.header,
			a.status, a.header.Get("x-ms-error-code"), status, code, a.body)
	}
	bodiless := call.method == http.MethodHead || status == http.StatusNotModified
	if code != "" && bodiless != (len(a.body) == 0) {
		t.Errorf("%s %s: error with a body of %d bytes", call.method, call.target, len(a.body))
	}
	if code != "" && !bodiless && !bytes.Contains(a.body, []byte("<Code>"+code+"</Code><Message>")) {
		t.Errorf("%s %s: the body does not name %s: %s", call.method, call.target, code, a.body)
	}
	for _, name := range []string{"x-ms-request-id", "Date"} {
		if a.header.Get(name) == "" {
			t.Errorf("%s %s: no %s", call.method, call.target, name)
		}
	}
}

// wantSDKError checks that an error of the SDK has the status and the code.
func wantSDKError(t testing.TB, err error, status int, code string) {
	t.Helper()
	var response *azcore.ResponseError
	if !errors.As(err, &response) || response.StatusCode != status || response.ErrorCode != code {
		t.Errorf("error %v, want %d %s", err, status, code)
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testContext bounds a test's calls: nothing here waits for anything.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// metadataRules are the rules for metadata, as headers and the error code they lead to.
func metadataRules() map[string]struct {
	header map[string]string
	code   string
} {
	return map[string]struct {
		header map[string]string
		code   string
	}{
		"letters and digits": {map[string]string{"x-ms-meta-A_1": "x"}, ""},
		"digit first":        {map[string]string{"x-ms-meta-1a": "x"}, "InvalidMetadata"},
		"dash":               {map[string]string{"x-ms-meta-a-b": "x"}, "InvalidMetadata"},
		"no name":            {map[string]string{"x-ms-meta-": "x"}, "EmptyMetadataKey"},
		"not ASCII":          {map[string]string{"x-ms-meta-a": "ä"}, "InvalidMetadata"},
		"8 KiB":              {map[string]string{"x-ms-meta-a": strings.Repeat("x", 8<<10-1)}, ""},
		"8 KiB and one":      {map[string]string{"x-ms-meta-a": strings.Repeat("x", 8<<10)}, "MetadataTooLarge"},
	}
}

// benchCall sends a request and checks its status.
func benchCall(b *testing.B, f serveFunc, call rawCall, status int) {
	req := httptest.NewRequest(call.method, "http://contoso.sim.test"+call.target, http.NoBody)
	for name, value := range call.header {
		req.Header[name] = []string{value}
	}
	if a := f.serve(req, []byte(call.body)); a.status != status {
		b.Fatalf("%s %s: %d %s", call.method, call.target, a.status, a.body)
	}
}

// together runs work in several goroutines at once.
func together(n int, work func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { work(i) })
	}
	wg.Wait()
}
