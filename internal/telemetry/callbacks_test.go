package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestHandlersOperationsAreTheirOwn: what the handler of an outbox does has spans and metrics of its own, and is told of missing tables even
// if the change that calls it expects some to be missing.
func TestHandlersOperationsAreTheirOwn(t *testing.T) {
	ctx, s, w := t.Context(), storagetest.Simulator(t, nil), newWatch()
	account := w.account(t, s)
	store := assert.Must[*patterns.Store](t)(patterns.Open("outbox", &patterns.StoreOptions{Account: account}))
	handled := errors.New("not called")
	calls := eventual.OnCommit("calls", func(ctx context.Context, _ eventual.Commit[labelled]) error {
		_, handled = account.Table("Nowhere").Entities().Get(ctx, tables.Key{Partition: "p", Row: "r"})
		return nil
	}, nil)
	repo := assert.Must[*patterns.Repository[labelled]](t)(patterns.NewRepository(store.Table("Labels"), labelSchema(), calls))
	assert.Check(t, store.Create(ctx), repo.Insert(telemetry.ExpectMissing(ctx), &labelled{ID: 1}), harness.Settle(ctx, store))
	harness.WantKind(t, handled, tables.ErrMissingResource)
	spans := w.named("Get Nowhere")
	if len(spans) != 1 || attributeOf(spans[0], telemetry.AttrOutcome) != "missing_resource" {
		t.Errorf("%d spans of the handler's own operation: %v", len(spans), spans)
	}
	if n := w.sum(t, "db.client.operation.duration", telemetry.AttrTable, "Nowhere", telemetry.AttrVerb, "Get"); n != 1 {
		t.Errorf("%d metrics of the handler's own operation", n)
	}
	if n := w.sum(t, "tablepatterns.resources.missing", telemetry.AttrResource, "Nowhere"); n != 1 || !strings.Contains(w.log.String(), "resource=Nowhere") {
		t.Errorf("the missing table was told %d times: %s", n, w.log)
	}
}

func labelSchema() patterns.Schema[labelled] {
	return patterns.Schema[labelled]{Key: func(l *labelled) tables.Key { return tables.Key{Partition: "p", Row: fmt.Sprint("row", l.ID)} }}
}

// panicking is a policy of the program that panics when it is told to.
type panicking struct{ armed atomic.Bool }

func (p *panicking) Do(req *policy.Request) (*http.Response, error) {
	if p.armed.Load() {
		panic("by order")
	}
	return req.Next()
}

// perAttempt is a policy of the program.
type perAttempt func(req *policy.Request) (*http.Response, error)

func (f perAttempt) Do(req *policy.Request) (*http.Response, error) { return f(req) }

