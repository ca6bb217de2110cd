package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// policyFunc is a policy of the caller.
type policyFunc func(req *policy.Request) (*http.Response, error)

func (f policyFunc) Do(req *policy.Request) (*http.Response, error) { return f(req) }

// lentCall reads with lent memory. The attempts meet the bodies in turn; the last one goes on.
func lentCall(t *testing.T, callers policyFunc, status int, bodies ...io.Reader) (ex *Exchange, attempts int, err error) {
	t.Helper()
	f := transport(func(req *http.Request) (*http.Response, error) {
		body := bodies[min(attempts, len(bodies)-1)]
		attempts++
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: -1, Request: req}, nil
	})
	p := runtime.NewPipeline("test", "v1", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: f,
		Retry:            policy.RetryOptions{MaxRetries: 3, RetryDelay: time.Microsecond},
		PerCallPolicies:  []policy.Policy{Caller{Paths{Tables: true}}},
		PerRetryPolicies: []policy.Policy{Observer{}, callers, Sender{}}})
	ex = &Exchange{Lent: true}
	req, err := runtime.NewRequest(With(context.Background(), ex), http.MethodGet, "https://t.test/T")
	assert.Check(t, err)
	_, err = p.Do(req)
	return ex, attempts, err
}

func pass(req *policy.Request) (*http.Response, error) { return req.Next() }

// TestLentAnswer: whatever a policy of the caller does with the body, the answer is whole, and after the release the memory is of the next
// response only.
func TestLentAnswer(t *testing.T) {
	const text = `{"value":[]}`
	var kept *http.Response
	for what, callers := range map[string]policyFunc{
		"nothing": pass,
		"the body is read": func(req *policy.Request) (*http.Response, error) {
			resp, err := req.Next()
			assert.Equal(t, mustRead(t, resp), text, "the policy")
			return resp, err
		},
		"the body is used up": func(req *policy.Request) (*http.Response, error) {
			resp, err := req.Next()
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			return resp, err
		},
		"the SDK reads the payload": func(req *policy.Request) (*http.Response, error) {
			resp, err := req.Next()
			if got, err := runtime.Payload(resp); string(got) != text || err != nil {
				t.Errorf("the policy reads %q, %v", got, err)
			}
			return resp, err
		},
		"the response is kept": func(req *policy.Request) (*http.Response, error) {
			resp, err := req.Next()
			kept = resp
			return resp, err
		},
	} {
		ex, attempts, err := lentCall(t, callers, http.StatusOK, strings.NewReader(text))
		if err != nil || attempts != 1 || string(ex.Answer) != text {
			t.Errorf("%s: %d attempts, %q, %v", what, attempts, ex.Answer, err)
		}
		answer, pooled := ex.Answer, ex.lent != nil
		ex.Release()
		ex.Release() // a second one does nothing
		if ex.Answer != nil || pooled && string(answer) != strings.Repeat("\x00", len(text)) {
			t.Errorf("%s: after the release the answer is %q, and its memory has %q", what, ex.Answer, answer)
		}
	}
	if got := mustRead(t, kept); got != "" {
		t.Errorf("a policy that has kept the response reads %q after the release", got)
	}
}

// TestLentAnswerIsRepeated: a body that is cut off is repeated, as the SDK repeats it; one that fails for good, or an error, is not lent.
func TestLentAnswerIsRepeated(t *testing.T) {
	cut := func() io.Reader { return io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF)) }
	ex, attempts, err := lentCall(t, pass, http.StatusOK, cut(), cut(), strings.NewReader("{}"))
	if err != nil || attempts != 3 || string(ex.Answer) != "{}" || ex.Last != OutcomeSucceeded || ex.Unknown != 2 {
		t.Errorf("%d attempts, %q, last %d, unknown %d, %v", attempts, ex.Answer, ex.Last, ex.Unknown, err)
	}
	if _, attempts, err = lentCall(t, pass, http.StatusOK, cut()); !errors.Is(err, io.ErrUnexpectedEOF) || attempts != 4 {
		t.Errorf("always cut off: %d attempts, %v", attempts, err)
	}
	if _, attempts, err = lentCall(t, pass, http.StatusOK, iotest.ErrReader(tooLong{5})); !errors.Is(err, tooLong{5}) || attempts != 1 {
		t.Errorf("too long: %d attempts, %v", attempts, err)
	}
	if ex, _, err = lentCall(t, pass, http.StatusNotFound, strings.NewReader("{}")); err != nil || ex.Answer != nil || ex.lent != nil {
		t.Errorf("not found: %q, %v", ex.Answer, err)
	}
}
