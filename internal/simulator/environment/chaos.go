package environment

import (
	"net/http"
	"time"
)

// Chaos is what may go wrong although the service keeps its rules. The zero Chaos is a calm day. Rates are between 0
// and 1 and are drawn, request by request, from the simulator's one seed: the same requests in the same order meet the
// same chaos. Requests of several goroutines come in no fixed order, so neither do their draws.
type Chaos struct {
	// ShortPages is the rate of queries whose page ends after a random number of entities, with a continuation.
	ShortPages float64
	// EmptyPages is the rate of queries that return nothing but a continuation, though there may be entities to return.
	EmptyPages float64
	// PartitionPages is the rate of queries whose page ends where a partition does.
	PartitionPages float64
	// NoNextRowKey is the rate of continuations that name no row, where they lead to the first row of a partition.
	NoNextRowKey float64
	// Unordered returns the entities of a query in no order of their keys, as Cosmos DB does.
	Unordered bool

	// Busy is the rate of requests answered 503 ServerBusy, Internal that of 500 InternalError, Limited that of 429
	// TooManyRequests. Half of the transactions among them get the failure inside an answer with status 202, and half of
	// these without a code, as Azure does it.
	Busy, Internal, Limited float64
	// Applied is the share of the 503 and 500 that come after the request was carried out. Such a 503 has no code, as
	// from a gateway: the service says ServerBusy before it does anything.
	Applied float64

	// Latency is how far each request moves the virtual clock, and Jitter the most that is added to it at random.
	Latency, Jitter time.Duration
	// Before is called with each request before anything is done with it, for tests that come in between. It may
	// call the simulator.
	Before func(*http.Request)

	// PartitionLimit answers 503 ServerBusy to whatever exceeds PartitionRate entities a second in one partition, by
	// the virtual clock; to a transaction inside an answer with status 202, half of the time without a code. Without Latency that clock stands nearly still: the partition recovers by Clock.Advance.
	PartitionLimit bool

	// QueueOutOfOrder is the rate of queue messages handed out of turn, and QueueTwice that of messages handed to two
	// receivers.
	QueueOutOfOrder, QueueTwice float64
}

// PartitionRate is the number of entities a second that one partition is built for.
const PartitionRate = 2000

// Delay moves the clock as far as one request takes.
func (c *Chaos) Delay(d *Dice, clock *Clock) {
	latency := c.Latency
	if c.Jitter > 0 {
		latency += time.Duration(d.Below(int(c.Jitter)))
	}
	if latency > 0 {
		clock.Advance(latency)
	}
}
