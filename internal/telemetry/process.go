package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Process is the handling of one delivery.
type Process struct {
	telemetry *Telemetry
	queue     string
	ctx       context.Context
	span      trace.Span // nil for none
	began     time.Time
}

// Process begins the handling of a delivery. traceparent is the trace context that the sender put into the message, "" if there is none.
func (t *Telemetry) Process(ctx context.Context, queue string, dequeues int, traceparent string) (context.Context, *Process) {
	if !t.On() {
		return ctx, nil
	}
	p := &Process{telemetry: t, queue: queue, began: time.Now()}
	ctx = Outside(ctx)
	if t.tracer != nil {
		start := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithNewRoot(), trace.WithAttributes(
			attribute.String(AttrMessaging, MessagingSystem), attribute.String(AttrQueue, queue), attribute.String(AttrQueueVerb, ProcessVerb),
			attribute.String(AttrQueueType, ProcessVerb), attribute.Int(AttrDequeues, dequeues))}
		if sender, ok := ParseTraceparent(traceparent); ok {
			start = append(start, trace.WithLinks(trace.Link{SpanContext: sender}))
		}
		ctx, p.span = t.tracer.Start(ctx, ProcessVerb+" "+queue, start...)
	}
	p.ctx = ctx
	t.Change(ctx, InFlight, 1, AttrQueue, queue)
	return ctx, p
}

// End ends the handling. messageType must be one of a fixed set of values, since senders must not be able to
// add values of attributes. sent is zero if unknown.
func (p *Process) End(messageType, outcome string, handled bool, sent time.Time, err error) {
	if p == nil {
		return
	}
	t := p.telemetry
	t.Change(p.ctx, InFlight, -1, AttrQueue, p.queue)
	t.Record(p.ctx, ProcessDuration, time.Since(p.began).Seconds(),
		AttrMessaging, MessagingSystem, AttrQueue, p.queue, AttrQueueVerb, ProcessVerb, AttrMessageType, messageType, AttrOutcome, outcome)
	if handled && !sent.IsZero() {
		t.Record(p.ctx, DeliveryLag, max(0, time.Since(sent)).Seconds(), AttrQueue, p.queue, AttrMessageType, messageType)
	}
	if p.span == nil {
		return
	}
	p.span.SetAttributes(attribute.String(AttrMessageType, messageType), attribute.String(AttrOutcome, outcome))
	if err != nil {
		reason := t.explain(err)
		p.span.SetAttributes(attribute.String(AttrError, reason.Outcome))
		p.span.SetStatus(codes.Error, describe(reason))
	}
	p.span.End()
}

// Traceparent returns the W3C trace context of the span in ctx, with no other flag than "sampled", or "" if
// there is no span or no tracer is configured.
func (t *Telemetry) Traceparent(ctx context.Context) string {
	if t == nil || t.tracer == nil {
		return ""
	}
	s := trace.SpanContextFromContext(ctx)
	if !s.IsValid() {
		return ""
	}
	return "00-" + s.TraceID().String() + "-" + s.SpanID().String() + "-" + (s.TraceFlags() & trace.FlagsSampled).String()
}

// ParseTraceparent parses a W3C trace context, which is untrusted: anybody who can put messages on the queue
// can choose it. ok is false for any text that Traceparent does not write.
func ParseTraceparent(text string) (_ trace.SpanContext, ok bool) {
	const form = "00-00000000000000000000000000000000-0000000000000000-00"
	if len(text) != len(form) || text[:3] != "00-" || text[35] != '-' || text[52] != '-' {
		return trace.SpanContext{}, false
	}
	var c trace.SpanContextConfig
	var err error
	if c.TraceID, err = trace.TraceIDFromHex(text[3:35]); err != nil {
		return trace.SpanContext{}, false
	}
	if c.SpanID, err = trace.SpanIDFromHex(text[36:52]); err != nil {
		return trace.SpanContext{}, false
	}
	switch text[53:] {
	case "00":
	case "01":
		c.TraceFlags = trace.FlagsSampled
	default:
		return trace.SpanContext{}, false
	}
	c.Remote = true
	return trace.NewSpanContext(c), true
}
