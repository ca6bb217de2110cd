package telemetry

import (
	"log/slog"
	"slices"
)

// SemanticConventions is the version of OpenTelemetry's semantic conventions whose names the signals have.
const SemanticConventions = "1.43.0"

// Scope is the instrumentation scope of all spans and metrics.
const Scope = "github.com/tablepatterns/tablepatterns"

// Span is a declared kind of span.
type Span struct {
	Name        string // as docs/reference/observability.md shows it; {table} and the like stand for a name
	Kind        string
	Description string
}

// Kind is the kind of a metric's instrument.
type Kind string

// The kinds of instruments.
const (
	Counter       Kind = "counter"
	UpDownCounter Kind = "updowncounter"
	Histogram     Kind = "histogram"
	Gauge         Kind = "gauge"
)

// MetricInfo is a declared metric.
type MetricInfo struct {
	Name        string
	Kind        Kind
	Unit        string
	Description string
	Attributes  []string
}

// LineInfo is a declared line of the log. Event is the value of its attribute "event".
type LineInfo struct {
	Event       string
	Level       slog.Level
	Text        string
	Description string
}

// The names of attributes. Names without the prefix tablepatterns are those of the semantic conventions.
const (
	AttrSystem      = "db.system.name"
	AttrTable       = "db.collection.name"
	AttrVerb        = "db.operation.name"
	AttrCode        = "db.response.status_code"
	AttrMessaging   = "messaging.system"
	AttrQueue       = "messaging.destination.name"
	AttrQueueVerb   = "messaging.operation.name"
	AttrQueueType   = "messaging.operation.type"
	AttrMessage     = "messaging.message.id"
	AttrError       = "error.type"
	AttrMethod      = "http.request.method"
	AttrStatus      = "http.response.status_code"
	AttrResend      = "http.request.resend_count"
	AttrServer      = "server.address"
	AttrPort        = "server.port"
	AttrRequest     = "azure.service.request.id"
	AttrService     = "tablepatterns.service"
	AttrResource    = "tablepatterns.resource"
	AttrOutcome     = "tablepatterns.outcome"
	AttrPattern     = "tablepatterns.pattern"
	AttrRepository  = "tablepatterns.repository"
	AttrMessageType = "tablepatterns.message.type"
	AttrDequeues    = "tablepatterns.message.dequeues"
	AttrContainer   = "tablepatterns.container"
	AttrBlobVerb    = "tablepatterns.blob.operation"
)

// Spans returns all spans.
func Spans() []Span {
	return []Span{
		{"{verb} {table}", "client", "An operation of the library on a table, such as Insert, Get, All, Commit or Rebuild, with the work of patterns. If a table operation calls another table operation of the account, only the outer operation has a span."},
		{"{verb} {container}", "client", "Upload or Download of a value in a blob. The span of a Download ends when the reader is closed or has returned all data."},
		{"send {queue}", "producer", "Queue.Send."},
		{"receive {queue}", "client", "A worker's poll of a storage queue."},
		{"process {queue}", "consumer", "A worker's handling of one delivery: the root of a trace, linked to the sender's span if the message names that span."},
		{"{method} {resource}", "client", "An attempt of a request to a table, a queue or a container. The resource is $batch for a transaction, whose table is in db.collection.name."},
	}
}

// Metric is one of the metrics.
type Metric uint8

// The metrics.
const (
	OperationDuration Metric = iota
	QueueDuration
	ProcessDuration
	BlobDuration
	RequestDuration
	RequestRetries
	RequestThrottled
	RequestUnknown
	Conflicts
	RowsRead
	RowsReturned
	EffectsFailed
	MissingResources
	InFlight
	MarksLeft
	LeasesLost
	PollFailures
	BlobsLeft
	DeliveryLag
	QueueMessages
	QueueOldest
	QueuePoisoned
	QueuePostponed
)

