package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Call is one request that a client is about to send; each retry by the SDK is another.
type Call struct {
	// Index counts the calls of its [Faults], from 0.
	Index int
	// Service is empty if neither address nor headers show it.
	Service StorageService
	// Kind is the operation.
	Kind Kind
	// Method is the HTTP method.
	Method string
	// Resource is the table, queue, container, or container/blob; empty for the account itself.
	Resource string
	// Path is the address without account and query, unescaped: with an entity's keys or a message's id.
	Path string
}

// String names the call: "call 3: PutMessage intents".
func (c Call) String() string {
	if c.Resource == "" {
		return fmt.Sprintf("call %d: %s", c.Index, c.Kind)
	}
	return fmt.Sprintf("call %d: %s %s", c.Index, c.Kind, c.Resource)
}

// Writes reports whether the call can change anything on the service; to get a queue message hides it, and so is a write.
func (c Call) Writes() bool {
	return c.Kind == GetMessages || c.Method != http.MethodGet && c.Method != http.MethodHead
}

// Injector decides which calls of a client fail, and how; nil is no fault. Inject is called for one call at a time, in the order of their indexes,
// and must not make a call.
//
// [Mode] and [Cut] inject a fault into every call; [OnIndex], [On], [If], [Once], [Times], [Randomly], [First] and [Toggle] narrow them down:
//
//	storagetest.On(storagetest.PutMessage, storagetest.Once(storagetest.LostAnswer))
type Injector interface {
	fmt.Stringer
	Inject(call Call) Fault
}

// Fault carries out one call with a failure, in place of the network: send passes the request on and returns the service's response, and Meet calls
// it once or not at all. A fault that returns [ErrDied] ends the client for good. [Mode], [Cut], [Before] and [After] are enough for most tests.
type Fault interface {
	fmt.Stringer
	Meet(call Call, req *http.Request, send Send) (*http.Response, error)
}

// Send passes a request on to the service.
type Send func() (*http.Response, error)

// ErrDied is the error of every call of a dead client, from [DiesBefore] or [DiesAfter] on.
var ErrDied = errors.New("storagetest: this client has died")

// diedError keeps the SDK from retrying calls of a dead client.
type diedError struct{}

func (diedError) Error() string { return ErrDied.Error() }
func (diedError) Unwrap() error { return ErrDied }
func (diedError) NonRetriable() {}

// InjectorFunc is an [Injector] made of a function.
type InjectorFunc func(call Call) Fault

// Inject calls the function.
func (f InjectorFunc) Inject(call Call) Fault { return f(call) }

// String returns a fixed text.
func (f InjectorFunc) String() string { return "(func)" }

// Always injects a fault into every call, or those that a fault which is also an [Injector], such as [Inside], chooses. Modes and cuts need no
// Always.
func Always(fault Fault) Injector { return always{fault} }

type always struct{ fault Fault }

func (a always) Inject(call Call) Fault {
	if itself, ok := a.fault.(Injector); ok {
		return itself.Inject(call)
	}
	return a.fault
}

func (a always) String() string { return a.fault.String() }

type narrowed struct {
	name   string
	passes func(Call) bool
	next   Injector
}

func (n narrowed) Inject(call Call) Fault {
	if !n.passes(call) {
		return nil
	}
	return n.next.Inject(call)
}

func (n narrowed) String() string { return "(" + n.name + " " + n.next.String() + ")" }

// OnIndex passes to next the call that reaches it after i others: by itself the call with Index i, inside [On] the one after i of that kind.
func OnIndex(i int, next Injector) Injector {
	var seen atomic.Int64
	return narrowed{fmt.Sprintf("OnIndex %d", i), func(Call) bool { return seen.Add(1)-1 == int64(i) }, next}
}

// On passes the calls of one kind to next.
func On(kind Kind, next Injector) Injector {
	return narrowed{fmt.Sprintf("On %s", kind), func(call Call) bool { return call.Kind == kind }, next}
}

// If passes to next the calls that the predicate accepts, such as [Call.Writes].
func If(predicate func(Call) bool, next Injector) Injector {
	return narrowed{"If func", predicate, next}
}

