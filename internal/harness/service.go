package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Account opens the account that the tests run on.
func Account(t testing.TB) *tables.Account {
	t.Helper()
	return AccountWith(t, nil)
}

// AccountWith opens the account that the tests run on with a client of its own; see clientOptions. Every account on the
// service is opened here: without the service's transport, a client reaches no simulator, and an Azurite that keeps no rules.
func AccountWith(t testing.TB, change func(*azcore.ClientOptions)) *tables.Account {
	t.Helper()
	options := &tables.AccountOptions{ClientOptions: ClientOptions(t, change)}
	return Must[*tables.Account](t)(tables.NewAccountFromConnectionString(storagetest.Open(t).ConnectionString, options))
}

// ClientOptions are those of the service that the tests run on, as change leaves them: it may add policies, put something
// in front of the transport, which is never nil, and set the retries.
func ClientOptions(t testing.TB, change func(*azcore.ClientOptions)) azcore.ClientOptions {
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

// Watching adds policies that see every attempt.
func Watching(policies ...policy.Policy) func(*azcore.ClientOptions) {
	return func(o *azcore.ClientOptions) {
		o.PerRetryPolicies = append(slices.Clip(o.PerRetryPolicies), policies...)
	}
}

// OnAzurite reports whether the tests run on Azurite, of which some things cannot be asked that Azure and the simulator do.
func OnAzurite(t testing.TB) bool {
	t.Helper()
	return storagetest.Open(t).AccountName == "devstoreaccount1"
}

// ServiceNow is the time by the clock of the service that the tests run on.
func ServiceNow(t testing.TB) time.Time {
	t.Helper()
	if clock := storagetest.Open(t).Clock; clock != nil {
		return clock.Now()
	}
	return time.Now()
}

// NewTable creates a table for one test.
func NewTable(t testing.TB, a *tables.Account) *tables.Table {
	t.Helper()
	table := a.Table(storagetest.Open(t).TableName(t))
	if err := table.CreateIfMissing(context.Background()); err != nil {
		t.Fatal(err)
	}
	return table
}

// WantKind fails unless err is an *Error of that kind.
func WantKind(t testing.TB, err, kind error) *tables.Error {
	t.Helper()
	var e *tables.Error
	if !errors.As(err, &e) || !errors.Is(err, kind) {
		t.Fatalf("error is %v, want %v", err, kind)
	}
	return e
}

// Must returns the value of a call that must not fail.
func Must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Transport is a service inside the test: a function in place of the network.
type Transport func(*http.Request) (*http.Response, error)

// Do is policy.Transporter.
func (f Transport) Do(req *http.Request) (*http.Response, error) { return f(req) }

// PerAttempt is a policy.Policy that watches.
type PerAttempt func(*http.Request)

// Do shows an attempt to the function and lets it go on.
func (f PerAttempt) Do(req *policy.Request) (*http.Response, error) {
	f(req.Raw())
	return req.Next()
}

// Reply makes the answer of a transport; the headers are pairs of name and value.
func Reply(req *http.Request, status int, body string, headers ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req}
	for i := 0; i < len(headers); i += 2 {
		resp.Header.Set(headers[i], headers[i+1])
	}
	return resp
}

// InProcess opens an account whose requests all go to f, and are not repeated.
func InProcess(t testing.TB, f Transport) *tables.Account {
	t.Helper()
	options := &tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: f, Retry: policy.RetryOptions{MaxRetries: -1}}}
	return Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "http://table.test/contoso"}, "contoso", "a2V5", options))
}

// Counted opens the test account and counts the requests that it makes.
func Counted(t testing.TB) (*tables.Account, *atomic.Int64) {
	t.Helper()
	n := new(atomic.Int64)
	return AccountWith(t, Watching(PerAttempt(func(*http.Request) { n.Add(1) }))), n
}

// InProcessRetrying is inProcess with three retries, at once.
func InProcessRetrying(t testing.TB, f Transport) *tables.Account {
	t.Helper()
	options := &tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: f, Retry: policy.RetryOptions{RetryDelay: time.Microsecond}}}
	return Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "http://table.test/contoso"}, "contoso", "a2V5", options))
}

// Row makes an entity.
func Row(partition, row string, properties ...tables.Property) *tables.Entity {
	return &tables.Entity{Key: tables.Key{Partition: partition, Row: row}, Properties: properties}
}

// Bag makes an entity with one property.
func Bag(partition, row, text string) *tables.Entity {
	return &tables.Entity{Key: tables.Key{Partition: partition, Row: row}, Properties: tables.Properties{{Name: "Text", Value: tables.String(text)}}}
}

// CountRows counts the rows of a table.
func CountRows(t testing.TB, table *tables.Table) (n int) {
	t.Helper()
	for _, err := range table.Entities().Query().AllowTableScan().All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// RefusedUnsent fails unless f gives an error of that kind and the account made no request meanwhile.
func RefusedUnsent(t testing.TB, requests *atomic.Int64, kind error, what string, f func() error) {
	t.Helper()
	before := requests.Load()
	err := f()
	if n := requests.Load() - before; n != 0 {
		t.Errorf("%s: %d requests before it was refused", what, n)
	}
	if err == nil {
		t.Errorf("%s was not refused", what)
		return
	}
	WantKind(t, err, kind)
}

// BatchAnswer is the answer to a transaction of n upserts.
func BatchAnswer(n int) []byte {
	answer := []byte("--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n")
	for i := range n {
		answer = fmt.Appendf(answer, "--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
			"HTTP/1.1 204 No Content\r\nContent-ID: %d\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n"+
			"DataServiceVersion: 1.0;\r\nETag: %s\r\n\r\n\r\n", i+1, fmt.Sprintf("W/\"datetime'2026-01-01T00%%3A00%%3A00.%07dZ'\"", i+1))
	}
	return append(answer, "--changesetresponse_2--\r\n--batchresponse_1--\r\n"...)
}

// ExampleTable creates a table on the service that the tests share.
func ExampleTable(name string) *tables.Table {
	service, err := storagetest.OpenShared()
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	table := account.Table(name)
	if err := table.Create(context.Background()); err != nil {
		log.Fatal(err)
	}
	return table
}

// Bags makes n rows over p partitions one after the other.
func Bags(n, p int) iter.Seq2[*tables.Entity, error] {
	return func(yield func(*tables.Entity, error) bool) {
		for i := range n {
			e := &tables.Entity{Key: tables.Key{Partition: fmt.Sprintf("p%02d", i%p), Row: fmt.Sprintf("%06d", i)}}
			e.Set("N", tables.Int32(int32(i)))
			if !yield(e, nil) {
				return
			}
		}
	}
}

// PatternOf is what a pattern contributes to a repository, by its name.
func PatternOf[T any](t testing.TB, r *patterns.Repository[T], name string) driver.Implementation[T] {
	t.Helper()
	for _, p := range patterns.HostOf(r).Patterns() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("the repository has no pattern %q", name)
	panic("unreachable")
}
