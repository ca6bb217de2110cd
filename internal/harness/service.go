// Package harness has the helpers that the tests of several packages share: processes that meet faults, die and are replaced by others,
// workers that finish their work, and counts of the results that callers got. Only tests import it.
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

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Account opens the account of the test service.
func Account(t testing.TB) *tables.Account {
	t.Helper()
	return AccountWith(t, nil)
}

// AccountWith opens the test account with changed client options; see ClientOptions. Open every account here: without
// the service's transport, a client does not reach the simulator, and Azurite lacks the checks of Azure's rules.
func AccountWith(t testing.TB, change func(*azcore.ClientOptions)) *tables.Account {
	t.Helper()
	options := &tables.AccountOptions{ClientOptions: ClientOptions(t, change)}
	return assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(storagetest.Open(t).ConnectionString, options))
}

// ClientOptions returns the client options of the test service after change, which may add policies, wrap the transport
// (never nil), and set the retries.
func ClientOptions(t testing.TB, change func(*azcore.ClientOptions)) azcore.ClientOptions {
	t.Helper()
	options := storagetest.Open(t).ClientOptions
	if options.Transport == nil { // an account that the environment variables name
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

// OnAzurite reports whether the tests run on Azurite, which lacks some features of Azure and the simulator.
func OnAzurite(t testing.TB) bool {
	t.Helper()
	return storagetest.Open(t).AccountName == "devstoreaccount1"
}

// ServiceNow returns the time by the test service's clock.
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
	OneKind(t, err)
	return e
}

// OneKind fails the test if an error matches two kinds.
func OneKind(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err := kinds.Check(err); err != nil {
			t.Error(err)
		}
	}
}

// Transport is a service inside the test: a function that replaces the network.
type Transport func(*http.Request) (*http.Response, error)

// Do implements policy.Transporter.
func (f Transport) Do(req *http.Request) (*http.Response, error) { return f(req) }

// PerAttempt is a policy.Policy that calls a function for each attempt.
type PerAttempt func(*http.Request)

// Do calls the function and sends the request.
func (f PerAttempt) Do(req *policy.Request) (*http.Response, error) {
	f(req.Raw())
	return req.Next()
}

// Reply makes a response; the headers are pairs of name and value.
func Reply(req *http.Request, status int, body string, headers ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req}
	for i := 0; i < len(headers); i += 2 {
		resp.Header.Set(headers[i], headers[i+1])
	}
	return resp
}

// InProcess opens an account whose requests all go to f, without retries.
func InProcess(t testing.TB, f Transport) *tables.Account {
	t.Helper()
	return inProcess(t, f, policy.RetryOptions{MaxRetries: -1})
}

// InProcessRetrying does what InProcess does, with three immediate retries.
func InProcessRetrying(t testing.TB, f Transport) *tables.Account {
	t.Helper()
	return inProcess(t, f, policy.RetryOptions{RetryDelay: time.Microsecond})
}

func inProcess(t testing.TB, f Transport, retry policy.RetryOptions) *tables.Account {
	t.Helper()
	options := &tables.AccountOptions{ClientOptions: azcore.ClientOptions{Transport: f, Retry: retry}}
	return assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.Endpoints{Table: "http://table.test/contoso"}, "contoso", "a2V5", options))
}

// Counted opens the test account and counts its requests.
func Counted(t testing.TB) (*tables.Account, *atomic.Int64) {
	t.Helper()
	n := new(atomic.Int64)
	return AccountWith(t, Watching(PerAttempt(func(*http.Request) { n.Add(1) }))), n
}

// CountedService returns the service with a counter of its requests.
func CountedService(s *storagetest.Service) (*storagetest.Service, *storagetest.RequestCounter) {
	counted, counter := *s, &storagetest.RequestCounter{}
	counted.ClientOptions.PerRetryPolicies = append(slices.Clip(counted.ClientOptions.PerRetryPolicies), counter)
	return &counted, counter
}

// Row makes an entity.
func Row(partition, row string, properties ...tables.Property) *tables.Entity {
	return &tables.Entity{Key: tables.Key{Partition: partition, Row: row}, Properties: properties}
}

