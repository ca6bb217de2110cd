package telemetry

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

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
