package storagetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

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
