package storagetest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
)

// SimulatorOptions are the options of [Simulator]; nil is the same as the zero value.
type SimulatorOptions struct {
	// Account is the account's name; empty is contoso.
	Account string
	// Start is the initial time of the clock; zero is a fixed time, the same in every run.
	Start time.Time
	// Seed determines all random choices of Chaos.
	Seed uint64
	// TableDeletion is how long the name of a dropped table stays taken; zero means 40 s; if it is negative,
	// the name is free at once.
	TableDeletion time.Duration
	// Chaos is the initial chaos; [Service.SetChaos] changes it.
	Chaos Chaos
}

// Simulator returns a storage account in memory, fresh and empty: tables, queues and blobs behind the SDK's
// transport, with the service's rules, limits, error codes and signatures, and with a clock that the test sets. It
// needs no Node, no network and no clean-up, and answers in microseconds. Clients must be made with the service's
// ClientOptions; with these the SDK retries a failed request three times, almost at once.
func Simulator(t testing.TB, options *SimulatorOptions) *Service {
	t.Helper()
	s, err := NewSimulator(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// NewSimulator does what [Simulator] does, for code that has no testing.TB, such as Example functions and
// experiments.
func NewSimulator(options *SimulatorOptions) (*Service, error) {
	if options == nil {
		options = &SimulatorOptions{}
	}
	sim, err := simulator.New(simulator.Options{
		Account: options.Account, Start: options.Start, Seed: options.Seed, TableDeletion: options.TableDeletion, Chaos: environment.Chaos(options.Chaos),
	})
	if err != nil {
		return nil, fmt.Errorf("storagetest: %w", err)
	}
	return overSimulator(sim), nil
}

func overSimulator(sim *simulator.Simulator) *Service {
	s := &Service{
		AccountName:   sim.Account(),
		AccountKey:    sim.Key(),
		TableEndpoint: sim.TableEndpoint(),
		QueueEndpoint: sim.QueueEndpoint(),
		BlobEndpoint:  sim.BlobEndpoint(),
		Clock:         &Clock{sim.Clock()},
		sim:           sim,
	}
	s.setConnectionString()
	s.ClientOptions.Transport = sim
	return s.WithRetries(3)
}

// SetChaos changes the simulator's [Chaos], from the next request on. On any other service it panics, so that
// a test that needs chaos cannot pass without chaos.
func (s *Service) SetChaos(c Chaos) {
	if s.sim == nil {
		panic("storagetest: SetChaos is for the simulator; use Faulty on other services")
	}
	s.sim.SetChaos(environment.Chaos(c))
}

// Wait lets time pass on the service: it advances a simulator's clock at once, and sleeps for other services. So a
// test that waits for a message to become visible again can run on both.
func (s *Service) Wait(d time.Duration) {
	if s.Clock != nil {
		s.Clock.Advance(d)
		return
	}
	time.Sleep(d)
}

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

// Clock is the time of a [Simulator]. Each write moves it by 100 ns, and each request by Chaos.Latency;
// otherwise only Advance moves it. So the test decides when a message appears again, a lease ends, a
// signature expires, or the name of a dropped table becomes free. It is safe for concurrent use.
type Clock struct{ clock *environment.Clock }

// Now returns the virtual time. Each write moves it forward by 100 ns, so that no two writes have the same timestamp.
func (c *Clock) Now() time.Time { return c.clock.Now() }

// Advance moves the virtual time forward by d.
func (c *Clock) Advance(d time.Duration) { c.clock.Advance(d) }

// InBubble runs a test in a bubble of testing/synctest, where waiting takes no real time, on a fresh
// [Simulator] whose clock follows the clock of the bubble. In the bubble, a worker polls, renews and waits as
// in production. The rules of testing/synctest hold: make the clients inside the test; t cannot run subtests
// or be parallel.
func InBubble(t *testing.T, test func(t *testing.T, s *Service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := Simulator(t, nil)
		clock := &following{clock: s.Clock, last: time.Now()}
		test(t, s.WithTransport(func(inner policy.Transporter) policy.Transporter {
			clock.inner = inner
			return clock
		}))
	})
}

// following is a transport that, before each request, advances the simulator's clock by the time that has
// passed in the bubble since the last request.
type following struct {
	inner policy.Transporter
	clock *Clock

	mu   sync.Mutex
	last time.Time
}

// Do implements policy.Transporter.
func (f *following) Do(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	now := time.Now()
	f.clock.Advance(now.Sub(f.last))
	f.last = now
	f.mu.Unlock()
	return f.inner.Do(req)
}
