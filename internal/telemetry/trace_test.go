package telemetry_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// attributeOf returns the value of a span's attribute, as text.
func attributeOf(s trace.ReadOnlySpan, name string) string {
	for _, a := range s.Attributes() {
		if a.Key == attribute.Key(name) {
			return a.Value.String()
		}
	}
	return ""
}

// TestOneOrderIsOneTrace: a transaction of an order with lines, a unique index outside, a value in a blob and an intent is one trace, with every
// request to tables, queues and blobs under it. What the worker handles is linked to it.
func TestOneOrderIsOneTrace(t *testing.T) {
	for _, async := range []bool{false, true} {
		t.Run(fmt.Sprintf("async=%v", async), func(t *testing.T) {
			ctx, s, w := t.Context(), storagetest.Open(t), newWatch()
			prefix := fmt.Sprintf("Trace%d", time.Now().UnixNano())
			counter := &storagetest.RequestCounter{}
			counted := *s
			counted.ClientOptions.PerRetryPolicies = append(slices.Clone(s.ClientOptions.PerRetryPolicies), counter)
			x := newShopNamed(t, w.account(t, &counted), prefix, async)
			assert.Check(t, x.store.Create(ctx))
			w.spans.Reset()
			counter.Reset()
			assert.Check(t, x.place(ctx, 1, "june"))
			assert.Check(t, harness.Settle(ctx, x.store)) // which waits for what is closed in the background

			roots := slices.DeleteFunc(slices.Clone(w.spans.Ended()), func(s trace.ReadOnlySpan) bool { return s.Parent().IsValid() })
			if len(roots) != 1 || roots[0].Name() != "Commit "+prefix+"Orders" || attributeOf(roots[0], "tablepatterns.outcome") != "ok" {
				t.Fatalf("%d roots: %v", len(roots), roots)
			}
			services := map[string]int{}
			attempts, transactions := 0, map[string]int{}
			for _, span := range w.spans.Ended() {
				if span.SpanContext().TraceID() != roots[0].SpanContext().TraceID() {
					t.Errorf("%s is in another trace", span.Name())
				}
				if service := attributeOf(span, "tablepatterns.service"); service != "" {
					attempts++
					services[service]++
				}
				if attributeOf(span, "tablepatterns.resource") == "$batch" {
					transactions[attributeOf(span, telemetry.AttrTable)]++
				}
				t.Log(span.Name(), attributeOf(span, "http.response.status_code"))
			}
			if attempts != counter.Count() || services["tables"] == 0 || services["queues"] == 0 || services["blobs"] == 0 {
				t.Errorf("%d attempts of %d requests: %v", attempts, counter.Count(), services)
			}
			want := map[string]int{prefix + ordersTable: 1} // the copy in the index is one row, marked and settled
			if !maps.Equal(transactions, want) {
				t.Errorf("transactions by the table of their span: %v, want %v", transactions, want)
			}
			if !async {
				return
			}
			worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(eventual.Intents(x.store), nil, nil))
			assert.Equal(assert.Fatal(t), assert.Must[int](t)(worker.Drain(ctx)), 1, "handled")
			handled := w.named("process " + strings.ToLower(prefix) + "-" + intentsQueue)
			if len(handled) != 1 || len(handled[0].Links()) != 1 || handled[0].Parent().IsValid() {
				t.Fatalf("%v", handled)
			}
			if link := handled[0].Links()[0].SpanContext; link.TraceID() != roots[0].SpanContext().TraceID() || link.SpanID() != roots[0].SpanContext().SpanID() {
				t.Errorf("linked to %v", link)
			}
			inside := 0
			for _, span := range w.spans.Ended() {
				if span.SpanContext().TraceID() == handled[0].SpanContext().TraceID() && attributeOf(span, "tablepatterns.service") != "" {
					inside++
				}
			}
			if inside < 3 { // reads the order, reads it again, deletes the message
				t.Errorf("%d requests under the handling", inside)
			}
		})
	}
}

// TestHostileTraceparent: a message with any other text than the exact form is handled without a link.
func TestHostileTraceparent(t *testing.T) {
	ctx, s, w := t.Context(), storagetest.Simulator(t, nil), newWatch()
	q := assert.Must[*eventual.Queue](t)(eventual.NewQueue(w.account(t, s), "work", nil))
	assert.Check(t, q.Create(ctx))
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	foreign := []string{"x", strings.Repeat("0", 55), "00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		strings.ToUpper(good), "01" + good[2:], good + "-x", good[:53] + "ff", strings.Repeat("a", 20_000), good[:3] + "\\u0000" + good[4:]}
	for _, text := range append(foreign, good) {
		_, err := eventual.QueueService(q.Account()).NewQueueClient("work").EnqueueMessage(ctx, `{"v":1,"type":"work","traceparent":"`+text+`"}`, nil)
		assert.Check(t, err)
	}
	_, err := eventual.QueueService(q.Account()).NewQueueClient("work").EnqueueMessage(ctx, `{"v":1,"type":"work","traceparent":{"a":1}}`, nil)
	assert.Check(t, err)
	worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(q, map[string]eventual.Handler{"work": func(context.Context, *eventual.Message) error { return nil }}, &eventual.WorkerOptions{MaxDequeues: 1}))
	n := assert.Must[int](t)(worker.Drain(ctx))
	linked := 0
	for _, span := range w.named("process work") {
		linked += len(span.Links())
	}
	if n != len(foreign)+1 || linked != 1 {
		t.Errorf("%d handled, %d linked", n, linked)
	}
}
