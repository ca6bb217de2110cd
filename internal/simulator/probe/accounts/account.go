package simulator

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
)

// account is a simulator with the ways to reach it that tests use.
type account struct {
	*Simulator
	t testing.TB
}

func newAccount(t testing.TB, o Options) account {
	t.Helper()
	if o.Start.IsZero() {
		o.Start = testStart()
	}
	sim, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return account{sim, t}
}

// withTable makes a simulator that has one table, named Employees.
func withTable(t testing.TB, o Options) account {
	t.Helper()
	a := newAccount(t, o)
	a.want(http.MethodPost, "/Tables", `{"TableName":"Employees"}`, 201, "")
	return a
}

func (a account) clientOptions() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: a.Simulator, Retry: policy.RetryOptions{MaxRetries: -1}}
}

func (a account) client() *aztables.ServiceClient {
	a.t.Helper()
	credential, err := aztables.NewSharedKeyCredential(a.Account(), a.Key())
	if err != nil {
		a.t.Fatal(err)
	}
	client, err := aztables.NewServiceClientWithSharedKey(a.TableEndpoint(), credential, &aztables.ClientOptions{ClientOptions: a.clientOptions()})
	if err != nil {
		a.t.Fatal(err)
	}
	return client
}

// reply is an answer with its body read.
type reply struct {
	*http.Response
	text string
}

// request makes a signed request; headers are names and values in turn.
func (a account) request(method, target, body string, headers ...string) *http.Request {
	a.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, a.TableEndpoint()+target, bytes.NewReader([]byte(body)))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("x-ms-date", a.Clock().Now().Format(http.TimeFormat))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	a.sign(req)
	return req
}

// sign signs as the SDK does, by code of its own: the simulator's must not be the judge of itself.
func (a account) sign(req *http.Request) {
	key, _ := base64.StdEncoding.DecodeString(a.Key())
	text := req.Header.Get("x-ms-date") + "\n/" + a.Account() + req.URL.EscapedPath()
	if comp := req.URL.Query().Get("comp"); comp != "" {
		text += "?comp=" + comp
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	req.Header.Set("Authorization", "SharedKeyLite "+a.Account()+":"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
}

func (a account) do(req *http.Request) reply {
	a.t.Helper()
	resp, err := a.Do(req)
	if err != nil {
		a.t.Fatalf("%s %s: %v", req.Method, req.URL.Path, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return reply{resp, string(body)}
}

func (a account) send(method, target, body string, headers ...string) reply {
	a.t.Helper()
	return a.do(a.request(method, target, body, headers...))
}

// want sends a request and checks status and error code; code is empty for a success.
func (a account) want(method, target, body string, status int, code string, headers ...string) reply {
	a.t.Helper()
	r := a.send(method, target, body, headers...)
	r.check(a.t, method+" "+clip(target), status, code)
	return r
}

func (r reply) check(t testing.TB, what string, status int, code string) {
	t.Helper()
	if r.StatusCode != status || code != "" && !strings.Contains(r.text, `"code":"`+code+`"`) && !strings.Contains(r.text, "<Code>"+code+"</Code>") {
		t.Errorf("%s: %d %s, want %d %s", what, r.StatusCode, clip(r.text), status, code)
	}
	id := "RequestId:" + r.Header.Get("x-ms-request-id")
	if code != "" && !strings.Contains(r.text, `\n`+id+`\nTime:2`) && !strings.Contains(r.text, "\n"+id+"\nTime:2") {
		t.Errorf("%s: the message names no request: %s", what, clip(r.text))
	}
}

func clip(s string) string {
	if len(s) > 400 {
		return s[:400] + "..."
	}
	return s
}

func insert(a account, pk, rk, rest string) {
	a.t.Helper()
	a.want(http.MethodPost, "/Employees", `{"PartitionKey":"`+pk+`","RowKey":"`+rk+`"`+rest+`}`, 204, "", "Prefer", "return-no-content")
}

// anonymous sends a request that has nothing but a signature in its address to vouch for it.
func (a account) anonymous(method, address, body string, headers ...string) reply {
	a.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, address, bytes.NewReader([]byte(body)))
	noError(a.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return a.do(req)
}
