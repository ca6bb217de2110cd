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
	"time"

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

func TestNewRefusesAKeyThatIsNone(t *testing.T) {
	if _, err := New(Options{Key: "not base64!"}); err == nil || strings.Contains(err.Error(), "not base64!") {
		t.Errorf("error %v, which must be one and must not show the key", err)
	}
}

func TestDoKnowsItsHosts(t *testing.T) {
	a := newAccount(t, Options{})
	for _, address := range []string{"http://example.com/", "http://other.table.sim.test/Tables", "http://contoso.file.sim.test/x", "http://contoso.sim.test/"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if _, err := a.Do(req); err == nil {
			t.Errorf("%s was answered", address)
		}
	}
}

func TestDoHonoursItsContext(t *testing.T) {
	a := newAccount(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := a.request(http.MethodPost, "/Tables", `{"TableName":"Employees"}`).WithContext(ctx)
	if _, err := a.Do(req); err != context.Canceled {
		t.Errorf("error %v", err)
	}
	if len(a.Tables()) != 0 {
		t.Error("the request was carried out")
	}
}

func TestDoRefusesACutBody(t *testing.T) {
	a := newAccount(t, Options{})
	req := a.request(http.MethodPost, "/Tables", `{"TableName":"Employees"}`)
	req.ContentLength += 5
	if _, err := a.Do(req); err == nil {
		t.Error("a body shorter than its header says was served")
	}
}

func TestAnswersCarryTheirHeaders(t *testing.T) {
	a := withTable(t, Options{})
	r := a.want(http.MethodGet, "/Employees()", "", 200, "", "x-ms-version", "2019-02-02", "x-ms-client-request-id", "mine")
	for name, want := range map[string]string{
		"Content-Type": "application/json;odata=minimalmetadata;streaming=true;charset=utf-8", "Cache-Control": "no-cache",
		"X-Content-Type-Options": "nosniff", "x-ms-version": "2019-02-02", "x-ms-client-request-id": "mine",
		"Server": "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0", "Date": a.Clock().Now().Format(http.TimeFormat),
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if again := a.send(http.MethodGet, "/Employees()", ""); again.Header.Get("x-ms-request-id") == r.Header.Get("x-ms-request-id") {
		t.Error("two requests have one id")
	}
}

func TestAllServicesAreThere(t *testing.T) {
	a := newAccount(t, Options{})
	for _, endpoint := range []string{a.TableEndpoint(), a.QueueEndpoint(), a.BlobEndpoint()} {
		for _, scheme := range []string{"http", "https"} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(endpoint, "http", scheme, 1)+"/", nil)
			a.do(req).check(t, endpoint, 401, "NoAuthenticationInformation")
		}
	}
}

func TestClockStampsRise(t *testing.T) {
	c := NewClock(time.Date(2026, 1, 1, 0, 0, 0, 123, time.UTC))
	last := c.Now()
	for range 3 {
		at := c.Stamp()
		if !at.After(last) || at.Nanosecond()%100 != 0 {
			t.Fatalf("%v after %v", at, last)
		}
		last = at
	}
}
