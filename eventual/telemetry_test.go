package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// counts returns the sum of each series of a metric, or the number of values of a histogram.
func counts(t *testing.T, reader *metric.ManualReader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	assert.Check(t, reader.Collect(t.Context(), &all))
	sums := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					sums[m.Name+" "+p.Attributes.Encoded(nil)] += p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					kind, _ := p.Attributes.Value("tablepatterns.message.type")
					outcome, _ := p.Attributes.Value("tablepatterns.outcome")
					sums[m.Name+" "+kind.AsString()+" "+outcome.AsString()] += int64(p.Count)
				}
			}
		}
	}
	return sums
}

// TestTelemetry: what metrics, spans and logs say, and that none of them holds a body or grows with foreign types.
func TestTelemetry(t *testing.T) {
	s, log := storagetest.Open(t), &logged{}
	reader, spans := metric.NewManualReader(), tracetest.NewSpanRecorder()
	q := assert.Must[*eventual.Queue](t)(openQueueWith(s, newQueue(t, s, nil).Name(), tables.AccountOptions{Logger: log.logger(),
		MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)), TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(spans))}, nil))
	ctx := t.Context()
	for _, messageType := range []string{"fine", "fine", "fails", "foreign-1", "foreign-2"} {
		assert.Must[string](t)(q.Send(ctx, messageType, "top secret", nil))
	}
	assert.Check(t, assert.Err(storageQueue(q, "").EnqueueMessage(ctx, "top secret", nil)))
	w := newWorker(t, q, map[string]eventual.Handler{
		"fine": func(context.Context, *eventual.Message) error { return nil },
		"fails": func(context.Context, *eventual.Message) error {
			return errors.New("see https://x.test/?sv=1&sig=abcdef")
		},
	}, &eventual.WorkerOptions{MaxDequeues: 2, RetryDelay: atOnce})
	assert.Must[int](t)(w.Drain(ctx))

	got := counts(t, reader)
	for name, want := range map[string]int64{
		"messaging.process.duration fine handled":         2,
		"messaging.process.duration fails failed":         1,
		"messaging.process.duration fails poisoned":       1,
		"messaging.process.duration unknown failed":       2,
		"messaging.process.duration unknown poisoned":     2,
		"messaging.process.duration undecodable failed":   1,
		"messaging.process.duration undecodable poisoned": 1,
		"tablepatterns.delivery.lag fine ":                2,
		"tablepatterns.delivery.lag fails ":               0,
	} {
		assert.Equal(t, got[name], want, name)
	}
	var said []string
	handled := 0
	for _, span := range spans.Ended() {
		said = append(said, fmt.Sprint(span.Name(), span.Attributes(), span.Status()))
		if strings.HasPrefix(span.Name(), "process ") {
			handled++
			if links := len(span.Links()); links == 0 && !strings.Contains(said[len(said)-1], "undecodable") {
				t.Errorf("%s is not linked to its sender", span.Name())
			}
		}
	}
	assert.Equal(t, handled, 10, "spans of deliveries")
	said = append(said, log.String(), fmt.Sprint(got))
	for _, e := range entries(t, q) {
		said = append(said, e.Reason+e.Stack)
	}
	for _, secret := range []string{"top secret", "abcdef", "InRvcCBzZWNyZXQi"} {
		if i := slices.IndexFunc(said, func(text string) bool { return strings.Contains(text, secret) }); i >= 0 {
			t.Errorf("%q is shown: %s", secret, said[i])
		}
	}
}

// TestOneWorkerMeasures: of workers that share the shards of a queue, the one with shard 0 reads all of them for the gauges.
func TestOneWorkerMeasures(t *testing.T) {
	for shard, want := range []int{3, 0} { // of three shards, the first reading only
		storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
			name := newQueue(t, s, &eventual.QueueOptions{Shards: 3}).Name()
			var counter storagetest.RequestCounter
			counted, _ := s.Faulty(&counter)
			q := assert.Must[*eventual.Queue](t)(openQueueWith(counted, name, tables.AccountOptions{MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))},
				&eventual.QueueOptions{Shards: 3}))
			running, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			assert.Check(t, newWorker(t, q, map[string]eventual.Handler{}, &eventual.WorkerOptions{Shards: []int{shard}}).Run(running))
			assert.Equal(t, counter.CountOf(storagetest.PeekMessages), want, "times the worker of shard %d has peeked", shard)
		})
	}
}