// Bag makes an entity with one property.
func Bag(partition, row, text string) *tables.Entity {
	return Row(partition, row, tables.Property{Name: "Text", Value: tables.String(text)})
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

// RefusedUnsent fails unless f returns an error of that kind and the account makes no request during the
// call.
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

// BatchAnswer returns the response to a transaction of n upserts.
func BatchAnswer(n int) []byte {
	answer := []byte("--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n")
	for i := range n {
		answer = fmt.Appendf(answer, "--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
			"HTTP/1.1 204 No Content\r\nContent-ID: %d\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n"+
			"DataServiceVersion: 1.0;\r\nETag: %s\r\n\r\n\r\n", i+1, fmt.Sprintf("W/\"datetime'2026-01-01T00%%3A00%%3A00.%07dZ'\"", i+1))
	}
	return append(answer, "--changesetresponse_2--\r\n--batchresponse_1--\r\n"...)
}

// ExampleAccount opens the shared test service for an example.
func ExampleAccount() *tables.Account {
	service, err := storagetest.OpenShared()
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	return account
}

// ExampleTable creates a table for an example on the shared test service.
func ExampleTable(name string) *tables.Table {
	table := ExampleAccount().Table(name)
	if err := table.Create(context.Background()); err != nil {
		log.Fatal(err)
	}
	return table
}

// Bags makes n rows, and distributes them over p partitions in turn.
func Bags(n, p int) iter.Seq2[*tables.Entity, error] {
	return func(yield func(*tables.Entity, error) bool) {
		for i := range n {
			if !yield(Row(fmt.Sprintf("p%02d", i%p), fmt.Sprintf("%06d", i), tables.Property{Name: "N", Value: tables.Int32(int32(i))}), nil) {
				return
			}
		}
	}
}

// PatternOf returns the Implementation of the repository's pattern with the given name.
func PatternOf[T any](t testing.TB, r *patterns.Repository[T], name string) *driver.Implementation {
	t.Helper()
	for _, p := range patterns.HostOf(r).Patterns() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("the repository has no pattern %q", name)
	panic("unreachable")
}

// In returns a handle of the table that, like a table of a store, has a carrier for the intents of its
// repositories: a queue, or a runner of the test. A nil carrier means none.
func In(table *tables.Table, carrier any) *tables.Table {
	var runner intents.Runner
	switch carrier := carrier.(type) {
	case nil:
		return table
	case *eventual.Queue:
		runner = Runner(carrier)
	case intents.Runner:
		runner = carrier
	default:
		panic(fmt.Sprintf("intents carried by a %T", carrier))
	}
	return (*tables.Table)((*core.Table)(table).Owned(runner))
}

// Runner returns the runner of intents that a store with this queue uses.
func Runner(queue *eventual.Queue) intents.Runner {
	return intents.Of((*handle.Any)(queue)).Runner(0)
}

// AsyncIf wraps those patterns that have effects outside of the partition in patterns.Async, and returns the others unchanged.
func AsyncIf[T any](async bool, all ...patterns.Pattern[T]) []patterns.Pattern[T] {
	if !async {
		return all
	}
	asynchronous := make([]patterns.Pattern[T], len(all))
	for i, p := range all {
		asynchronous[i] = perhapsAsync[T]{p}
	}
	return asynchronous
}

// perhapsAsync is a pattern whose effects outside of the partition, if it has any, are left to workers.
type perhapsAsync[T any] struct{ patterns.Pattern[T] }

// Attach implements patterns.Pattern.
func (p perhapsAsync[T]) Attach(host driver.Host, of *T) (driver.Implementation, error) {
	i, err := p.Pattern.Attach(host, of)
	i.Effect.Async = i.Effect.OutsideKeys != nil
	return i, err
}

// ApplyAndClose returns a function that applies the effects of a change and closes its intent.
func ApplyAndClose(apply func(context.Context) (intents.Rest, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		rest, err := apply(ctx)
		if err == nil && rest.Close != nil {
			err = rest.Close(ctx)
		}
		return err
	}
}

// OneGet lets a process get messages once; further gets return none. In a walk, each run of a worker then
// handles one message. That makes the walk smaller, since no poll between two messages finds nothing.
func OneGet(s *storagetest.Service) *storagetest.Service {
	once := *s
	once.ClientOptions.PerCallPolicies = append(slices.Clone(s.ClientOptions.PerCallPolicies), new(onlyGet))
	return &once
}

// onlyGet is the policy of OneGet. It does not affect renewals.
type onlyGet struct{ done atomic.Bool }

// Do implements policy.Policy.
func (g *onlyGet) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	if raw.Method != http.MethodGet || !strings.HasSuffix(raw.URL.Path, "/messages") || !g.done.Swap(true) {
		return req.Next()
	}
	return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: raw,
		Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(`<QueueMessagesList />`))}, nil
}
