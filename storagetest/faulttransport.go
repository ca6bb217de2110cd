package storagetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Faults is a policy.Transporter that injects faults into the calls of one client, in front of another transport: set
// it as ClientOptions.Transport. Calls without a fault pass through unchanged; of these, it reads only the body of a transaction, which
// names the table. It is safe for concurrent use.
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

// Met is an injected fault with the call that met it.
type Met struct {
	Call  Call
	Fault Fault
}

// String names fault and call: "LostAnswer at call 3: PutMessage intents".
func (m Met) String() string { return fmt.Sprintf("%v at %v", m.Fault, m.Call) }

// NewFaults puts an injector in front of a transport. A nil inner means http.DefaultClient; a nil injector injects
// nothing. [Service.Faulty] does so for all clients of a service.
func NewFaults(inner policy.Transporter, injector Injector) *Faults {
	if inner == nil {
		inner = http.DefaultClient
	}
	if injector == nil {
		injector = Mode(0)
	}
	return &Faults{inner: inner, injector: injector}
}

// Do implements policy.Transporter: it injects a fault into the call, or passes it on.
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

// begin numbers a call and asks the injector for a fault.
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

// Context returns a context that ends when the client dies, with [ErrDied] as its cause: timers and polling
// loops of a dead process must not continue.
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

// Calls returns the calls so far, in their order, without those made after the client's death, which are not sent.
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
