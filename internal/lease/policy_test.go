package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// service answers what it is told.
type service struct {
	calls  int
	answer func(req *http.Request) (*http.Response, error)
}

func (s *service) Do(req *http.Request) (*http.Response, error) {
	s.calls++
	return s.answer(req)
}

func answering(status int, code string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"X-Ms-Error-Code": {code}}, Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
	}
}

func failing(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// send makes one request through the policy, with this many repetitions by the SDK.
func send(ctx context.Context, s *service, method string, retries int32) error {
	pl := runtime.NewPipeline("lease", "v0", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: s,
		PerRetryPolicies: []policy.Policy{Policy{}}, Retry: policy.RetryOptions{MaxRetries: retries, RetryDelay: time.Second, MaxRetryDelay: time.Second}})
	req, err := runtime.NewRequest(ctx, method, "http://account.table.test/Table")
	if err != nil {
		return err
	}
	if method == http.MethodPut {
		if err := req.SetBody(streaming.NopCloser(strings.NewReader("content")), "text/plain"); err != nil {
			return err
		}
	}
	resp, err := pl.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 400 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// TestLateBody: a request that is held up behind the check, until its lease is over, is not sent whole, the SDK does not try again,
// and what was cut off cannot arrive.
func TestLateBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, again := range []bool{false, true} {
			s := &service{answer: func(req *http.Request) (*http.Response, error) {
				body := req.Body
				time.Sleep(term)
				if again {
					var err error
					if body, err = req.GetBody(); err != nil {
						return nil, err
					}
				}
				text, err := io.ReadAll(body)
				assert.Error(t, err, "%q was sent", text)
				return nil, fmt.Errorf("write error: %w", err)
			}}
			l := New(t.Context(), time.Now(), visible)
			ctx := context.WithValue(t.Context(), leaseKey{}, l)
			if err := send(ctx, s, http.MethodPut, 3); !errors.Is(err, ErrLost) || s.calls != 1 {
				t.Errorf("%v, %d calls", err, s.calls)
			}
			if l.Unsure() {
				t.Error("what was cut off cannot arrive")
			}
		}
	})
}

// TestLateAfterWholeBody reads a whole body in time, and after the end of the lease either once more or from another copy.
// Reading on succeeds. Another copy is refused, but not as a request that was not sent, since the first may arrive.
func TestLateAfterWholeBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, again := range []bool{false, true} {
			s := &service{answer: func(req *http.Request) (*http.Response, error) {
				assert.NoError(t, assert.Err(io.ReadFull(req.Body, make([]byte, req.ContentLength))))
				time.Sleep(term)
				body := req.Body
				if again {
					var err error
					if body, err = req.GetBody(); err != nil {
						return nil, err
					}
				}
				if text, err := io.ReadAll(body); len(text) > 0 || err != nil {
					return nil, fmt.Errorf("write error: %q: %w", text, err)
				}
				return answering(http.StatusNoContent, "")(req)
			}}
			l := New(t.Context(), time.Now(), visible)
			err := send(context.WithValue(t.Context(), leaseKey{}, l), s, http.MethodPut, 3)
			if errors.Is(err, ErrLost) != again || (err != nil) != again || s.calls != 1 || l.Unsure() != again {
				t.Errorf("another copy is %v: %v, %d calls, unsure is %v", again, err, s.calls, l.Unsure())
			}
		}
	})
}

// TestPolicyRefuses: what comes after the end is not sent, and the SDK does not try again.
func TestPolicyRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: answering(http.StatusOK, "")}
		l := New(t.Context(), time.Now(), visible)
		// A context that outlives the lease's own: the policy must not depend on who ends first.
		ctx := context.WithValue(t.Context(), leaseKey{}, l)
		if err := send(ctx, s, http.MethodPut, 3); err != nil || s.calls != 1 {
			t.Fatalf("%v, %d calls", err, s.calls)
		}
		time.Sleep(term)
		began := time.Now()
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
			if err := send(ctx, s, method, 3); !errors.Is(err, ErrLost) || s.calls != 1 {
				t.Errorf("%s: %v, %d calls", method, err, s.calls)
			}
		}
		if time.Since(began) > 0 {
			t.Errorf("a request that may not be sent is tried again for %v", time.Since(began))
		}
		if l.Unsure() {
			t.Error("what was not sent cannot arrive")
		}
		if err := send(t.Context(), s, http.MethodPut, 3); err != nil || s.calls != 2 {
			t.Errorf("without a lease: %v, %d calls", err, s.calls)
		}
	})
}

// TestPolicyRefusesRepetitions: each attempt is checked, since the SDK can wait for long between two.
func TestPolicyRefusesRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(t.Context(), time.Now(), visible)
		s := &service{answer: func(req *http.Request) (*http.Response, error) {
			time.Sleep(term / 2)
			return answering(http.StatusServiceUnavailable, "ServerBusy")(req)
		}}
		err := send(context.WithValue(t.Context(), leaseKey{}, l), s, http.MethodPut, 10)
		if !errors.Is(err, ErrLost) || s.calls != 2 {
			t.Errorf("%v after %d calls", err, s.calls)
		}
	})
}

// TestPolicyDoubts: a change of which nobody knows whether it arrives makes the lease unsure, for good.
func TestPolicyDoubts(t *testing.T) {
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for name, tc := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		unsure bool
	}{
		"done":            {answering(http.StatusNoContent, ""), false},
		"refused":         {answering(http.StatusPreconditionFailed, "UpdateConditionNotSatisfied"), false},
		"not there":       {answering(http.StatusNotFound, ""), false},
		"not connected":   {failing(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), false},
		"turned away":     {answering(http.StatusServiceUnavailable, "ServerBusy"), false},
		"a gateway's 503": {answering(http.StatusServiceUnavailable, ""), true},
		"500":             {answering(http.StatusInternalServerError, "InternalError"), true},
		"too late":        {answering(http.StatusRequestTimeout, ""), true},
		"reset":           {failing(reset), true},
		"given up":        {failing(context.Canceled), true},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, "MERGE"} {
			l := New(t.Context(), time.Now(), visible)
			ctx := l.Context(t.Context())
			_ = send(ctx, &service{answer: tc.answer}, method, -1)
			reads := method == http.MethodGet || method == http.MethodHead
			if l.Unsure() != (tc.unsure && !reads) {
				t.Errorf("%s of a %s: unsure is %v", name, method, l.Unsure())
			}
			_ = send(ctx, &service{answer: answering(http.StatusNoContent, "")}, method, -1)
			if l.Unsure() != (tc.unsure && !reads) {
				t.Errorf("%s of a %s: a later success makes sure", name, method)
			}
			assert.NoError(t, l.Check(), "%s of a %s: a doubt does not end the lease", name, method)
			l.End(nil)
		}
	}
}

// TestPolicyCancels: a request that is under way at the end is given up, and may arrive.
func TestPolicyCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(t.Context(), time.Now(), visible)
		began := time.Now()
		err := send(l.Context(t.Context()), &service{answer: func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}}, http.MethodPut, 3)
		if !errors.Is(err, context.Canceled) || time.Since(began) != term || !l.Unsure() {
			t.Errorf("%v after %v, unsure is %v", err, time.Since(began), l.Unsure())
		}
	})
}
