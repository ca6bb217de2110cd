package telemetry

import (
	"context"
	"errors"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// System is the service that an operation uses.
type System uint8

// The systems.
const (
	Tables System = iota + 1
	Queues
	Blobs
)

// MessagingSystem is the value of the attribute messaging.system. The conventions have no name for the queues of a storage account.
const MessagingSystem = "azure_storage_queues"

// Operation is an operation that is under way; a nil Operation emits nothing.
type Operation struct {
	telemetry *Telemetry
	system    System
	verb      string
	target    string
	ctx       context.Context
	span      trace.Span // nil for none
	began     time.Time
	paused    time.Time     // when it began to wait for the caller; zero if it does not wait
	waited    time.Duration // total time that it has waited for the caller
	ended     bool
}

type operationKey struct{}

// Begin begins an operation, such as Insert on a table. The Operation is nil if neither meters nor a tracer are
// configured, or if ctx belongs to another operation of the same system: then the new one counts as part of that
// operation.
func (t *Telemetry) Begin(ctx context.Context, system System, verb, target string) (context.Context, *Operation) {
	if !t.On() {
		return ctx, nil
	}
	if outer, _ := ctx.Value(operationKey{}).(*Operation); outer != nil && outer.telemetry == t && outer.system == system {
		return ctx, nil
	}
	o := &Operation{telemetry: t, system: system, verb: verb, target: target, began: time.Now()}
	if t.tracer != nil {
		kind := trace.SpanKindClient
		if system == Queues && verb == SendVerb {
			kind = trace.SpanKindProducer
		}
		ctx, o.span = t.tracer.Start(ctx, verb+" "+target, trace.WithSpanKind(kind), trace.WithAttributes(o.attributes()...))
	}
	o.ctx = context.WithValue(ctx, operationKey{}, o)
	return o.ctx, o
}

// The names of operations on queues.
const (
	SendVerb    = "send"
	ReceiveVerb = "receive"
	ProcessVerb = "process"
)

// Outside returns a context for code of the program, such as a handler: operations in it have their own spans and
// metrics, and missing tables are reported.
func Outside(ctx context.Context) context.Context {
	if outer, _ := ctx.Value(operationKey{}).(*Operation); outer != nil {
		ctx = context.WithValue(ctx, operationKey{}, (*Operation)(nil))
	}
	if expectsMissing(ctx) {
		ctx = context.WithValue(ctx, expectMissing{}, false)
	}
	return ctx
}

// names returns the attributes that name the operation, as pairs of name and value, and its metric.
func (o *Operation) names() ([]string, Metric) {
	switch o.system {
	case Queues:
		return []string{AttrMessaging, MessagingSystem, AttrQueue, o.target, AttrQueueVerb, o.verb, AttrQueueType, o.verb}, QueueDuration
	case Blobs:
		return []string{AttrContainer, o.target, AttrBlobVerb, o.verb}, BlobDuration
	}
	return []string{AttrSystem, o.telemetry.options.System, AttrTable, o.target, AttrVerb, o.verb}, OperationDuration
}

func (o *Operation) attributes() []attribute.KeyValue {
	names, _ := o.names()
	set := make([]attribute.KeyValue, 0, len(names)/2)
	for i := 0; i < len(names); i += 2 {
		set = append(set, attribute.String(names[i], names[i+1]))
	}
	return set
}

// Pause records that the operation waits for its caller from now on, as in the body of a loop.
func (o *Operation) Pause() {
	if o != nil {
		o.paused = time.Now()
	}
}

// Resume ends a Pause.
func (o *Operation) Resume() {
	if o != nil && !o.paused.IsZero() {
		o.waited += time.Since(o.paused)
		o.paused = time.Time{}
	}
}

// Loop yields the elements of a sequence that the operation reads, and then ends the operation. The time that the loop's body takes does
// not count.
func Loop[V any](o *Operation, sequence iter.Seq2[V, error], yield func(V, error) bool) {
	if o == nil {
		sequence(yield)
		return
	}
	var failed error
	finished := false // stays false if the body of the loop panics
	defer func() {
		if !finished {
			failed = ErrPanicked
		}
		o.End(failed)
	}()
	for v, err := range sequence {
		if err != nil {
			failed = err
		}
		o.Pause()
		if !yield(v, err) {
			finished = true
			return
		}
		o.Resume()
	}
	finished = true
}

// OK is the outcome of an operation without an error.
const OK = "ok"

// NotFound is the outcome of a read that found nothing, which is not a failure.
const NotFound = "not_found"

// ErrPanicked is the error of an operation whose callback into the program has panicked.
var ErrPanicked = errors.New("a callback of the program has panicked")

// End ends an operation with its error. Only the first call counts.
func (o *Operation) End(err error) {
	if o == nil || o.ended {
		return
	}
	o.Resume()
	o.ended = true
	names, metric := o.names()
	reason := Reason{Outcome: OK}
	failure := ""
	if err != nil {
		reason = o.telemetry.explain(err)
		if reason.Outcome != NotFound {
			failure = reason.Outcome
		}
	}
	o.telemetry.Record(o.ctx, metric, (time.Since(o.began) - o.waited).Seconds(), append(names, AttrOutcome, reason.Outcome, AttrError, failure)...)
	if o.span == nil {
		return
	}
	o.span.SetAttributes(attribute.String(AttrOutcome, reason.Outcome))
	if reason.Code != "" {
		o.span.SetAttributes(attribute.String(AttrCode, reason.Code))
	}
	if reason.Pattern != "" {
		o.span.SetAttributes(attribute.String(AttrPattern, reason.Pattern))
	}
	if failure != "" {
		o.span.SetAttributes(attribute.String(AttrError, failure))
		o.span.SetStatus(codes.Error, describe(reason))
	}
	o.span.End()
}

// describe returns the description of a span's status. It contains no key and no value.
func describe(r Reason) string {
	text := r.Outcome
	if r.Code != "" {
		text += " (" + r.Code + ")"
	}
	if r.Table != "" {
		text += " in " + r.Table
	}
	return text
}

// Rows counts the rows of a response, and how many of them were returned as values.
func (t *Telemetry) Rows(ctx context.Context, table string, read, returned int) {
	if t.Measures() {
		t.Count(ctx, RowsRead, read, AttrTable, table)
		t.Count(ctx, RowsReturned, returned, AttrTable, table)
	}
}

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