// TestPanicEndsSpans: the span of an operation ends with an error if a callback of the program panics: the body of a loop, a sequence,
// Progress, or a policy of the client.
func TestPanicEndsSpans(t *testing.T) {
	ctx, s, w := t.Context(), storagetest.Simulator(t, nil), newWatch()
	p := &panicking{}
	faulty := *s
	faulty.ClientOptions.PerCallPolicies = append(slices.Clone(s.ClientOptions.PerCallPolicies), p)
	account := w.account(t, &faulty)
	store := assert.Must[*patterns.Store](t)(patterns.Open("panics", &patterns.StoreOptions{Account: account}))
	const table, queue = "Labels", "panics-work"
	kind := heterogeneous.NewType[labelled]("Label", 2, &heterogeneous.TypeOptions{Steps: []heterogeneous.Step{heterogeneous.From(1, func(old *labelled) (*labelled, error) { return old, nil })}})
	before := assert.Must[*patterns.Repository[labelled]](t)(patterns.NewRepository(store.Table(table), labelSchema(), heterogeneous.NewType[labelled]("Label", 1, nil)))
	repo := assert.Must[*patterns.Repository[labelled]](t)(patterns.NewRepository(store.Table(table), labelSchema(), kind))
	rows := account.Table(table).Entities()
	work := assert.Must[*eventual.Queue](t)(eventual.NewQueue(account, queue, nil))
	assert.Check(t, store.Create(ctx), work.Create(ctx), before.Insert(ctx, &labelled{ID: 1}), before.Insert(ctx, &labelled{ID: 2}))
	panics := &patterns.JobOptions{Progress: func(tables.Progress) { panic("by order") }}
	sequence := func() iter.Seq2[*labelled, error] { return func(func(*labelled, error) bool) { panic("by order") } }
	worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(work, map[string]eventual.Handler{"work": func(context.Context, *eventual.Message) error { return nil }}, nil))
	for _, c := range []struct {
		span string
		do   func()
	}{
		{"Rebuild " + table, func() { _, _ = repo.Rebuild(ctx, panics) }},
		{"Verify " + table, func() { _, _ = repo.Verify(ctx, panics) }},
		{"Repair " + table, func() { _, _ = repo.Repair(ctx, panics) }},
		{"Upgrade " + table, func() { _, _ = kind.Upgrade(ctx, panics) }},
		{"BulkNonAtomic " + table, func() { _, _ = repo.BulkNonAtomic(ctx, sequence(), nil) }},
		{"BulkNonAtomic " + table, func() {
			_, _ = rows.BulkNonAtomic(ctx, func(func(*tables.Entity, error) bool) { panic("by order") }, &tables.BulkOptions{Verb: tables.BulkUpsert})
		}},
		{"All " + table, func() {
			for range rows.Query().Partition("p").All(ctx) {
				panic("by order")
			}
		}},
		{"All " + table, func() {
			p.armed.Store(true)
			for range repo.Query().Partition("p").All(ctx) {
				break
			}
		}},
		{"AllPartitions " + table, func() {
			for range rows.Query().AllPartitions(ctx, []string{"p"}, nil) {
				panic("by order")
			}
		}},
		{"GetMany " + table, func() {
			for range repo.GetMany(ctx, []tables.Key{{Partition: "p", Row: "row1"}}, nil) {
				panic("by order")
			}
		}},
		{"Get " + table, func() { p.armed.Store(true); _, _ = repo.Get(ctx, tables.Key{Partition: "p", Row: "row1"}) }},
		{"First " + table, func() { p.armed.Store(true); _, _ = repo.Query().Partition("p").First(ctx) }},
		{"Page " + table, func() { p.armed.Store(true); _, _ = repo.Query().Partition("p").Page(ctx, "") }},
		{"Commit " + table, func() {
			tx := repo.Table().NewTransaction()
			repo.StageInsert(tx, &labelled{ID: 3})
			p.armed.Store(true)
			_, _ = tx.Commit(ctx)
		}},
		{"send " + queue, func() { p.armed.Store(true); _, _ = work.Send(ctx, "work", nil, nil) }},
		{"receive " + queue, func() { p.armed.Store(true); _, _ = worker.Drain(ctx) }},
	} {
		t.Run(c.span, func(t *testing.T) {
			w.spans.Reset()
			func() {
				defer func() {
					p.armed.Store(false)
					if recover() == nil {
						t.Error("no panic reached the caller")
					}
				}()
				c.do()
			}()
			spans := w.named(c.span)
			if len(spans) != 1 || spans[0].Status().Code != codes.Error || attributeOf(spans[0], telemetry.AttrOutcome) != "error" {
				t.Errorf("%d spans ended: %v", len(spans), describeSpans(w.spans.Ended()))
			}
			if begun := len(w.spans.Started()); begun != len(w.spans.Ended()) {
				t.Errorf("%d spans began, and %d ended", begun, len(w.spans.Ended()))
			}
		})
	}
}

func describeSpans(spans []trace.ReadOnlySpan) (texts []string) {
	for _, s := range spans {
		texts = append(texts, fmt.Sprint(s.Name(), " ", s.Status(), s.Attributes()))
	}
	return texts
}

// TestUnsentAttemptsAreNotUnknown: an attempt that a policy of the program stops has no unknown outcome, and one whose response is lost has.
func TestUnsentAttemptsAreNotUnknown(t *testing.T) {
	s, w := storagetest.Simulator(t, nil).WithRetries(-1), newWatch()
	assert.Check(t, w.account(t, s).Table(ordersTable).Create(t.Context()))
	stopped := *s
	stopped.ClientOptions.PerRetryPolicies = append(slices.Clone(s.ClientOptions.PerRetryPolicies), perAttempt(func(*policy.Request) (*http.Response, error) {
		return nil, errors.New("stopped by the program")
	}))
	for account, want := range map[*tables.Account]int64{w.account(t, &stopped): 0, w.account(t, s): 0} {
		_ = account.Table(ordersTable).Entities().Insert(t.Context(), harness.Bag("p", "r", ""))
		assert.Equal(t, w.sum(t, "tablepatterns.request.unknown_outcomes"), want, "attempts with an unknown outcome")
	}
	faulty, _ := s.Faulty(storagetest.On(storagetest.InsertEntity, storagetest.Once(storagetest.LostAnswer)))
	_ = w.account(t, faulty).Table(ordersTable).Entities().Insert(t.Context(), harness.Bag("p", "lost", ""))
	if n := w.sum(t, "tablepatterns.request.unknown_outcomes"); n != 1 {
		t.Errorf("%d attempts with an unknown outcome, want that of the lost response", n)
	}
}

