package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// Outcome is the known outcome of one attempt of a request.
type Outcome uint8

// The outcomes. OutcomeRefused means that the service did not apply the attempt, OutcomeNotSent that the attempt never
// reached it, and OutcomeUnknown that the service may have applied it.
const (
	OutcomeNone Outcome = iota
	OutcomeSucceeded
	OutcomeRefused
	OutcomeNotSent
	OutcomeUnknown
)

// Observer is the first policy in ClientOptions.PerRetryPolicies. It records the outcome of every attempt of a call, while
// Caller sees only the last response. Suppose that an insert was applied, its response was lost, and the SDK repeated it: the
// call ends in 409, and only the record of the lost response distinguishes that from a real conflict.
type Observer struct{}

// Do records the attempt's outcome and removes secrets from its error.
func (Observer) Do(req *policy.Request) (*http.Response, error) {
	ex := from(req)
	if ex == nil {
		return withoutSecrets(req.Next())
	}
	if ex.Last == OutcomeSucceeded {
		ex.Unknown++ // the SDK repeats an attempt that was applied if its response was lost
	}
	ex.sent = false
	resp, err := req.Next()
	ex.Last = OutcomeOf(resp, err)
	if err != nil && !ex.sent {
		ex.Last = OutcomeNotSent
	}
	if ex.Last == OutcomeUnknown {
		ex.Unknown++
	}
	return withoutSecrets(resp, err)
}

// withoutSecrets removes signatures from an error, or from a response that reports one: the service repeats the signature
// that it refuses, and the SDK puts the whole response into its error and log.
func withoutSecrets(resp *http.Response, err error) (*http.Response, error) {
	if err != nil || resp.StatusCode < 400 {
		return resp, Redact(err)
	}
	body, err := runtime.Payload(resp)
	if err != nil {
		return resp, Redact(err)
	}
	resp.Body = io.NopCloser(strings.NewReader(RedactText(string(body))))
	return resp, nil
}

// Sender is the last policy in ClientOptions.PerRetryPolicies. If an attempt does not reach Sender, because a
// credential or a policy of the caller failed or the context has ended, the attempt was certainly not sent.
type Sender struct{}

// Do records that the attempt is sent, exposes a transient failure inside the response to a transaction (see
// exposeTransient), and removes secrets from the result. So the policies before it, including the SDK's retry policy, see
// that failure.
func (Sender) Do(req *policy.Request) (*http.Response, error) {
	if err := req.Raw().Context().Err(); err != nil {
		return nil, err
	}
	if ex := from(req); ex != nil {
		ex.sent = true
	}
	if sent, _ := req.Raw().Context().Value(sentKey{}).(*bool); sent != nil {
		*sent = true
	}
	return withoutSecrets(exposeTransient(req))
}

type sentKey struct{}

// WatchSent returns a context for one attempt, and a flag that Sender sets if the attempt passes all policies.
func WatchSent(ctx context.Context) (context.Context, *bool) {
	sent := new(bool)
	return context.WithValue(ctx, sentKey{}, sent), sent
}

// NotSent is the error of an attempt of which the service received nothing, or only a part that it cannot apply. A policy
// returns it, or the request's body while the transport reads it. The SDK does not repeat such an attempt.
type NotSent struct{ Err error }

// NonRetriable makes the SDK's retry policy give up.
func (NotSent) NonRetriable() {}

// Error returns the text of the cause.
func (e NotSent) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e NotSent) Unwrap() error { return e.Err }

// OutcomeOf returns the outcome of a sent attempt, as far as its response or error shows it.
func OutcomeOf(resp *http.Response, err error) Outcome {
	if err != nil {
		var cut NotSent
		if errors.As(err, &cut) {
			return OutcomeNotSent
		}
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			return OutcomeNotSent
		}
		var dns *net.DNSError
		if errors.As(err, &dns) {
			return OutcomeNotSent
		}
		return OutcomeUnknown
	}
	code := ""
	if resp.StatusCode == http.StatusServiceUnavailable {
		code = codeOf(resp)
	}
	return OutcomeOfStatus(resp.StatusCode, code)
}

// EarlierUnknown reports whether an attempt before the last one may have been applied.
func (ex *Exchange) EarlierUnknown() bool {
	if ex.Last == OutcomeUnknown {
		return ex.Unknown > 1
	}
	return ex.Unknown > 0
}

// Lost reports whether a call that returned an error may have been applied nevertheless: the outcome of its last attempt is
// unknown; or its last attempt succeeded, but the SDK discarded the response because the context had ended; or there was no
// response at all and an earlier attempt was sent.
func (ex *Exchange) Lost() bool {
	switch {
	case ex.Last == OutcomeUnknown, ex.Last == OutcomeSucceeded:
		return true
	case ex.Status == 0:
		return ex.Unknown > 0
	}
	return false
}
