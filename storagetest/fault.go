package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Call describes one request that a client is about to send, for an [Injector]. Each retry by the SDK is
// another call.
type Call struct {
	// Index is the number of the call among the calls of its [Faults], from 0.
	Index int
	// Service is the service that the call is for; empty if neither address nor headers show it.
	Service StorageService
	// Kind is the operation that the call requests.
	Kind Kind
	// Method is the HTTP method.
	Method string
	// Resource is the table, queue, container, or container/blob that the call is about; empty for the account itself.
	Resource string
	// Path is the address without account and query, unescaped; it holds an entity's keys or a message's id.
	Path string
}

// String names the call for people: "call 3: PutMessage intents".
func (c Call) String() string {
	if c.Resource == "" {
		return fmt.Sprintf("call %d: %s", c.Index, c.Kind)
	}
	return fmt.Sprintf("call %d: %s %s", c.Index, c.Kind, c.Resource)
}

// Writes reports whether the call can change anything on the service. To get a queue message is a write,
// since it hides the message.
func (c Call) Writes() bool {
	return c.Kind == GetMessages || c.Method != http.MethodGet && c.Method != http.MethodHead
}

// Injector decides which calls of a client fail, and how. Inject returns nil to inject no fault. It is called for one
// call at a time, in the order of their indexes, and must not make a call itself.
//
// [Mode] and [Cut] are injectors that inject a fault into every call; [OnIndex], [On], [If], [Once], [Times],
// [Randomly], [First] and [Toggle] narrow them down:
//
//	storagetest.On(storagetest.PutMessage, storagetest.Once(storagetest.LostAnswer))
type Injector interface {
	fmt.Stringer
	Inject(call Call) Fault
}

// Fault carries out one call with a failure. Meet takes the place of the network: send passes the request on and
// returns the service's response, and Meet may call it once or not at all. A fault that returns [ErrDied] ends the
// client for good.
//
// [Mode], [Cut], [Before] and [After] are enough for most tests.
type Fault interface {
	fmt.Stringer
	Meet(call Call, req *http.Request, send Send) (*http.Response, error)
}

// Send passes a request on to the service.
type Send func() (*http.Response, error)

// ErrDied is the error of every call of a client whose process counts as dead, from [DiesBefore] or [DiesAfter] on.
var ErrDied = errors.New("storagetest: this client has died")

// diedError is the ErrDied that a transport returns. It prevents the SDK from retrying calls of a dead
// client.
type diedError struct{}

func (diedError) Error() string { return ErrDied.Error() }
func (diedError) Unwrap() error { return ErrDied }
func (diedError) NonRetriable() {}

// InjectorFunc is an [Injector] made of a function.
type InjectorFunc func(call Call) Fault

// Inject calls the function.
func (f InjectorFunc) Inject(call Call) Fault { return f(call) }

// String returns a fixed text, since a function has no name.
func (f InjectorFunc) String() string { return "(func)" }

// Always injects a fault into every call. If the fault is also an [Injector], such as [Inside], it chooses
// the calls to which it applies. Modes and cuts need no Always.
func Always(fault Fault) Injector { return always{fault} }

type always struct{ fault Fault }

func (a always) Inject(call Call) Fault {
	if itself, ok := a.fault.(Injector); ok {
		return itself.Inject(call)
	}
	return a.fault
}

func (a always) String() string { return a.fault.String() }

// OnIndex passes to next the call that reaches OnIndex after i others; i = 0 is the first call. If OnIndex is
// used alone, this is the call whose Index is i; inside [On], OnIndex counts only the calls of that kind.
func OnIndex(i int, next Injector) Injector { return &onIndex{index: i, next: next} }

type onIndex struct {
	index int
	seen  atomic.Int64
	next  Injector
}

func (o *onIndex) Inject(call Call) Fault {
	if o.seen.Add(1)-1 != int64(o.index) {
		return nil
	}
	return o.next.Inject(call)
}

