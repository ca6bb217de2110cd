package environment

import (
	"net/http"
	"time"
)

// Chaos configures failures and unusual behaviour that the services' rules permit. The zero Chaos changes
// nothing. Rates are between 0 and 1; for each request they are drawn from the simulator's one seed, so the
// same requests in the same order get the same failures. Requests of concurrent goroutines have no fixed
// order, so their failures differ from run to run.
type Chaos struct {
	// ShortPages is the rate of queries whose page ends after a random number of entities, with a continuation token.
	ShortPages float64
	// EmptyPages is the rate of queries that return only a continuation token, even if entities match.
	EmptyPages float64
	// PartitionPages is the rate of queries whose page ends at the end of a partition.
	PartitionPages float64
	// NoNextRowKey is the rate of continuation tokens without a row key, where they continue at the first row of a partition.
	NoNextRowKey float64
	// Unordered returns the entities of a query in an order unrelated to their keys, as Cosmos DB does.
	Unordered bool

	// Busy is the rate of responses 503 ServerBusy, Internal the rate of 500 InternalError, and Limited the
	// rate of 429 TooManyRequests. Half of the transactions among them get the failure inside a response with
	// status 202, and half of these without an error code, as on Azure.
	Busy, Internal, Limited float64
	// Applied is the share of the responses 503 and 500 that are sent after the request was carried out. Such
	// a 503 has no error code, as if a gateway had sent it, because the service itself sends ServerBusy only
	// before it does any work.
	Applied float64

	// Latency is how far each request advances the virtual clock; a random time of at most Jitter is added.
	Latency, Jitter time.Duration
	// Before is called with each request before it is served. It may send requests itself, as a concurrent client would.
	Before func(*http.Request)

	// PartitionLimit makes requests fail with 503 ServerBusy if they exceed PartitionRate entities a second in one partition,
	// by the virtual clock. A transaction gets the failure inside a response with status 202, half of the time without an
	// error code. Without Latency the clock hardly moves, so a partition recovers only after Clock.Advance.
	PartitionLimit bool

	// QueueOutOfOrder is the rate of queue messages that are delivered out of order, QueueTwice the rate of
	// messages that are delivered to two receivers.
	QueueOutOfOrder, QueueTwice float64
}

// PartitionRate is the service's target for one partition, in entities a second.
const PartitionRate = 2000

// Delay advances the clock by the duration of one request.
func (c *Chaos) Delay(d *Dice, clock *Clock) {
	latency := c.Latency
	if c.Jitter > 0 {
		latency += time.Duration(d.Below(int(c.Jitter)))
	}
	if latency > 0 {
		clock.Advance(latency)
	}
}