// metrics declares the metrics.
var metrics = [...]MetricInfo{
	OperationDuration: {"db.client.operation.duration", Histogram, "s", "Duration of operations on tables, without the time that the body of the caller's loop takes", []string{AttrSystem, AttrTable, AttrVerb, AttrOutcome, AttrError}},
	QueueDuration:     {"messaging.client.operation.duration", Histogram, "s", "Duration of sends to queues and of polls", []string{AttrMessaging, AttrQueue, AttrQueueVerb, AttrQueueType, AttrOutcome, AttrError}},
	ProcessDuration:   {"messaging.process.duration", Histogram, "s", "Time from the get of a message to the end of its delivery. The outcome is handled, failed, poisoned, released, left, lost or undeleted", []string{AttrMessaging, AttrQueue, AttrQueueVerb, AttrMessageType, AttrOutcome}},
	BlobDuration:      {"tablepatterns.blob.operation.duration", Histogram, "s", "Duration of uploads and downloads of values in blobs", []string{AttrContainer, AttrBlobVerb, AttrOutcome, AttrError}},
	RequestDuration:   {"tablepatterns.request.duration", Histogram, "s", "Duration of attempts of requests. Only an attempt with a response has a status", []string{AttrService, AttrMethod, AttrStatus, AttrError}},
	RequestRetries:    {"tablepatterns.request.retries", Counter, "{attempt}", "Attempts after the first attempt of a request", []string{AttrService}},
	RequestThrottled:  {"tablepatterns.request.throttled", Counter, "{attempt}", "Attempts whose response had status 429 or 503", []string{AttrService}},
	RequestUnknown:    {"tablepatterns.request.unknown_outcomes", Counter, "{attempt}", "Attempts of writes that ended without a clear response, cancelled attempts included. The service may have applied these writes", []string{AttrService}},
	Conflicts:         {"tablepatterns.conflicts", Counter, "{write}", "Writes refused because the row exists or has changed, including plain inserts of an existing key", []string{AttrTable, AttrOutcome}},
	RowsRead:          {"tablepatterns.rows.read", Counter, "{row}", "Rows that responses contained", []string{AttrTable}},
	RowsReturned:      {"tablepatterns.rows.returned", Counter, "{row}", "Rows that became values for the caller", []string{AttrTable}},
	EffectsFailed:     {"tablepatterns.effects.failed", Counter, "{effect}", "Committed changes whose effect outside of the entity's partition failed in the writer, so that a worker applies the effect", []string{AttrRepository, AttrPattern, AttrTable, AttrOutcome}},
	MissingResources:  {"tablepatterns.resources.missing", Counter, "{operation}", "Requests to a table, queue or container that unexpectedly does not exist", []string{AttrService, AttrResource}},
	InFlight:          {"tablepatterns.worker.in_flight", UpDownCounter, "{message}", "Deliveries under way", []string{AttrQueue}},
	MarksLeft:         {"tablepatterns.marks_left", Counter, "{row}", "Copies in other partitions that may stay marked, since the request that settles them failed. A read through such a copy costs 1 request more", []string{AttrTable}},
	LeasesLost:        {"tablepatterns.worker.leases_lost", Counter, "{message}", "Deliveries whose lease was lost, so that another process may have the message", []string{AttrQueue}},
	PollFailures:      {"tablepatterns.worker.poll_failures", Counter, "{poll}", "Polls that failed after all attempts", []string{AttrQueue, AttrOutcome}},
	BlobsLeft:         {"tablepatterns.blobs_left", Counter, "{blob}", "Blobs that a change or a sweep could not examine or delete, although perhaps no row or message names them", []string{AttrContainer, AttrOutcome}},
	DeliveryLag:       {"tablepatterns.delivery.lag", Histogram, "s", "Time from the send of a message to the end of the message's successful handling. For intents, the lag is how stale copies in other entities were", []string{AttrQueue, AttrMessageType}},
	QueueMessages:     {"tablepatterns.queue.messages", Gauge, "{message}", "Messages on the queue, hidden messages included, as the service estimates", []string{AttrQueue}},
	QueueOldest:       {"tablepatterns.queue.oldest_age", Gauge, "s", "Age of the oldest message at the front of a storage queue, or 0 if no message is visible", []string{AttrQueue}},
	QueuePostponed:    {"tablepatterns.queue.postponed_age", Gauge, "s", "Age of the oldest message that this worker has postponed and not handled since, or 0 for none", []string{AttrQueue}},
	QueuePoisoned:     {"tablepatterns.queue.poisoned", Gauge, "{message}", "Messages on the poison queue, as the service estimates", []string{AttrQueue}},
}

// Metrics returns all metrics.
func Metrics() []MetricInfo { return slices.Clone(metrics[:]) }