// Randomly passes a random part of the calls to next: rate 0.1 is one in ten. The same seed chooses the same calls, by their order.
func Randomly(rate float64, seed uint64, next Injector) Injector {
	var seen atomic.Uint64
	return narrowed{fmt.Sprintf("Randomly %g seed %d", rate, seed), func(Call) bool {
		// A new generator makes the choice depend only on the seed and the call's number.
		return rand.New(rand.NewPCG(seed, seen.Add(1))).Float64() < rate
	}, next}
}

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
		return nil // two clients share this injector, and the other has used the last fault
	}
	return fault
}

func (t *times) String() string { return fmt.Sprintf("(Times %d %s)", t.n, t.next) }

// First returns the first fault of any injector. Later injectors do not see or count the call.
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

// Toggle is an [Injector] that passes calls on while it is on. It is safe for concurrent use.
type Toggle struct {
	on   atomic.Bool
	next Injector
}

// NewToggle returns a toggle in front of next, which is off.
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

// Faults is a policy.Transporter (ClientOptions.Transport) that injects faults into the calls of one client. Other calls pass unchanged; of these,
// it reads only the body of a transaction, which names the table. It is safe for concurrent use.
type Faults struct {
	inner    policy.Transporter
	injector Injector
	locate   locator

	mu    sync.Mutex
	calls []Call
	met   []Met
	dead  bool

	atDeath []context.CancelCauseFunc
}

// Met is an injected fault with its call.
type Met struct {
	Call  Call
	Fault Fault
}

// String says, for example, "LostAnswer at call 3: PutMessage intents".
func (m Met) String() string { return fmt.Sprintf("%v at %v", m.Fault, m.Call) }

// NewFaults puts an injector in front of a transport; nil is http.DefaultClient, and no faults. [Service.Faulty] does so for all clients of a
// service.
func NewFaults(inner policy.Transporter, injector Injector) *Faults {
	if inner == nil {
		inner = http.DefaultClient
	}
	if injector == nil {
		injector = Mode(0)
	}
	return &Faults{inner: inner, injector: injector}
}

// Do implements policy.Transporter.
func (f *Faults) Do(req *http.Request) (*http.Response, error) {
	call, req, err := f.locate.call(req)
	if err != nil {
		return nil, err
	}
	fault, dead := f.begin(&call)
	if dead {
		closeBody(req)
		return nil, diedError{}
	}
	var resp *http.Response
	if fault == nil {
		resp, err = f.inner.Do(req)
	} else {
		resp, err = fault.Meet(call, req, func() (*http.Response, error) { return f.inner.Do(req) })
	}
	// A call that was in flight when the client died gets no response.
	if f.markDead(err) {
		if err == nil {
			discard(resp)
		}
		return nil, diedError{}
	}
	return resp, err
}

func (f *Faults) begin(call *Call) (fault Fault, dead bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return nil, true
	}
	call.Index = len(f.calls)
	f.calls = append(f.calls, *call)
	if fault = f.injector.Inject(*call); fault != nil {
		f.met = append(f.met, Met{Call: *call, Fault: fault})
	}
	return fault, false
}

// markDead records that the client has died if err says so, and reports whether it is dead.
func (f *Faults) markDead(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dead && errors.Is(err, ErrDied) {
		f.dead = true
		for _, cancel := range f.atDeath {
			cancel(ErrDied)
		}
	}
	return f.dead
}

// Context returns a context that ends when the client dies, with the cause [ErrDied], for timers and polling loops.
func (f *Faults) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		cancel(ErrDied)
	} else {
		f.atDeath = append(f.atDeath, cancel)
	}
	return ctx, func() { cancel(nil) }
}

// Calls returns the calls in their order, without those after the client's death, which are not sent.
func (f *Faults) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Met returns the faults injected so far.
func (f *Faults) Met() []Met {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.met)
}

// Dead reports whether a fault has ended the client.
func (f *Faults) Dead() bool { return f.markDead(nil) }

// String names the injector.
func (f *Faults) String() string { return f.injector.String() }
