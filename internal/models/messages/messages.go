// Package messages has the parts of a world that most models share: messages on a queue, actors that hold them, crashes, and a
// request that arrives late. It does no I/O.
//
// An actor makes one request after another. A model describes each request in the order of the protocol, with one of two methods,
// which emit the states that the request leads to:
//
//	Does   the request gets its answer
//	Sends  the same, for a write; or no answer comes: the write is late, so it is applied at some later step, or never
//
// Besides, an actor may crash instead of its next request, and then its message becomes visible. An idle worker gets any visible message.
//
// At most one write is late at a time. With the rule of the lease, no worker gets a message while a write of its last holder is
// late. A state is final if no actor is at work, no message is left, and no write is late.
package messages

import "github.com/tablepatterns/tablepatterns/internal/models"

// Step is the next request of an actor.
type Step int8

// The steps that all models have. The steps of a model begin with First, in the order of the protocol.
const (
	Done Step = iota
	Idle      // a worker without a message
	First
	Never Step = 127 // as Protocol.Safe: no actor crashes on its own
)

// State is the state of a message.
type State int8

// The states of a message.
const (
	Absent State = iota
	Held
	Visible
)

// Intent is what a message names. A model uses the fields that it needs.
type Intent struct {
	Change  int8  // the number of the change; the message has the same number
	Members uint8 // the members of the change set
	Keys    uint8 // the keys, lists or holders outside of the partition
	Fresh   uint8 // those of them that the change adds
}

// Message is a message on the queue.
type Message struct {
	State State
	Intent
}

// Actor is the part of an actor that all models have. A model embeds it.
type Actor struct {
	At      Step
	Message int8 // the number of the actor's message
	Intent
	Worker bool // when it has handled a message, it waits for another one
	Unsure bool // a write of the actor got no answer
}

func (p *Actor) actor() *Actor { return p }

// Of is the constraint of a pointer to an actor that embeds Actor.
type Of[A any] interface {
	*A
	actor() *Actor
}

// Array is the constraint of the actors of a model.
type Array[A any] interface {
	[2]A | [3]A | [4]A | [5]A | [6]A
}

// World is the part of a state that all models have. A is the actor, As are all of them, and Q is a write that may arrive late. A
// model embeds it.
type World[A any, As Array[A], Q any, P Of[A]] struct {
	Messages       [5]Message
	Actors         As
	Late           Q
	LateOf         int8 // the message for which Late was sent
	Waits          bool // Late is under way
	Crashes, Lates int8 // how many may still occur
}

func (w *World[A, As, Q, P]) world() *World[A, As, Q, P] { return w }

// Actor returns the common part of an actor.
func (w *World[A, As, Q, P]) Actor(i int) *Actor { return P(&w.Actors[i]).actor() }

// Begin makes an actor the writer of the change with a number.
func (w *World[A, As, Q, P]) Begin(i int, at Step, change int) {
	*w.Actor(i) = Actor{At: at, Message: int8(change), Intent: Intent{Change: int8(change)}}
}

// Work makes an actor an idle worker.
func (w *World[A, As, Q, P]) Work(i int) { *w.Actor(i) = Actor{At: Idle, Worker: true} }

// Queue begins a world with visible messages, in which all actors are workers.
func (w *World[A, As, Q, P]) Queue(messages int, lates int8) {
	w.Lates = lates
	for i := range len(w.Actors) {
		w.Work(i)
	}
	for m := range messages {
		w.Messages[m].State = Visible
	}
}

// Put puts the message of an actor, which holds it.
func (w *World[A, As, Q, P]) Put(i int) {
	w.Messages[w.Actor(i).Message] = Message{Held, w.Actor(i).Intent}
}

// Release makes the message of an actor visible.
func (w *World[A, As, Q, P]) Release(i int) {
	if m := &w.Messages[w.Actor(i).Message]; m.State == Held {
		m.State = Visible
	}
}

// End ends the work of an actor.
func (w *World[A, As, Q, P]) End(i int) {
	worker := w.Actor(i).Worker
	if w.Actors[i] = *new(A); worker {
		w.Work(i)
	}
}

// Stop ends an actor that has crashed or gives up. Its message becomes visible.
func (w *World[A, As, Q, P]) Stop(i int) {
	w.Release(i)
	w.End(i)
}

// Finish deletes the message of an actor, and ends it.
func (w *World[A, As, Q, P]) Finish(i int) {
	w.Messages[w.Actor(i).Message] = Message{}
	w.End(i)
}

// Requeue makes a message visible that was deleted, and reports whether it was.
func (w *World[A, As, Q, P]) Requeue(m int) bool {
	if w.Messages[m].State != Absent {
		return false
	}
	w.Messages[m].State = Visible
	return true
}

// Reappear makes a held message visible, and reports whether it was held. With the rule of the lease its holder ends, and it does not
// reappear while a write of its last holder is late.
func (w *World[A, As, Q, P]) Reappear(m int, lease bool) bool {
	if w.Messages[m].State != Held || lease && w.Waits && int(w.LateOf) == m {
		return false
	}
	w.Messages[m].State = Visible
	for i := range len(w.Actors) {
		if p := w.Actor(i); lease && p.At > Idle && int(p.Message) == m {
			w.End(i)
		}
	}
	return true
}

// Quiet reports whether a state is final.
func (w *World[A, As, Q, P]) Quiet() bool {
	for i := range len(w.Actors) {
		if w.Actor(i).At > Idle {
			return false
		}
	}
	for i := range w.Messages {
		if w.Messages[i].State != Absent {
			return false
		}
	}
	return !w.Waits
}

// In is the constraint of a pointer to a state that embeds World.
type In[W, A any, As Array[A], Q any, P Of[A]] interface {
	*W
	world() *World[A, As, Q, P]
}

