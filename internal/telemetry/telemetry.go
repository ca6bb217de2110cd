// Package telemetry defines and emits the spans, metrics and log lines of an account, with their names, units and attributes.
//
// A span, a metric or a line holds names of tables, queues, containers, repositories and patterns. It never holds a value, a secret or a
// key, except that a log line may hold keys if the account's options allow it.
//
// The packages above get one Telemetry from their account. With neither meters nor a tracer it adds no allocation to an operation.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

// Reason is what telemetry reports about an error.
type Reason struct {
	Outcome string // the kind, such as "conflict"; "error" if it has none
	Code    string // the service's error code
	Table   string // the table that the error names, if any
	Pattern string
}

// Options are the telemetry options of an account.
type Options struct {
	Meters  metric.MeterProvider // nil for none
	Tracers trace.TracerProvider // nil for none
	Logger  *slog.Logger         // nil for slog.Default()
	Keys    bool                 // lines may hold keys
	System  string               // db.system.name
	Explain func(error) Reason
}

// Telemetry emits the signals of one account. A nil Telemetry emits none.
type Telemetry struct {
	options Options
	tracer  trace.Tracer // nil for none
	meters  *instruments // nil for none

	mu       sync.Mutex
	limiters map[limited]*limiter // rate limits of log lines
	gauges   gauges
}

// instruments are the instruments of Metrics.
type instruments struct {
	histograms [len(metrics)]metric.Float64Histogram
	counters   [len(metrics)]metric.Int64Counter
	upDowns    [len(metrics)]metric.Int64UpDownCounter
	gauges     [len(metrics)]metric.Float64ObservableGauge // nil for metrics of other kinds
	meter      metric.Meter
}

// New returns the telemetry of an account.
func New(o Options) (*Telemetry, error) {
	t := &Telemetry{options: o, limiters: map[limited]*limiter{}}
	if o.Tracers != nil {
		t.tracer = o.Tracers.Tracer(Scope)
	}
	if o.Meters == nil {
		return t, nil
	}
	meter := o.Meters.Meter(Scope)
	t.meters = &instruments{meter: meter}
	for i, m := range metrics {
		var err error
		switch m.Kind {
		case Histogram:
			t.meters.histograms[i], err = meter.Float64Histogram(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description), metric.WithExplicitBucketBoundaries(boundaries(Metric(i))...))
		case Counter:
			t.meters.counters[i], err = meter.Int64Counter(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description))
		case UpDownCounter:
			t.meters.upDowns[i], err = meter.Int64UpDownCounter(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description))
		case Gauge:
			t.meters.gauges[i], err = meter.Float64ObservableGauge(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description))
		}
		if err != nil {
			return nil, fmt.Errorf("the MeterProvider failed to make the instrument %s: %w", m.Name, err)
		}
	}
	return t, nil
}

// boundaries are the bounds of a histogram's buckets, in seconds: the bounds of the conventions, and higher
// ones for operations that wait for workers.
func boundaries(m Metric) []float64 {
	if m == DeliveryLag {
		return []float64{0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 21600}
	}
	return []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}
}

// On reports whether operations and requests emit spans or metrics.
func (t *Telemetry) On() bool { return t != nil && (t.tracer != nil || t.meters != nil) }

// Measures reports whether metrics are recorded.
func (t *Telemetry) Measures() bool { return t != nil && t.meters != nil }

// Count adds n to a counter. attributes are pairs of names and values.
func (t *Telemetry) Count(ctx context.Context, m Metric, n int, attributes ...string) {
	if t.Measures() {
		t.meters.counters[m].Add(context.WithoutCancel(ctx), int64(n), withPairs(attributes))
	}
}

// Change adds n, which can be negative, to an up-down counter.
func (t *Telemetry) Change(ctx context.Context, m Metric, n int, attributes ...string) {
	if t.Measures() {
		t.meters.upDowns[m].Add(context.WithoutCancel(ctx), int64(n), withPairs(attributes))
	}
}

// Record records a value of a histogram.
func (t *Telemetry) Record(ctx context.Context, m Metric, value float64, attributes ...string) {
	if t.Measures() {
		t.meters.histograms[m].Record(context.WithoutCancel(ctx), value, withPairs(attributes))
	}
}

// withPairs returns the option for pairs of names and values, without the pairs whose value is "".
func withPairs(pairs []string) metric.MeasurementOption {
	return metric.WithAttributeSet(setOf(pairs))
}

func setOf(pairs []string) attribute.Set {
	set := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			set = append(set, attribute.String(pairs[i], pairs[i+1]))
		}
	}
	return attribute.NewSet(set...)
}

// explain returns the reason of an error that is not nil.
func (t *Telemetry) explain(err error) Reason {
	r := Reason{Outcome: "error"}
	if t.options.Explain != nil {
		r = t.options.Explain(err)
	}
	return r
}

// limiter bounds how often a line is written.
type limiter struct {
	*rate.Limiter
	suppressed int
}

// gauges holds the current values of the gauges, by owner. Each collection emits a value until its owner
// calls Forget. An owner must do so: otherwise the last length of a queue that no worker measures any more
// would look current forever.
type gauges struct {
	mu           sync.Mutex
	values       []gaugeValue // the newest is the last
	registration metric.Registration
}

// gaugeValue is a value that an owner has observed.
type gaugeValue struct {
	owner  any
	metric Metric
	set    attribute.Set
	value  float64
}

// Observe sets a value of a gauge, until the owner calls Forget. If several owners observe values with equal attributes, the latest one
// counts.
func (t *Telemetry) Observe(owner any, m Metric, value float64, attributes ...string) error {
	if !t.Measures() {
		return nil
	}
	set, g := setOf(attributes), &t.gauges
	g.mu.Lock()
	defer g.mu.Unlock()
	g.values = append(slices.DeleteFunc(g.values, func(v gaugeValue) bool {
		return v.owner == owner && v.metric == m && v.set.Equals(&set)
	}), gaugeValue{owner, m, set, value})
	if g.registration != nil {
		return nil
	}
	var all []metric.Observable
	for _, gauge := range t.meters.gauges {
		if gauge != nil {
			all = append(all, gauge)
		}
	}
	var err error
	g.registration, err = t.meters.meter.RegisterCallback(t.collect, all...)
	return err
}

// collect emits the values.
func (t *Telemetry) collect(_ context.Context, to metric.Observer) error {
	t.gauges.mu.Lock()
	defer t.gauges.mu.Unlock()
	for _, v := range t.gauges.values {
		to.ObserveFloat64(t.meters.gauges[v.metric], v.value, metric.WithAttributeSet(v.set))
	}
	return nil
}

// Forget removes the values of an owner.
func (t *Telemetry) Forget(owner any) error {
	if !t.Measures() {
		return nil
	}
	g := &t.gauges
	g.mu.Lock()
	g.values = slices.DeleteFunc(g.values, func(v gaugeValue) bool { return v.owner == owner })
	var over metric.Registration
	if len(g.values) == 0 {
		over, g.registration = g.registration, nil
	}
	g.mu.Unlock()
	if over == nil {
		return nil
	}
	return over.Unregister() // call it without the lock, since it waits for a running collection
}
