// Package wire sends request bodies that this library has encoded through calls of the official SDK, and returns the
// responses undecoded.
//
// The SDK chooses the account's address, authorizes, retries and traces. If the context of a call contains an
// Exchange, three policies take part. Caller runs once for each call: it replaces the SDK's body and address
// by those of the Exchange, keeps the response, and gives the SDK a stub response, which the SDK parses quickly.
// Observer and Sender run once for each attempt and record its outcome.
package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

// StubKey is the key that callers pass to the SDK if the Exchange has the real address. It is not empty,
// since the SDK refuses empty partition keys, which the service allows.
const StubKey = "k"

// Exchange is the request and response of one SDK call. The caller sets the first group of fields, the policies set the
// second.
type Exchange struct {
	Body        []byte // if not nil, replaces the SDK's body
	ContentType string
	Entity      *Address // if not nil, replaces the stub address
	NoContent   bool     // asks the service not to return an inserted entity
	Table       string   // the table of a transaction, whose address does not name the table
	Limit       int64    // the most bytes of a blob that is downloaded
	Lent        bool     // the caller calls Release, and keeps nothing of Answer beyond that
	Once        bool     // no attempt follows one with an unknown outcome

	Status  int
	Header  http.Header
	Answer  []byte // the body of a successful response; valid until Release or the next use of the Exchange
	Unknown int    // the number of attempts with an unknown outcome
	Last    Outcome

	sent bool  // the attempt under way has passed all policies
	lent *lent // holds Answer if its memory is lent
}

type exchangeKey struct{}

// With returns a context whose next SDK call uses ex.
func With(ctx context.Context, ex *Exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, ex)
}

// TableOf returns the table of the transaction that is sent with ctx, "" if there is none.
func TableOf(ctx context.Context) string {
	if ex, _ := ctx.Value(exchangeKey{}).(*Exchange); ex != nil {
		return ex.Table
	}
	return ""
}

func from(req *policy.Request) *Exchange {
	ex, _ := req.Raw().Context().Value(exchangeKey{}).(*Exchange)
	return ex
}

// Caller is the last policy in ClientOptions.PerCallPolicies. It applies an Exchange to a call, and Paths to every call: one policy, since
// the SDK copies the request for each.
type Caller struct{ Paths Paths }

// Do replaces body and address of a call whose context has an Exchange.
func (c Caller) Do(req *policy.Request) (*http.Response, error) {
	ex := from(req)
	if ex == nil {
		return c.Paths.Do(req)
	}
	if reads, ok := req.Raw().Context().Value(readsKey{}).(*atomic.Int64); ok && req.Raw().Method == http.MethodGet {
		reads.Add(1) // once for a call, regardless of how often the SDK repeats it
	}
	if ex.Entity != nil {
		if err := ex.Entity.replaceStub(req.Raw().URL); err != nil {
			return nil, err
		}
	}
	if ex.NoContent {
		req.Raw().Header["Prefer"] = []string{"return-no-content"}
	}
	if ex.Body != nil {
		if err := req.SetBody(streaming.NopCloser(bytes.NewReader(ex.Body)), ex.ContentType); err != nil {
			return nil, err
		}
	}
	if ex.Lent {
		runtime.SkipBodyDownload(req) // Sender reads the body
	}
	resp, err := c.Paths.Do(req)
	if err != nil {
		return resp, err
	}
	ex.Status, ex.Header = resp.StatusCode, resp.Header
	if resp.StatusCode >= http.StatusMultipleChoices {
		return resp, nil
	}
	if err := ex.take(resp); err != nil {
		ex.Unknown, ex.Last = ex.Unknown+1, OutcomeUnknown
		return nil, err
	}
	return stub(req.Raw(), resp), nil
}

// take sets Answer to the body of a successful response.
func (ex *Exchange) take(resp *http.Response) (err error) {
	if body, ok := resp.Body.(*lent); ok { // otherwise a policy of the caller has replaced the body
		ex.lent, ex.Answer = body, body.text.Bytes()
		return nil
	}
	if ex.Limit > 0 {
		if resp.Body, err = limit(resp.Body, resp.ContentLength, ex.Limit); err != nil {
			return err
		}
	}
	ex.Answer, err = runtime.Payload(resp)
	return err
}

// stub returns the response that the SDK parses in place of the real one.
func stub(req *http.Request, received *http.Response) *http.Response {
	resp := &http.Response{Status: received.Status, StatusCode: received.StatusCode, Header: http.Header{}, Request: req, Body: http.NoBody}
	switch {
	case strings.HasSuffix(req.URL.Path, batchPath):
		// The stub has this body for every status, because the SDK panics if it considers the status a
		// success and finds no parts.
		resp.Body = io.NopCloser(strings.NewReader(stubBatchAnswer))
	case received.StatusCode == http.StatusOK:
		resp.Body = io.NopCloser(strings.NewReader("{}"))
	}
	return resp
}

const stubBatchAnswer = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" +
	"--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n\r\n--c--\r\n--b--\r\n"

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

// Observer comes before the caller's policies in ClientOptions.PerRetryPolicies. It records the outcome of every
// attempt of a call, while Caller sees only the last response. Without the record, the 409 after a repeated insert,
// whose first response was lost, would look like a conflict with another writer.
type Observer struct{}

