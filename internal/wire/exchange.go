// Package wire carries this library's own bytes through calls of the official SDK.
//
// The SDK chooses the account's address, authorizes, retries and traces; the bodies are not its business. A call
// whose context holds an Exchange is caught by three policies: Caller, once for each call, puts the exchange's body
// and entity address in place of the SDK's and keeps the raw answer; Observer and Sender, once for each attempt, note
// what became of it. To the SDK goes a stub that it can parse at no cost.
//
// Nothing here is stored, and nothing here knows a pattern.
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

// StubKey is the key given to the SDK in calls whose real address the exchange sets. The SDK refuses empty
// partition keys, which the service allows.
const StubKey = "k"

// Exchange is what one call of the SDK carries. The caller fills the first part; the policies the second.
type Exchange struct {
	Body        []byte // replaces the SDK's body when not nil
	ContentType string
	Entity      *Address // replaces the stub address when not nil
	NoContent   bool     // asks for no echo of an inserted entity

	Status  int
	Header  http.Header
	Answer  []byte // the body of a success; valid until the next use of the exchange
	Unknown int    // attempts that may or may not have been applied
	Last    Outcome

	sent bool // the attempt under way got past every policy
}

type exchangeKey struct{}

// With returns a context whose next SDK call is made with ex.
func With(ctx context.Context, ex *Exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, ex)
}

func from(req *policy.Request) *Exchange {
	ex, _ := req.Raw().Context().Value(exchangeKey{}).(*Exchange)
	return ex
}

// Caller is the policy for ClientOptions.PerCallPolicies.
type Caller struct{}

// Do swaps bodies for a call that carries an Exchange, and leaves every other call alone.
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

// stub is the answer the SDK gets to parse in place of the real one.
func stub(req *http.Request, real *http.Response) *http.Response {
	resp := &http.Response{Status: real.Status, StatusCode: real.StatusCode, Header: http.Header{}, Request: req, Body: http.NoBody}
	switch {
	case strings.HasSuffix(req.URL.Path, batchPath):
		// Whatever the status: the SDK panics when it takes one for a success and finds no parts.
		resp.Body = io.NopCloser(strings.NewReader(stubBatchAnswer))
	case real.StatusCode == http.StatusOK:
		resp.Body = io.NopCloser(strings.NewReader("{}"))
	}
	return resp
}

const stubBatchAnswer = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" +
	"--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n\r\n--c--\r\n--b--\r\n"
