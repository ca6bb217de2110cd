package eventual

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

const telemetryName = "github.com/tablepatterns/tablepatterns/eventual"

// telemetry is where a worker's metrics and spans go.
type telemetry struct {
	tracer   tracing.Tracer
	messages metric.Int64Counter
	duration metric.Float64Histogram
	inFlight metric.Int64UpDownCounter
	refused  metric.Int64Counter
}

func newTelemetry(meters metric.MeterProvider, traces tracing.Provider) (*telemetry, error) {
	if meters == nil {
		meters = noop.NewMeterProvider()
	}
	meter := meters.Meter(telemetryName)
	t := &telemetry{tracer: traces.NewTracer(telemetryName, "")}
	var err error
	if t.messages, err = meter.Int64Counter("tablepatterns.eventual.messages", metric.WithUnit("{message}"),
		metric.WithDescription("Deliveries of messages, by type and outcome")); err != nil {
		return nil, err
	}
	if t.duration, err = meter.Float64Histogram("tablepatterns.eventual.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the get of a message to the end of its delivery")); err != nil {
		return nil, err
	}
	if t.inFlight, err = meter.Int64UpDownCounter("tablepatterns.eventual.in_flight", metric.WithUnit("{message}"),
		metric.WithDescription("Deliveries under way")); err != nil {
		return nil, err
	}
	if t.refused, err = meter.Int64Counter("tablepatterns.eventual.refused_together", metric.WithUnit("{transaction}"),
		metric.WithDescription("Transactions with copies of several entities that the service refused and that were divided, by table")); err != nil {
		return nil, err
	}
	return t, nil
}

// begin opens the span of a delivery. end closes it, and counts the delivery.
func (t *telemetry) begin(ctx context.Context, dequeues int) (spanned context.Context, end func(messageType, outcome string, err error)) {
	spanned, span := t.tracer.Start(ctx, "eventual.handle", &tracing.SpanOptions{Kind: tracing.SpanKindConsumer,
		Attributes: []tracing.Attribute{{Key: "dequeues", Value: dequeues}}})
	spanned = division.Observe(spanned, func(ctx context.Context, table string) {
		t.refused.Add(context.WithoutCancel(ctx), 1, metric.WithAttributes(attribute.String("table", table)))
	})
	began := time.Now()
	t.inFlight.Add(ctx, 1)
	return spanned, func(messageType, outcome string, err error) {
		counted := context.WithoutCancel(ctx)
		t.inFlight.Add(counted, -1)
		labels := metric.WithAttributes(attribute.String("type", messageType), attribute.String("outcome", outcome))
		t.messages.Add(counted, 1, labels)
		t.duration.Record(counted, time.Since(began).Seconds(), labels)
		span.SetAttributes(tracing.Attribute{Key: "type", Value: messageType}, tracing.Attribute{Key: "outcome", Value: outcome})
		if err != nil {
			span.SetStatus(tracing.SpanStatusError, wire.HideKeysInText(wire.RedactText(err.Error())))
		}
		span.End()
	}
}