// Do records the attempt's outcome and removes secrets from its error.
func (Observer) Do(req *policy.Request) (*http.Response, error) {
	ex := from(req)
	if ex == nil {
		return withoutSecrets(req.Next())
	}
	if ex.Last == OutcomeSucceeded {
		ex.Unknown++ // the SDK repeats an attempt that was applied if its response was lost
		if ex.Once {
			return nil, final{errors.New("the response was lost, and the request is sent only once")}
		}
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
	resp, err = withoutSecrets(resp, err)
	if ex.Last != OutcomeUnknown || !ex.Once {
		return resp, err
	}
	if err == nil {
		err = runtime.NewResponseError(resp)
	}
	return nil, final{err}
}

// final is the error of an attempt that the SDK must not repeat.
type final struct{ error }

// NonRetriable makes the SDK's retry policy give up.
func (final) NonRetriable() {}

func (f final) Unwrap() error { return f.error }

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

// Sender is the last policy in ClientOptions.PerRetryPolicies, as a part of lease.Policy. If an attempt does not reach Sender, because a
// credential or a policy of the caller failed or the context has ended, the attempt was certainly not sent.
type Sender struct{}

// Do records that the attempt is sent, and removes secrets from the result. It shows the SDK's retry policy a transient failure
// inside the response to a transaction; see exposeTransient.
func (Sender) Do(req *policy.Request) (*http.Response, error) {
	if err := req.Raw().Context().Err(); err != nil {
		return nil, err
	}
	ex := from(req)
	if ex != nil {
		ex.sent = true
	}
	if sent, _ := req.Raw().Context().Value(sentKey{}).(*bool); sent != nil {
		*sent = true
	}
	resp, err := exposeTransient(req)
	if err == nil && ex != nil && ex.Lent && resp.StatusCode < http.StatusMultipleChoices {
		err = lend(resp)
	}
	return withoutSecrets(resp, err)
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

// isTransient reports whether a later attempt of a request with this response status may succeed.
func isTransient(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests ||
		status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}

// OutcomeOfStatus returns the outcome of an attempt, as far as the status and the error code of its response
// show it. The service sends the code ServerBusy before it does any work, and a gateway never sends that
// code, so such a 503 is a refusal. Any other 503 may come from a gateway that has lost the service's
// response, so the attempt may have been applied.
func OutcomeOfStatus(status int, code string) Outcome {
	switch {
	case status < http.StatusBadRequest:
		return OutcomeSucceeded
	case status == http.StatusServiceUnavailable && code == "ServerBusy", status == http.StatusTooManyRequests, !isTransient(status):
		return OutcomeRefused
	}
	return OutcomeUnknown
}

// codeOf returns the service's error code in a response, or "" if there is none. The table service sends the code only in the
// body, the other services also in a header.
func codeOf(resp *http.Response) string {
	if code := resp.Header.Get(codeHeader); code != "" {
		return code
	}
	body, err := runtime.Payload(resp)
	if err != nil {
		return ""
	}
	if code, _ := ErrorCode(body); code != "" {
		return code
	}
	_, rest, _ := bytes.Cut(body, []byte("<Code>")) // the table service's errors about access policies are XML
	code, _, _ := bytes.Cut(rest, []byte("</Code>"))
	return string(code)
}

const codeHeader = "X-Ms-Error-Code"

// exposeTransient sends the request. Azure reports throttling and timeouts of a transaction inside a response with status 202,
// often without an error code. exposeTransient returns such a failure as the response, since the SDK's retry policy looks only
// at the status; it returns every other response unchanged, for ParseBatchAnswer.
func exposeTransient(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err != nil || resp.StatusCode != http.StatusAccepted || !strings.HasSuffix(req.Raw().URL.Path, batchPath) {
		return resp, err
	}
	body, err := runtime.Payload(resp)
	if err != nil {
		return resp, err
	}
	if !mayHaveFailed(body) {
		return resp, nil // ParseBatchAnswer splits it
	}
	parts, err := changeSetParts(resp.Header.Get("Content-Type"), body, 1)
	if err != nil {
		return resp, nil
	}
	for _, raw := range parts {
		p, err := readPart(raw)
		switch {
		case err != nil:
			return resp, nil
		case isTransient(p.status):
			return p.answer(resp), nil
		case p.status >= http.StatusBadRequest:
			return resp, nil
		}
	}
	return resp, nil
}

// batchPath is the end of the URL path of an entity group transaction.
const batchPath = "/$batch"

// answer returns the part as the response to the whole request. It keeps the headers of the surrounding response, except
// those that describe the body, and adds the part's headers about retries.
func (p *part) answer(around *http.Response) *http.Response {
	resp := *around
	resp.StatusCode, resp.Status = p.status, strconv.Itoa(p.status)+" "+http.StatusText(p.status)
	resp.Header = around.Header.Clone()
	resp.Header.Del("Content-Type")
	for _, name := range [...]string{"Content-Type", codeHeader, "Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if value := header(p.head, name); len(value) > 0 {
			resp.Header.Set(name, string(value))
		}
	}
	resp.Header.Set("Content-Length", strconv.Itoa(len(p.content)))
	resp.ContentLength = int64(len(p.content))
	resp.Body = io.NopCloser(bytes.NewReader(p.content))
	return &resp
}

type readsKey struct{}

// CountReads returns a context in which the policies count the calls with an Exchange that read (GET), such as all
// reads of rows, and the counter. The code that makes the calls need not count them.
func CountReads(ctx context.Context) (context.Context, *atomic.Int64) {
	reads := new(atomic.Int64)
	return context.WithValue(ctx, readsKey{}, reads), reads
}
