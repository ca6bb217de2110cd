package storagetest

import (
	"net/http"
	"time"
)

// Chaos configures the behaviour of a [Simulator] that the service's rules allow but that is rare or
// inconvenient: pages cut short or empty, messages out of order or twice, throttling, failures. The zero
// Chaos changes nothing. A rate is a probability between 0 and 1, drawn for each request from
// [SimulatorOptions].Seed: the same requests in the same order get the same results.
type Chaos struct {
	// ShortPages is the rate of queries whose page ends after a random number of entities, with a continuation.
	ShortPages float64
	// EmptyPages is the rate of queries that return only a continuation, even if entities match.
	EmptyPages float64
	// PartitionPages is the rate of queries whose page ends at the end of a partition.
	PartitionPages float64
	// NoNextRowKey is the rate of continuations without a row key, if the continuation leads to the first row
	// of a partition.
	NoNextRowKey float64
	// Unordered makes queries return entities in an order that does not depend on their keys, as Cosmos DB does.
	Unordered bool

	// Busy is the rate of responses 503 ServerBusy, Internal the rate of 500 InternalError, and Limited the
	// rate of 429 TooManyRequests. Half of the failed transactions get the failure inside a response with
	// status 202, half of these without a code, as Azure does it.
	Busy, Internal, Limited float64
	// Applied is the share of the 503 and 500 responses that are sent after the request was carried out. Such
	// a 503 has no code, as from a gateway, since the service itself sends ServerBusy only before it does
	// anything.
	Applied float64

	// Latency is how far each request moves the virtual clock. A random duration of at most Jitter is added to it.
	Latency, Jitter time.Duration
	// Before is called with each request before it is processed, so that a test can make other requests
	// first. Before is also called for the requests that it makes itself.
	Before func(*http.Request)

	// PartitionLimit answers 503 ServerBusy to requests that exceed 2,000 entities a second in one partition, by the
	// virtual clock; for a transaction, the 503 is inside a response with status 202, half of the time without a
	// code. Without Latency that clock hardly moves: the partition recovers only by [Clock.Advance].
	PartitionLimit bool

	// QueueOutOfOrder is the rate of queue messages that are delivered out of order, and QueueTwice the rate
	// of messages that are delivered to two receivers.
	QueueOutOfOrder, QueueTwice float64
}
