package patterns_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// account opens the account that the tests run on.
func account(t testing.TB) *patterns.Account {
	t.Helper()
	return accountWith(t, nil)
}

// accountWith opens the account that the tests run on with a client of its own; see clientOptions. Every account on the
// service is opened here: without the service's transport, a client reaches no simulator, and an Azurite that keeps no rules.
func accountWith(t testing.TB, change func(*azcore.ClientOptions)) *patterns.Account {
	t.Helper()
	options := &patterns.AccountOptions{ClientOptions: clientOptions(t, change)}
	return must[*patterns.Account](t)(patterns.NewAccountFromConnectionString(storagetest.Open(t).ConnectionString, options))
}

// clientOptions are those of the service that the tests run on, as change leaves them: it may add policies, put something
// in front of the transport, which is never nil, and set the retries.
func clientOptions(t testing.TB, change func(*azcore.ClientOptions)) azcore.ClientOptions {
	t.Helper()
	options := storagetest.Open(t).ClientOptions
	if options.Transport == nil { // an account of the environment
		options.Transport = http.DefaultClient
	}
	if change != nil {
		change(&options)
	}
	return options
}

// watching adds policies that see every attempt.
func watching(policies ...policy.Policy) func(*azcore.ClientOptions) {
	return func(o *azcore.ClientOptions) {
		o.PerRetryPolicies = append(slices.Clip(o.PerRetryPolicies), policies...)
	}
}

// onAzurite reports whether the tests run on Azurite, of which some things cannot be asked that Azure and the simulator do.
func onAzurite(t testing.TB) bool {
	t.Helper()
	return storagetest.Open(t).AccountName == "devstoreaccount1"
}

// serviceNow is the time by the clock of the service that the tests run on.
func serviceNow(t testing.TB) time.Time {
	t.Helper()
	if clock := storagetest.Open(t).Clock; clock != nil {
		return clock.Now()
	}
	return time.Now()
}

// newTable creates a table for one test.
func newTable(t testing.TB, a *patterns.Account) *patterns.Table {
	t.Helper()
	table := a.Table(storagetest.Open(t).TableName(t))
	if err := table.CreateIfMissing(context.Background()); err != nil {
		t.Fatal(err)
	}
	return table
}

// wantKind fails unless err is an *Error of that kind.
func wantKind(t testing.TB, err, kind error) *patterns.Error {
	t.Helper()
	var e *patterns.Error
	if !errors.As(err, &e) || !errors.Is(err, kind) {
		t.Fatalf("error is %v, want %v", err, kind)
	}
	return e
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// transport is a service inside the test: a function in place of the network.
type transport func(*http.Request) (*http.Response, error)

// Do is policy.Transporter.
func (f transport) Do(req *http.Request) (*http.Response, error) { return f(req) }

// perAttempt is a policy.Policy that watches.
type perAttempt func(*http.Request)

// Do shows an attempt to the function and lets it go on.
func (f perAttempt) Do(req *policy.Request) (*http.Response, error) {
	f(req.Raw())
	return req.Next()
}

// reply makes the answer of a transport; the headers are pairs of name and value.
func reply(req *http.Request, status int, body string, headers ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req}
	for i := 0; i < len(headers); i += 2 {
		resp.Header.Set(headers[i], headers[i+1])
	}
	return resp
}

// inProcess opens an account whose requests all go to f, and are not repeated.
func inProcess(t testing.TB, f transport) *patterns.Account {
	t.Helper()
	options := &patterns.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: f, Retry: policy.RetryOptions{MaxRetries: -1}}}
	return must[*patterns.Account](t)(patterns.NewAccountWithSharedKey(patterns.Endpoints{Table: "http://table.test/contoso"}, "contoso", "a2V5", options))
}

// counted opens the test account and counts the requests that it makes.
func counted(t testing.TB) (*patterns.Account, *atomic.Int64) {
	t.Helper()
	n := new(atomic.Int64)
	return accountWith(t, watching(perAttempt(func(*http.Request) { n.Add(1) }))), n
}

// inProcessRetrying is inProcess with three retries, at once.
func inProcessRetrying(t testing.TB, f transport) *patterns.Account {
	t.Helper()
	options := &patterns.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: f, Retry: policy.RetryOptions{RetryDelay: time.Microsecond}}}
	return must[*patterns.Account](t)(patterns.NewAccountWithSharedKey(patterns.Endpoints{Table: "http://table.test/contoso"}, "contoso", "a2V5", options))
}
