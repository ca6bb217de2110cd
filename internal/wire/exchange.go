// Package wire sends request bodies that this library has encoded through calls of the official SDK, and returns the
// responses undecoded.
//
// The SDK chooses the account's address, authorizes, retries and traces. If the context of a call contains an
// Exchange, three policies take part. Caller runs once for each call: it replaces the SDK's body and address
// by those of the Exchange, and keeps the response. Observer and Sender run once for each attempt and record
// its outcome. The SDK gets a stub response, which it parses quickly.
//
// This package stores nothing and depends on no pattern.
package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

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

	Status  int
	Header  http.Header
	Answer  []byte // the body of a successful response; valid until the Exchange is used again
	Unknown int    // the number of attempts with an unknown outcome
	Last    Outcome

	sent bool // the attempt under way has passed all policies
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

// Caller is the policy for ClientOptions.PerCallPolicies that applies an Exchange to a call.
type Caller struct{}

// Do replaces body and address of a call whose context has an Exchange, and sends every other call unchanged.
func (Caller) Do(req *policy.Request) (*http.Response, error) {
	ex := from(req)
	if ex == nil {
		return req.Next()
	}
	countRead(req)
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
	resp, err := req.Next()
	if err != nil {
		return resp, err
	}
	ex.Status, ex.Header = resp.StatusCode, resp.Header
	if resp.StatusCode >= 400 {
		return resp, nil
	}
	ex.Answer, err = runtime.Payload(resp)
	if err != nil {
		ex.Unknown, ex.Last = ex.Unknown+1, OutcomeUnknown
		return nil, err
	}
	return stub(req.Raw(), resp), nil
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
