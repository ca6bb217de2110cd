package accounts

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
)

// Account is a simulator with helpers for tests.
type Account struct {
	*simulator.Simulator
	T testing.TB
}

// New returns an account; its clock begins at probe.Start unless o.Start is set.
func New(t testing.TB, o simulator.Options) Account {
	t.Helper()
	if o.Start.IsZero() {
		o.Start = probe.Start()
	}
	sim, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return Account{sim, t}
}

// WithTable returns an account with one table, Employees.
func WithTable(t testing.TB, o simulator.Options) Account {
	t.Helper()
	a := New(t, o)
	a.Want(http.MethodPost, "/Tables", `{"TableName":"Employees"}`, 201, "")
	return a
}

// ClientOptions returns options for an SDK client without retries.
func (a Account) ClientOptions() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: a.Simulator, Retry: policy.RetryOptions{MaxRetries: -1}}
}

// Client makes a client of the table service.
func (a Account) Client() *aztables.ServiceClient {
	a.T.Helper()
	credential, err := aztables.NewSharedKeyCredential(a.Account(), a.Key())
	if err != nil {
		a.T.Fatal(err)
	}
	client, err := aztables.NewServiceClientWithSharedKey(a.TableEndpoint(), credential, &aztables.ClientOptions{ClientOptions: a.ClientOptions()})
	if err != nil {
		a.T.Fatal(err)
	}
	return client
}

// Reply is a response whose body has been read.
type Reply struct {
	*http.Response
	Text string
}

// Request returns a signed request; headers are alternating names and values.
func (a Account) Request(method, target, body string, headers ...string) *http.Request {
	a.T.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, a.TableEndpoint()+target, bytes.NewReader([]byte(body)))
	if err != nil {
		a.T.Fatal(err)
	}
	req.Header.Set("x-ms-date", a.Clock().Now().Format(http.TimeFormat))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	a.sign(req)
	return req
}

// sign signs a request as the SDK does. It does not use the simulator's code, so that the tests find an error
// in that code.
func (a Account) sign(req *http.Request) {
	key, _ := base64.StdEncoding.DecodeString(a.Key())
	text := req.Header.Get("x-ms-date") + "\n/" + a.Account() + req.URL.EscapedPath()
	if comp := req.URL.Query().Get("comp"); comp != "" {
		text += "?comp=" + comp
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	req.Header.Set("Authorization", "SharedKeyLite "+a.Account()+":"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
}

// Answer sends a request and reads the response.
func (a Account) Answer(req *http.Request) Reply {
	a.T.Helper()
	resp, err := a.Do(req)
	if err != nil {
		a.T.Fatalf("%s %s: %v", req.Method, req.URL.Path, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.T.Fatal(err)
	}
	return Reply{resp, string(body)}
}

// Send signs a request and sends it; headers are alternating names and values.
func (a Account) Send(method, target, body string, headers ...string) Reply {
	a.T.Helper()
	return a.Answer(a.Request(method, target, body, headers...))
}

// Want sends a request and checks status and error code; code is empty for a success.
func (a Account) Want(method, target, body string, status int, code string, headers ...string) Reply {
	a.T.Helper()
	r := a.Send(method, target, body, headers...)
	r.Check(a.T, method+" "+Clip(target), status, code)
	return r
}

// Check checks status and error code, and that an error response contains the request id; code is empty for a success.
func (r Reply) Check(t testing.TB, what string, status int, code string) {
	t.Helper()
	if r.StatusCode != status || code != "" && !strings.Contains(r.Text, `"code":"`+code+`"`) && !strings.Contains(r.Text, "<Code>"+code+"</Code>") {
		t.Errorf("%s: %d %s, want %d %s", what, r.StatusCode, Clip(r.Text), status, code)
	}
	id := "RequestId:" + r.Header.Get("x-ms-request-id")
	if code != "" && !strings.Contains(r.Text, `\n`+id+`\nTime:2`) && !strings.Contains(r.Text, "\n"+id+"\nTime:2") {
		t.Errorf("%s: the message names no request: %s", what, Clip(r.Text))
	}
}

// Clip shortens a text for a message.
func Clip(s string) string {
	if len(s) > 400 {
		return s[:400] + "..."
	}
	return s
}

// Insert inserts an entity into the table Employees; rest is the JSON after its keys.
func Insert(a Account, pk, rk, rest string) {
	a.T.Helper()
	a.Want(http.MethodPost, "/Employees", `{"PartitionKey":"`+pk+`","RowKey":"`+rk+`"`+rest+`}`, 204, "", "Prefer", "return-no-content")
}

// Anonymous sends a request without an Authorization header; only a signature in its URL can authorize it.
func (a Account) Anonymous(method, address, body string, headers ...string) Reply {
	a.T.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, address, bytes.NewReader([]byte(body)))
	assert.Check(a.T, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return a.Answer(req)
}