// TestRequestIDsAreChecked: the header with a request's ID is an attribute only if it has the form of one.
func TestRequestIDsAreChecked(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	const good = "0cbf2f5e-9002-0043-7c4b-4ab8f4000000"
	for id, shown := range map[string]bool{good: true, strings.ToUpper(good): true, secretKey: false, good + " " + secretKey: false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		w := newWatch()
		answering := *s
		answering.ClientOptions.PerRetryPolicies = append(slices.Clone(s.ClientOptions.PerRetryPolicies), perAttempt(func(req *policy.Request) (*http.Response, error) {
			resp, err := req.Next()
			if err == nil {
				resp.Header.Set("X-Ms-Request-Id", id)
			}
			return resp, err
		}))
		_ = w.account(t, &answering).Table(ordersTable).CreateIfMissing(t.Context())
		spans := w.named("POST Tables")
		if len(spans) != 1 || attributeOf(spans[0], telemetry.AttrRequest) == id != shown {
			t.Errorf("%q: %v", id, describeSpans(spans))
		}
	}
}

// TestNilProvidersAreRefused: a nil pointer in the interface of a provider is a wrong program, and no panic at the first request.
func TestNilProvidersAreRefused(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	for _, o := range []*tables.AccountOptions{{MeterProvider: (*metric.MeterProvider)(nil)}, {TracerProvider: (*trace.TracerProvider)(nil)}} {
		harness.WantKind(t, assert.Err(tables.NewAccountFromConnectionString(s.ConnectionString, o)), tables.ErrWiring)
	}
}

// TestNamesOfBlobsAreHidden: an error about a blob writes its name in quotes, as keys, so that lines of the log do not show it. Names of
// tables, queues and containers stay.
func TestNamesOfBlobsAreHidden(t *testing.T) {
	off := assert.Must[*telemetry.Telemetry](t)(telemetry.New(telemetry.Options{}))
	for name, shown := range map[string]bool{"Orders": true, "shop-intents": true, "orders/" + secretKey + ".json": false, secretKey + "@contoso.com": false, "-" + secretKey: false} {
		text := off.Text((&tables.Error{Op: "Move", Table: name, Kind: tables.ErrConflict}).Error())
		assert.Equal(t, strings.Contains(text, name), shown, "%q: %s", name, text)
	}
}

// TestPostponedDeliveriesAreNoErrors: the span of a delivery that leaves an intent to a newer build has no error.
func TestPostponedDeliveriesAreNoErrors(t *testing.T) {
	ctx, s, w := t.Context(), storagetest.Simulator(t, nil), newWatch()
	newer := assert.Must[*patterns.Store](t)(patterns.Open("shop", &patterns.StoreOptions{Account: w.account(t, s)}))
	calls := eventual.OnCommit("calls", func(context.Context, eventual.Commit[labelled]) error { return nil }, nil)
	repo := assert.Must[*patterns.Repository[labelled]](t)(patterns.NewRepository(newer.Table("Labels"), labelSchema(), patterns.Async(calls)))
	assert.Check(t, newer.Create(ctx), repo.Insert(ctx, &labelled{ID: 1}), harness.Settle(ctx, newer))
	older := assert.Must[*patterns.Store](t)(patterns.Open("shop", &patterns.StoreOptions{Account: w.account(t, s)}))
	worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(eventual.Intents(older), nil, nil))
	assert.Must[int](t)(worker.Drain(ctx))
	var spans []trace.ReadOnlySpan
	for _, span := range w.spans.Ended() {
		if strings.HasPrefix(span.Name(), telemetry.ProcessVerb+" ") {
			spans = append(spans, span)
		}
	}
	if len(spans) != 1 || attributeOf(spans[0], telemetry.AttrOutcome) != "released" || spans[0].Status().Code != codes.Unset || attributeOf(spans[0], telemetry.AttrError) != "" {
		t.Errorf("%d spans: %v", len(spans), describeSpans(spans))
	}
}

// TestMissingWithALoggerAlone: a queue or container that does not exist is logged by an account without tracer and meters.
func TestMissingWithALoggerAlone(t *testing.T) {
	var lines bytes.Buffer
	s := storagetest.Simulator(t, nil)
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions, Logger: slog.New(slog.NewTextHandler(&lines, nil))}))
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(account, "orders", nil))
	if _, err := queue.Send(t.Context(), "Order", map[string]int{"ID": 1}, nil); !errors.Is(err, tables.ErrMissingResource) {
		t.Errorf("a queue that does not exist: %v", err)
	}
	if _, err := blobstorage.Container(account, "photos").NewBlobClient("a").GetProperties(t.Context(), nil); err == nil {
		t.Error("a container that does not exist has a blob")
	}
	for _, resource := range []string{"orders", "photos"} {
		if n := strings.Count(lines.String(), "resource="+resource); n != 1 {
			t.Errorf("%d lines name %s: %s", n, resource, lines.String())
		}
	}
}
