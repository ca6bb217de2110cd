package wire

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// Outcome is what is known of one attempt at a request.
type Outcome uint8

// An attempt was answered with a success, was refused for certain, surely never arrived, or may have been applied
// without anyone knowing.
const (
	OutcomeNone Outcome = iota
	OutcomeSucceeded
	OutcomeRefused
	OutcomeNotSent
	OutcomeUnknown
)

// Observer is the policy to stand first among ClientOptions.PerRetryPolicies: it sees every attempt of a call as the
// SDK's retry rule does, where Caller sees only the last answer. An insert that was applied, whose answer was lost,
// and that the SDK repeated, ends in 409; only the memory of the lost answer tells it from a real conflict.
type Observer struct{}

// Do notes the attempt's outcome and removes secrets from its error.
func (Observer) Do(req *policy.Request) (*http.Response, error) {
	ex := from(req)
	if ex == nil {
		return withoutSecrets(req.Next())
	}
	if ex.Last == OutcomeSucceeded {
		ex.Unknown++ // a success that is repeated was lost further up
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

// withoutSecrets takes signatures out of an error, and out of an answer that is one: the service repeats the signature
// it does not accept, and the SDK puts the whole answer into its error and log.
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

// Sender is the policy to stand last among ClientOptions.PerRetryPolicies: an attempt that does not get past it, since
// a credential or a policy of the caller failed or the context is over, was surely not sent.
type Sender struct{}

// Do notes that the attempt goes out, exposes a transient failure inside the answer to a transaction, and removes secrets
// from what comes back. What stands before it, the SDK's retry rule included, sees that failure as the attempt's answer.
func (Sender) Do(req *policy.Request) (*http.Response, error) {
	if err := req.Raw().Context().Err(); err != nil {
		return nil, err
	}
	if ex := from(req); ex != nil {
		ex.sent = true
	}
	return withoutSecrets(exposeTransient(req))
}

// NotSent is the error of an attempt of which the service got nothing, or only a part that it cannot apply. A policy returns
// it, or the body of the request as the transport reads it. The SDK does not try again.
type NotSent struct{ Err error }

// NonRetriable marks it for the SDK's retry policy.
func (NotSent) NonRetriable() {}

// Error is that of the cause.
func (e NotSent) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e NotSent) Unwrap() error { return e.Err }

// OutcomeOf tells what an answer, or the lack of one, says of an attempt that was sent.
func OutcomeOf(resp *http.Response, err error) Outcome {
	if err != nil {
		var cut NotSent
		if errors.As(err, &cut) {
			return OutcomeNotSent
		}
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
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

// Lost reports, of a call that ended in an error, whether it may have been applied for all that its end says: the
// last answer proves nothing, or was a success that never reached the caller (the SDK drops the answer of a call
// whose context ended meanwhile), or there was no last answer and an earlier attempt went out.
func (ex *Exchange) Lost() bool {
	switch {
	case ex.Last == OutcomeUnknown, ex.Last == OutcomeSucceeded:
		return true
	case ex.Status == 0:
		return ex.Unknown > 0
	}
	return false
}