// Protocol is what a model adds to the common parts.
type Protocol[W comparable, A any, As Array[A], Q any, PW In[W, A, As, Q, PA], PA Of[A]] struct {
	Who []string // the names of the actors
	// Safe is the last step that an actor still makes without a crash, since it has done nothing before.
	Safe Step
	// Handles is the first step of a worker that has got a message.
	Handles Step
	// Lease says that the rule of the lease is kept, and Certain that a late write is never lost.
	Lease, Certain bool
	// Step emits the states that one step of an actor can reach.
	Step func(*Act[W, A, As, Q, PW, PA])
	// Service applies a write, and reports whether its conditions were met.
	Service func(w *W, q *Q) bool
	// Before and After emit what no actor does, before and after the steps of the actors; nil for nothing.
	Before, After func(w W, emit func(to W, who, what string))
	// Wrong, Forbids, Quiet and Show are those of models.Model; nil for Quiet means World.Quiet.
	Wrong   func(W) string
	Forbids func(from, to W) string
	Quiet   func(W) bool
	Show    func(W) string
}

// New returns a protocol with the steps of its actors, and with the service that applies their writes.
func New[W comparable, A any, As Array[A], Q any, PW In[W, A, As, Q, PA], PA Of[A]](who []string, safe, handles Step, step func(*Act[W, A, As, Q, PW, PA]), service func(w *W, q *Q) bool) *Protocol[W, A, As, Q, PW, PA] {
	return &Protocol[W, A, As, Q, PW, PA]{Who: who, Safe: safe, Handles: handles, Step: step, Service: service}
}

// Walk visits every state that can be reached from a start.
func (m *Protocol[W, A, As, Q, PW, PA]) Walk(start W) models.Result {
	if m.Quiet == nil {
		m.Quiet = func(w W) bool { return PW(&w).world().Quiet() }
	}
	return models.Model[W]{Start: start, Next: m.next, Wrong: m.Wrong, Forbids: m.Forbids, Quiet: m.Quiet, Show: m.Show, MaxStates: 20_000_000}.Walk()
}

// next emits every state that one step can reach.
func (m *Protocol[W, A, As, Q, PW, PA]) next(w W, emit func(to W, who, what string)) {
	if m.Before != nil {
		m.Before(w, emit)
	}
	for i := range len(PW(&w).world().Actors) {
		a := &Act[W, A, As, Q, PW, PA]{m, w, i, emit}
		at := PW(&w).world().Actor(i).At
		if at > m.Safe {
			a.dies()
		}
		if at == Idle {
			a.gets()
		} else if at != Done {
			m.Step(a)
		}
	}
	if PW(&w).world().Waits {
		m.late(w, emit)
	}
	if m.After != nil {
		m.After(w, emit)
	}
}

// late emits what becomes of a late write.
func (m *Protocol[W, A, As, Q, PW, PA]) late(to W, emit func(to W, who, what string)) {
	w := PW(&to).world()
	q := w.Late
	w.Late, w.LateOf, w.Waits = *new(Q), 0, false
	if !m.Certain {
		emit(to, "a late request", "never arrives")
	}
	m.Service(&to, &q)
	emit(to, "a late request", "arrives")
}

// Act is one step of the actor with the number I.
type Act[W comparable, A any, As Array[A], Q any, PW In[W, A, As, Q, PA], PA Of[A]] struct {
	model *Protocol[W, A, As, Q, PW, PA]
	From  W
	I     int
	emit  func(to W, who, what string)
}

// Actor returns the actor before the step.
func (a *Act[W, A, As, Q, PW, PA]) Actor() *A { return &PW(&a.From).world().Actors[a.I] }

// Does emits the state after a request. f changes a copy of the state, and the actor in it.
func (a *Act[W, A, As, Q, PW, PA]) Does(what string, f func(w *W, p *A)) {
	to := a.From
	f(&to, &PW(&to).world().Actors[a.I])
	a.emit(to, a.model.Who[a.I], what)
}

// Sends emits the state after a write, whose answer f gets. It also emits the state in which no answer comes: lost says what the
// actor does then; nil means that it gives up.
func (a *Act[W, A, As, Q, PW, PA]) Sends(what string, q Q, f func(w *W, p *A, ok bool), lost func(w *W, p *A)) {
	a.Does(what, func(w *W, p *A) { f(w, p, a.model.Service(w, &q)) })
	if w := PW(&a.From).world(); w.Lates == 0 || w.Waits {
		return
	}
	a.Does(what+", gets no answer", func(to *W, p *A) {
		w := PW(to).world()
		w.Lates--
		w.Late, w.LateOf, w.Waits = q, PA(p).actor().Message, true
		if lost == nil {
			w.Stop(a.I)
		} else {
			lost(to, p)
		}
	})
}

// dies emits the crash of the actor, if one may still occur.
func (a *Act[W, A, As, Q, PW, PA]) dies() {
	if PW(&a.From).world().Crashes == 0 {
		return
	}
	a.Does("dies", func(to *W, _ *A) {
		w := PW(to).world()
		w.Crashes--
		w.Stop(a.I)
	})
}

// gets emits that an idle worker gets a message, for each that it can get.
func (a *Act[W, A, As, Q, PW, PA]) gets() {
	from := PW(&a.From).world()
	for m, message := range from.Messages {
		if message.State != Visible || a.model.Lease && from.Waits && int(from.LateOf) == m {
			continue
		}
		a.Does("gets a message", func(to *W, p *A) {
			PW(to).world().Messages[m].State = Held
			*PA(p).actor() = Actor{At: a.model.Handles, Message: int8(m), Intent: message.Intent, Worker: true}
		})
	}
}
