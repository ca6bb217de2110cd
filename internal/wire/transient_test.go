package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// batchCall sends one transaction whose attempts meet the answers in turn, and returns its exchange, the last answer's status
// and the number of attempts.
func batchCall(t *testing.T, path string, answers ...*http.Response) (ex *Exchange, resp *http.Response, attempts int) {
	t.Helper()
	f := transport(func(req *http.Request) (*http.Response, error) {
		answer := answers[min(attempts, len(answers)-1)]
		attempts++
		answer.Request = req
		return answer, nil
	})
	p := runtime.NewPipeline("test", "v1", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: f,
		Retry:           policy.RetryOptions{MaxRetries: 3, RetryDelay: time.Microsecond},
		PerCallPolicies: []policy.Policy{Caller{Paths{Tables: true}}}, PerRetryPolicies: []policy.Policy{Observer{}, Sender{}}})
	ex = &Exchange{}
	req := assert.Must[*policy.Request](t)(runtime.NewRequest(With(context.Background(), ex), http.MethodPost, "https://t.test"+path))
	resp = assert.Must[*http.Response](t)(p.Do(req))
	return ex, resp, attempts
}

func accepted(body string, headers ...string) *http.Response {
	h := http.Header{"Content-Type": {testContent}, "X-Ms-Request-Id": {"outer"}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{Status: "202 Accepted", StatusCode: http.StatusAccepted, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// TestTransientInsideTransaction: the SDK repeats a transaction whose answer has a transient failure inside, decided by the
// status alone, and the outcome of each attempt is that of the failure.
func TestTransientInsideTransaction(t *testing.T) {
	for status, codes := range map[int]map[string]Outcome{
		408: {"": OutcomeUnknown}, 429: {"": OutcomeRefused, "TooManyRequests": OutcomeRefused},
		500: {"": OutcomeUnknown, "OperationTimedOut": OutcomeUnknown, "InternalError": OutcomeUnknown}, 502: {"": OutcomeUnknown},
		503: {"": OutcomeUnknown, "ServerBusy": OutcomeRefused, "OperationTimedOut": OutcomeUnknown}, 504: {"": OutcomeUnknown},
	} {
		for code, outcome := range codes {
			for _, newline := range []string{"\r\n", "\n"} {
				busy := func() *http.Response { return accepted(testAnswer(newline, testFailure(status, code, "no"))) }
				good := accepted(testAnswer(newline, testOK(`W/"1"`), testOK(`W/"2"`)))
				ex, resp, attempts := batchCall(t, "/$batch", busy(), busy(), good)
				unknown := 0
				if outcome == OutcomeUnknown {
					unknown = 2
				}
				if attempts != 3 || resp.StatusCode != 202 || ex.Last != OutcomeSucceeded || ex.Unknown != unknown || len(ex.Answer) == 0 {
					t.Errorf("%d %q twice: %d attempts, status %d, last %d, unknown %d", status, code, attempts, resp.StatusCode, ex.Last, ex.Unknown)
				}
				ex, resp, attempts = batchCall(t, "/account/$batch", busy(), busy(), busy(), busy())
				if attempts != 4 || resp.StatusCode != status || ex.Last != outcome || resp.Header.Get("X-Ms-Request-Id") != "outer" {
					t.Errorf("%d %q always: %d attempts, status %d, last %d, header %v", status, code, attempts, resp.StatusCode, ex.Last, resp.Header)
				}
				if err := runtime.NewResponseError(resp); !HasCode(err, code) || !IsStatus(err, status) {
					t.Errorf("%d %q: the SDK reads %v", status, code, err)
				}
			}
		}
	}
}

// TestLastingFailureInsideTransaction: what a repetition cannot help is answered as it is, and so is what cannot be read.
func TestLastingFailureInsideTransaction(t *testing.T) {
	busy := testAnswer("\r\n", testFailure(503, "ServerBusy", "no"))
	for what, c := range map[string]struct{ path, body string }{
		"409":                 {"/$batch", testAnswer("\r\n", testFailure(409, "EntityAlreadyExists", "0:no"))},
		"501":                 {"/$batch", testAnswer("\r\n", testFailure(501, "NotImplemented", "no"))},
		"412 before 503":      {"/$batch", testAnswer("\r\n", testFailure(412, "UpdateConditionNotSatisfied", "0:no"), testFailure(503, "ServerBusy", "no"))},
		"cut off":             {"/$batch", busy[:len(busy)-8]},
		"a garbled part":      {"/$batch", testAnswer("\r\n", "HTTP/1.1 99", testFailure(503, "ServerBusy", "no"))},
		"not a transaction":   {"/Employees", busy},
		"a batch of blobs":    {"/?comp=batch", busy},
		"no multipart answer": {"/$batch", "HTTP/1.1 503 Service Unavailable\r\n\r\n"},
	} {
		ex, resp, attempts := batchCall(t, c.path, accepted(c.body))
		if attempts != 1 || resp.StatusCode != 202 || string(ex.Answer) != c.body {
			t.Errorf("%s: %d attempts, status %d, answer %q", what, attempts, resp.StatusCode, ex.Answer)
		}
	}
}

// TestRetryAfterInsideTransaction: the next attempt waits as long as the part, or else the answer around it, asks for.
func TestRetryAfterInsideTransaction(t *testing.T) {
	part := strings.Replace(testFailure(503, "", "no"), "\n", "\nRetry-After: 7\n", 1)
	for what, c := range map[string]struct {
		answer *http.Response
		want   string
	}{
		"the part":   {accepted(testAnswer("\r\n", part)), "7"},
		"the answer": {accepted(testAnswer("\r\n", testFailure(503, "", "no")), "Retry-After", "3"), "3"},
		"both":       {accepted(testAnswer("\r\n", part), "Retry-After", "3"), "7"},
		"neither":    {accepted(testAnswer("\r\n", testFailure(503, "", "no"))), ""},
	} {
		parts := assert.Must[[][]byte](t)(changeSetParts(testContent, []byte(mustRead(t, c.answer)), 1))
		p, err := readPart(parts[0])
		assert.Check(t, err)
		resp := p.answer(c.answer)
		if got := resp.Header.Get("Retry-After"); got != c.want || resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Content-Length") != fmt.Sprint(len(mustRead(t, resp))) {
			t.Errorf("%s: Retry-After %q, header %v", what, got, resp.Header)
		}
		if c.answer.StatusCode != 202 || c.answer.Header.Get("Content-Type") != testContent {
			t.Errorf("%s: the service's answer was written to", what)
		}
	}
}

func mustRead(t *testing.T, resp *http.Response) string {
	t.Helper()
	body := assert.Must[[]byte](t)(io.ReadAll(resp.Body))
	resp.Body = io.NopCloser(strings.NewReader(string(body)))
	return string(body)
}

// TestBusyOrGateway: a 503 is a refusal only where the service itself says ServerBusy, in a header or in a body of either form.
func TestBusyOrGateway(t *testing.T) {
	for what, c := range map[string]struct {
		header, body string
		want         Outcome
	}{
		"JSON":                    {"", `{"odata.error":{"code":"ServerBusy","message":{"lang":"en-US","value":"The server is busy."}}}`, OutcomeRefused},
		"XML":                     {"", `<?xml version="1.0" encoding="utf-8"?><Error><Code>ServerBusy</Code><Message>The server is busy.</Message></Error>`, OutcomeRefused},
		"a header":                {"ServerBusy", "", OutcomeRefused},
		"another code":            {"", `{"odata.error":{"code":"OperationTimedOut"}}`, OutcomeUnknown},
		"another code, and XML":   {"", `<Error><Code>InternalError</Code></Error>`, OutcomeUnknown},
		"a gateway":               {"", `<html><body>Service Unavailable: ServerBusy</body></html>`, OutcomeUnknown},
		"nothing":                 {"", "", OutcomeUnknown},
		"a code that is cut off":  {"", `<Error><Code>ServerBu`, OutcomeUnknown},
		"a header of other fault": {"InternalError", `{"odata.error":{"code":"ServerBusy"}}`, OutcomeUnknown},
	} {
		resp := &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body))}
		if c.header != "" {
			resp.Header.Set("x-ms-error-code", c.header)
		}
		assert.Equal(t, OutcomeOf(resp, nil), c.want, "%s: outcome", what)
		assert.Equal(t, mustRead(t, resp), c.body, "%s: the body is used up", what)
	}
}