func (o *onIndex) String() string { return fmt.Sprintf("(OnIndex %d %s)", o.index, o.next) }

// On passes the calls of one kind to next.
func On(kind Kind, next Injector) Injector { return on{kind, next} }

type on struct {
	kind Kind
	next Injector
}

func (o on) Inject(call Call) Fault {
	if call.Kind != o.kind {
		return nil
	}
	return o.next.Inject(call)
}

func (o on) String() string { return fmt.Sprintf("(On %s %s)", o.kind, o.next) }

// If passes to next the calls that the predicate accepts, such as those that write ([Call.Writes]).
func If(predicate func(Call) bool, next Injector) Injector { return conditional{predicate, next} }

type conditional struct {
	predicate func(Call) bool
	next      Injector
}

func (c conditional) Inject(call Call) Fault {
	if !c.predicate(call) {
		return nil
	}
	return c.next.Inject(call)
}

func (c conditional) String() string { return fmt.Sprintf("(If func %s)", c.next) }

// Once lets next inject only one fault.
func Once(next Injector) Injector { return Times(1, next) }

// Times lets next inject at most n faults.
func Times(n int, next Injector) Injector {
	t := &times{n: n, next: next}
	t.left.Store(int64(n))
	return t
}

type times struct {
	n    int
	left atomic.Int64
	next Injector
}

func (t *times) Inject(call Call) Fault {
	if t.left.Load() <= 0 {
		return nil
	}
	fault := t.next.Inject(call)
	if fault != nil && t.left.Add(-1) < 0 {
		return nil // two clients share this injector, and the other client has used the last fault
	}
	return fault
}

func (t *times) String() string { return fmt.Sprintf("(Times %d %s)", t.n, t.next) }

// Randomly passes a random part of the calls to next: rate 0.1 is one call in ten. The same seed chooses the same
// calls, by their order.
func Randomly(rate float64, seed uint64, next Injector) Injector {
	return &randomly{rate: rate, seed: seed, next: next}
}

type randomly struct {
	rate float64
	seed uint64
	seen atomic.Uint64
	next Injector
}

func (r *randomly) Inject(call Call) Fault {
	// Use a new generator for each call, so that the choice depends only on the seed and the call's number.
	if rand.New(rand.NewPCG(r.seed, r.seen.Add(1))).Float64() >= r.rate {
		return nil
	}
	return r.next.Inject(call)
}

func (r *randomly) String() string {
	return fmt.Sprintf("(Randomly %g seed %d %s)", r.rate, r.seed, r.next)
}

// First asks the injectors one after another until one has a fault for the call. The remaining injectors do
// not see or count the call.
func First(injectors ...Injector) Injector { return first(injectors) }

type first []Injector

func (f first) Inject(call Call) Fault {
	for _, next := range f {
		if fault := next.Inject(call); fault != nil {
			return fault
		}
	}
	return nil
}

func (f first) String() string {
	names := make([]string, len(f))
	for i, next := range f {
		names[i] = next.String()
	}
	return "(First " + strings.Join(names, " ") + ")"
}

// Toggle is an [Injector] that passes calls to another one while it is on. It is safe for concurrent use.
type Toggle struct {
	on   atomic.Bool
	next Injector
}

// NewToggle returns a toggle in front of next. It is off.
func NewToggle(next Injector) *Toggle { return &Toggle{next: next} }

// Set switches the toggle on or off.
func (t *Toggle) Set(on bool) { t.on.Store(on) }

// Inject asks the next injector if the toggle is on.
func (t *Toggle) Inject(call Call) Fault {
	if !t.on.Load() {
		return nil
	}
	return t.next.Inject(call)
}

// String shows whether the toggle is on, and the injector behind it.
func (t *Toggle) String() string {
	state := "off"
	if t.on.Load() {
		state = "on"
	}
	return fmt.Sprintf("(Toggle %s %s)", state, t.next)
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
