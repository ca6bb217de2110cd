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
	// Account is the account's name (default contoso).
	Account string
	// Start is the clock's first time (default a fixed time).
	Start time.Time
	// Seed determines all random choices of Chaos.
	Seed uint64
	// TableDeletion is how long the name of a dropped table stays taken (default 40 s; not at all if negative).
	TableDeletion time.Duration
	// Chaos is the initial chaos; [Service.SetChaos] changes it.
	Chaos Chaos
}

// Simulator returns a fresh storage account in memory behind the SDK's transport: tables, queues and blobs, with the service's rules, limits, error
// codes and signatures, and a clock that the test sets. It needs no clean-up. Use the service's ClientOptions for clients; they retry a failed
// request three times, almost at once.
func Simulator(t testing.TB, options *SimulatorOptions) *Service {
	t.Helper()
	s, err := NewSimulator(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// NewSimulator is [Simulator] without a testing.TB.
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

// SetChaos changes the simulator's [Chaos]. On any other service it panics, so that no test passes without the chaos that it needs.
func (s *Service) SetChaos(c Chaos) {
	if s.sim == nil {
		panic("storagetest: SetChaos is for the simulator; use Faulty on other services")
	}
	s.sim.SetChaos(environment.Chaos(c))
}

// Wait lets time pass on the service: it advances a simulator's clock at once, and sleeps for other services.
func (s *Service) Wait(d time.Duration) {
	if s.Clock != nil {
		s.Clock.Advance(d)
		return
	}
	time.Sleep(d)
}

// Chaos is behaviour of a [Simulator] that the service's rules allow but that is rare: pages cut short or empty, messages out of order or twice,
// throttling, failures. The zero Chaos changes nothing. A rate is a probability for each request, drawn from [SimulatorOptions].Seed: the same
// requests in the same order get the same results.
type Chaos struct {
	// ShortPages is the rate of pages that end after a random number of entities, with a continuation.
	ShortPages float64
	// EmptyPages is the rate of pages without entities, even if some match, but with a continuation.
	EmptyPages float64
	// PartitionPages is the rate of pages that end with a partition.
	PartitionPages float64
	// NoNextRowKey is the rate of continuations without a row key, where they lead to the first row of a partition.
	NoNextRowKey float64
	// Unordered makes queries ignore the order of keys, as Cosmos DB does.
	Unordered bool

	// Busy is the rate of 503 ServerBusy, Internal of 500 InternalError, Limited of 429 TooManyRequests. Half of the failed transactions fail
	// inside a response with status 202, half of these without a code, as Azure does it.
	Busy, Internal, Limited float64
	// Applied is the share of the 503 and 500 that are sent after the request was carried out. Such a 503 has no code, as from a gateway: the
	// service sends ServerBusy only before it does anything.
	Applied float64

	// Latency, and a random duration of at most Jitter, is how far each request moves the virtual clock.
	Latency, Jitter time.Duration
	// Before is called before each request is processed, also for those that it makes itself.
	Before func(*http.Request)

	// PartitionLimit answers 503 ServerBusy over 2,000 entities a second in one partition, by the virtual clock; for a transaction inside a
	// response with status 202, half of the time without a code. Without Latency the partition recovers only by [Clock.Advance].
	PartitionLimit bool

	// QueueOutOfOrder is the rate of messages delivered out of order, QueueTwice of those delivered to two receivers.
	QueueOutOfOrder, QueueTwice float64
}

// Clock is the time of a [Simulator]: the test decides when a message appears again, a lease ends, a signature expires, or a dropped table's name
// becomes free. Besides Advance, each write moves it by 100 ns, so that no two have the same timestamp, and each request by Chaos.Latency. It is
// safe for concurrent use.
type Clock struct{ clock *environment.Clock }

// Now returns the virtual time.
func (c *Clock) Now() time.Time { return c.clock.Now() }

// Advance moves the virtual time forward by d.
func (c *Clock) Advance(d time.Duration) { c.clock.Advance(d) }

// InBubble runs a test in a bubble of testing/synctest, where waiting takes no real time, on a fresh [Simulator] with the bubble's clock. Make the
// clients inside the test; t cannot run subtests or be parallel.
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

// following advances the simulator's clock, before each request, by the time that has passed in the bubble.
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
