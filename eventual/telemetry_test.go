package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// meters notes what is counted.
type meters struct {
	noop.MeterProvider
	mu    sync.Mutex
	sums  map[string]int64
	spans []string
}

func (m *meters) Meter(string, ...metric.MeterOption) metric.Meter { return meter{provider: m} }

func (m *meters) add(name string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sums[name] += n
}

type meter struct {
	noop.Meter
	provider *meters
}

func (m meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counter{name: name, provider: m.provider}, nil
}

func (m meter) Int64UpDownCounter(name string, _ ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return upDownCounter{name: name, provider: m.provider}, nil
}

func (m meter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return histogram{name: name, provider: m.provider}, nil
}

type counter struct {
	noop.Int64Counter
	name     string
	provider *meters
}

func (c counter) Add(_ context.Context, n int64, o ...metric.AddOption) {
	set := metric.NewAddConfig(o).Attributes()
	for _, a := range set.ToSlice() {
		c.name += " " + string(a.Key) + "=" + a.Value.AsString()
	}
	c.provider.add(c.name, n)
}

type upDownCounter struct {
	noop.Int64UpDownCounter
	name     string
	provider *meters
}

func (c upDownCounter) Add(_ context.Context, n int64, _ ...metric.AddOption) {
	c.provider.add(c.name, n)
	c.provider.add(c.name+" changes", 1)
}

type histogram struct {
	noop.Float64Histogram
	name     string
	provider *meters
}

func (h histogram) Record(_ context.Context, seconds float64, _ ...metric.RecordOption) {
	if seconds < 0 || seconds > 60 {
		h.provider.add("wrong time", 1)
	}
	h.provider.add(h.name, 1)
}

// tracer notes spans with their attributes when they end.
func (m *meters) tracing() tracing.Provider {
	start := func(ctx context.Context, name string, o *tracing.SpanOptions) (context.Context, tracing.Span) {
		attributes := map[string]any{}
		set := func(all ...tracing.Attribute) {
			for _, a := range all {
				attributes[a.Key] = a.Value
			}
		}
		set(o.Attributes...)
		status := ""
		return ctx, tracing.NewSpan(tracing.SpanImpl{SetAttributes: set,
			SetStatus: func(s tracing.SpanStatus, text string) { status = fmt.Sprintf(" status=%d %s", s, text) },
			End: func() {
				text := name
				for _, key := range slices.Sorted(maps.Keys(attributes)) {
					text += fmt.Sprintf(" %s=%v", key, attributes[key])
				}
				m.mu.Lock()
				defer m.mu.Unlock()
				m.spans = append(m.spans, text+status)
			}})
	}
	return tracing.NewProvider(func(string, string) tracing.Tracer { return tracing.NewTracer(start, nil) }, nil)
}

// TestTelemetry: what metrics, spans and logs say, and that none of them holds a body or grows with foreign types.
func TestTelemetry(t *testing.T) {
	q := newQueue(t, storagetest.Open(t), nil)
	ctx := t.Context()
	for _, messageType := range []string{"fine", "fine", "fails", "foreign-1", "foreign-2"} {
		must[string](t)(q.Send(ctx, messageType, "top secret", nil))
	}
	_, err := storageQueue(q, "").EnqueueMessage(ctx, "top secret", nil)
	check(t, err)
	m := &meters{sums: map[string]int64{}}
	log := &logged{}
	w := newWorker(t, q, map[string]eventual.Handler{
		"fine": func(context.Context, *eventual.Message) error { return nil },
		"fails": func(context.Context, *eventual.Message) error {
			return errors.New("see https://x.test/?sv=1&sig=abcdef")
		},
	}, &eventual.WorkerOptions{MaxDequeues: 2, RetryDelay: atOnce, MeterProvider: m, TracingProvider: m.tracing(), Logger: log.logger()})
	must[int](t)(w.Drain(ctx))

	want := map[string]int64{
		"tablepatterns.eventual.messages outcome=handled type=fine":         2,
		"tablepatterns.eventual.messages outcome=failed type=fails":         1,
		"tablepatterns.eventual.messages outcome=poisoned type=fails":       1,
		"tablepatterns.eventual.messages outcome=failed type=unknown":       2,
		"tablepatterns.eventual.messages outcome=poisoned type=unknown":     2,
		"tablepatterns.eventual.messages outcome=failed type=undecodable":   1,
		"tablepatterns.eventual.messages outcome=poisoned type=undecodable": 1,
		"tablepatterns.eventual.duration":                                   10,
		"tablepatterns.eventual.in_flight":                                  0,
		"tablepatterns.eventual.in_flight changes":                          20,
	}
	if !maps.Equal(m.sums, want) {
		t.Errorf("metrics: %v", m.sums)
	}
	slices.Sort(m.spans)
	wantSpan := "eventual.handle dequeues=2 outcome=poisoned type=fails status=1 see https://x.test/?sv=1&sig=REDACTED"
	if !slices.Contains(m.spans, wantSpan) || !slices.Contains(m.spans, "eventual.handle dequeues=1 outcome=handled type=fine") || len(m.spans) != 10 {
		t.Errorf("spans: %q", m.spans)
	}
	said := log.String() + strings.Join(m.spans, "\n") + fmt.Sprint(m.sums)
	for _, e := range entries(t, q) {
		said += e.Reason + e.Stack
	}
	for _, secret := range []string{"top secret", "abcdef", "InRvcCBzZWNyZXQi"} {
		if strings.Contains(said, secret) {
			t.Errorf("%q is shown: %s", secret, said)
		}
	}
}
