// Package outbox is a model of eventual.OnCommit: a handler that is called after each committed change of an
// entity. The handler writes the entity that it gets to a destination, such as a search index. The model does
// no I/O.
//
// # The protocol
//
//	writer   1. read the entity
//	         2. put the message, hidden: the write ID that the entity has, unless it does not exist
//	         3. commit under the ETag. Refused: delete the message. Unanswered: leave the message
//	         4. call the handler with the entity as committed
//	         5. read the entity again. It has changed: call the handler with it, and repeat 5
//	         6. delete the message
//	worker   1. get a message, when no request for it can arrive any more
//	         2. read the entity. It has the message's write ID: the change was not committed; go to 5
//	         4. to 6. as the writer, with the entity as read
//
// With OutboxOptions.Ordered, each call is made under a lock. The lock belongs to the change that the message
// names, not to a process:
//
//	4a. insert the lock. Another change has it: leave the message to a later delivery
//	4b. read the entity again
//	4c. call the handler with what was read, then delete the lock
//
// # What a crash leaves
//
//	before 2         nothing
//	between 2 and 3  the message: a worker finds the write ID, and does not call the handler. If another change has been committed since,
//	                 it cannot know, and calls the handler
//	between 3 and 6  the message: a worker calls the handler, perhaps once more
//	between 4a, 4c   also the lock: the next holder of the message has it
//
// # What holds
//
// In each final state, the handler was called for each committed change, with the entity as of that change or
// later, and the destination holds the current entity. Only a worker calls the handler for a change that was
// not committed, and only if another change has been committed since the writer read the entity, or if the
// entity does not exist. With OutboxOptions.Ordered, the destination never goes back to an earlier version.
//
// # Without a rule
//
//	Put      no call: the writer dies between its commit and its message
//	Refused  the writer calls the handler for a change that it knows was refused
//	Was      a worker calls the handler for a change that was not committed, although nothing has changed
//	Absent   no call: an entity is inserted and deleted, and the worker takes its absence for that before the insert
//	Unsure   no call: an unanswered commit arrives after its message was deleted
//	Again    the destination is stale: a call for the later version came first
//	Lease    no call: a worker finds that nothing was committed, and the commit arrives then
//	Turn     the destination goes back: two holders call at once
//	Mine     the destination goes back: a lock is taken from a dead holder whose request is still on its way
//	Fresh    the destination goes back: the entity was read before the lock
package outbox

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The rules of the protocol. A walk can drop some of them.
const (
	Put     models.Rules = 1 << iota // the message is put before the commit
	Refused                          // a writer whose commit was refused does not call the handler
	Was                              // a worker does not call the handler if the entity has the write ID that it had before the change
	Absent                           // an entity that does not exist has no write ID, so it proves nothing
	Unsure                           // a writer whose commit is unanswered leaves the message
	Again                            // the entity is read again after the call
	Lease                            // no process gets a message while a request for it is on its way
	Turn                             // a holder calls the handler under the entity's lock
	Mine                             // a lock belongs to a change, so only the next holder of its message takes it over
	Fresh                            // the entity is read under the lock
)

var names = []string{"Put", "Refused", "Was", "Absent", "Unsure", "Again", "Lease", "Turn", "Mine", "Fresh"}

var who = []string{"writer 1", "writer 2", "the worker"}

const (
	worker = 2
	none   = int8(-1)
)

// entity is an entity's version, which the service does not show, and its write ID: the writer's number, 0
// for the first; none if the entity does not exist.
type entity struct{ version, write int8 }

type actor struct {
	messages.Actor
	seen    entity
	refused bool // the writer's commit was refused
}

// request is a commit of a writer, or a call of the handler.
type request struct {
	change int8
	commit bool
	seen   entity
}

type world struct {
	messages.World[actor, [3]actor, request, *actor]
	entity    entity
	was       [2]int8 // by message: the write ID before the change, none if unknown
	committed [2]int8 // by change: the version that it committed, 0 if it was not committed
	called    [2]bool // by change: the handler was called after the commit
	there     int8    // the version of the entity that the destination holds
	content   int8    // the version that a call wrote last; 0 if the entity did not exist
	lock      int8    // the change that has the lock, none for nobody
	wrong     string
}

// World is a small world: two writers change one entity, and a worker handles the messages that they leave.
type World struct {
	models.Case
	absent         bool    // the entity does not exist at first
	removes        [2]bool // the writer deletes the entity, else it inserts or replaces it
	ordered        bool
	crashes, lates int8
}

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop = drop
	w := world{entity: entity{1, 0}, there: 1, content: 1, lock: none}
	if w.Crashes, w.Lates = c.crashes, c.lates; c.absent {
		w.entity.write, w.content = none, 0
	}
	for i := range worker {
		w.Begin(i, reads, i)
	}
	w.Work(worker)
	m := messages.New(who, reads, handles, c.step, c.service)
	m.Lease, m.Wrong = c.Keeps(Lease), wrong
	m.Show = func(w world) string {
		return fmt.Sprintf("%v committed %v called %v destination %d lock %d", w.entity, w.committed, w.called, w.there, w.lock)
	}
	return m.Walk(w)
}

func wrong(w world) string {
	if w.wrong != "" || !w.Quiet() {
		return w.wrong
	}
	for i, version := range w.committed {
		if version != 0 && !w.called[i] {
			return fmt.Sprintf("the handler was not called for change %d", i+1)
		}
	}
	if want := contentOf(w.entity); w.content != want {
		return fmt.Sprintf("the destination has content %d, not %d", w.content, want)
	}
	return ""
}

// contentOf returns the content that a call with an entity writes to the destination.
func contentOf(e entity) int8 {
	if e.write == none {
		return 0
	}
	return e.version
}

// arrives applies a call to the destination.
func (c *World) arrives(w *world, change int8, seen entity) {
	if c.ordered && seen.version < w.there && w.wrong == "" {
		w.wrong = fmt.Sprintf("the destination goes back from version %d to %d", w.there, seen.version)
	}
	w.there, w.content = seen.version, contentOf(seen)
	if at := w.committed[change]; at != 0 && seen.version >= at {
		w.called[change] = true
	}
}

// commit applies a writer's transaction, and reports whether its ETag was the entity's.
func (c *World) commit(w *world, change int8, seen entity) bool {
	if w.entity.write != seen.write || seen.write == none && c.removes[change] {
		return false
	}
	w.entity.version++
	if w.entity.write = change + 1; c.removes[change] {
		w.entity.write = none
	}
	w.committed[change] = w.entity.version
	return true
}

// service applies a request.
func (c *World) service(w *world, q *request) bool {
	if q.commit {
		return c.commit(w, q.change, q.seen)
	}
	c.arrives(w, q.change, q.seen)
	return true
}

// The steps of an actor, in the order of the protocol.
const (
	reads messages.Step = messages.First + iota
	puts
	commits
	handles
	locks
	rereads
	calls
	unlocks
	again
	forgets
)

type base = messages.Act[world, actor, [3]actor, request, *world, *actor]

type act struct {
	*World
	*base
}

// finish deletes an actor's message.
func (a *act) finish(w *world, p *actor) {
	w.was[p.Message] = 0
	w.Finish(a.I)
}

func (c *World) step(b *base) {
	a := &act{c, b}
	if p := a.Actor(); p.At < handles {
		a.writer(p)
	} else {
		a.handles(p)
	}
}

// call returns the step that comes before a call of the handler, or the call.
func (a *act) call() messages.Step {
	if a.ordered && a.Keeps(Turn) {
		return locks
	}
	return calls
}

// writer makes the next request of a writer up to its commit. If that gets no answer, the writer gives up.
func (a *act) writer(p *actor) {
	first := a.Keeps(Put)
	switch p.At {
	case reads:
		a.Does("reads", func(w *world, p *actor) {
			if p.seen, p.At = w.entity, puts; !first {
				p.At = commits
			}
		})
	case puts:
		a.Does("puts its message", func(w *world, p *actor) {
			w.Put(a.I)
			if w.was[p.Message] = p.seen.write; p.seen.write == none && a.Keeps(Absent) {
				w.was[p.Message] = -2 // a value that no write ID equals
			}
			if p.At = commits; !first {
				p.At = a.call()
			}
		})
	case commits:
		lost := a.finish
		if a.Keeps(Unsure) {
			lost = nil
		}
		a.Sends("commits", request{p.Change, true, p.seen}, func(w *world, p *actor, ok bool) {
			if !ok && a.Keeps(Refused) {
				a.finish(w, p)
				return
			}
			p.refused = !ok
			if p.seen, p.At = w.entity, a.call(); !first {
				p.At = puts
			}
		}, lost)
	}
}

// handles makes the next request of a process that handles a message. If a call gets no answer, the process gives up.
func (a *act) handles(p *actor) {
	switch p.At {
	case handles:
		a.Does("reads the entity", func(w *world, p *actor) {
			p.seen, p.At = w.entity, a.call()
			if a.Keeps(Was) && w.was[p.Message] == p.seen.write {
				p.At = again
			}
		})
	case locks:
		a.Does("inserts the lock", a.acquires)
	case rereads:
		a.Does("reads under the lock", func(w *world, p *actor) {
			if p.At = calls; a.Keeps(Fresh) {
				p.seen = w.entity
			}
		})
	case calls:
		a.Sends("calls the handler", request{p.Change, false, p.seen}, func(w *world, p *actor, _ bool) {
			if bad := a.forbidden(p); bad != "" {
				w.wrong = bad
			}
			if p.At = again; a.call() == locks {
				p.At = unlocks
			}
		}, nil)
	case unlocks:
		a.Does("deletes the lock", func(w *world, p *actor) { w.lock, p.At = none, again })
	case again:
		a.Does("reads again", func(w *world, p *actor) {
			if p.At = forgets; w.entity.write != p.seen.write && a.Keeps(Again) {
				p.seen, p.At = w.entity, a.call()
			}
		})
	case forgets:
		a.Does("ends its message", a.finish)
	}
}

// acquires inserts the lock, unless the message's change has it already.
func (a *act) acquires(w *world, p *actor) {
	held := func(change int8) bool { return w.Messages[change].State == messages.Held }
	if w.lock != none && w.lock != p.Change && (a.Keeps(Mine) || held(w.lock)) {
		w.Stop(a.I)
		return
	}
	w.lock, p.At = p.Change, rereads
}

// forbidden returns why the protocol forbids a call of the handler, or "".
func (a *act) forbidden(p *actor) string {
	committed := &a.From.committed
	switch others := committed[1-p.Change] != 0; {
	case committed[p.Change] != 0:
		return ""
	case a.I != worker && p.refused:
		return fmt.Sprintf("the writer of change %d, which was refused, calls the handler", p.Change+1)
	case !others && p.seen.write != none:
		return fmt.Sprintf("the handler is called for change %d, which was not committed, and nothing has changed", p.Change+1)
	}
	return ""
}

// worlds returns the worlds to walk through. For each rule there is a world that needs it.
func worlds() []World {
	at, large := models.At, models.Thorough
	deletes, inserts := [2]bool{false, true}, [2]bool{true, false} // the second change
	return []World{
		{Case: at("replaced twice", Put, Refused, Was, Again), crashes: 1},
		{Case: at("unanswered", Unsure, Lease), crashes: 1, lates: 1},
		{Case: at("inserted and deleted", Absent), absent: true, removes: deletes, crashes: 2},
		{Case: at("deleted and inserted", Again), removes: inserts, crashes: 1, lates: 1},
		{Case: at("in order", Turn, Mine, Fresh, Lease), ordered: true, crashes: 1, lates: 1},
		{Case: at("in order, deleted"), ordered: true, removes: inserts, crashes: 1, lates: 1},
		{Case: large("unanswered"), crashes: 3, lates: 2},
		{Case: large("in order"), ordered: true, crashes: 3, lates: 2},
		{Case: large("inserted and deleted, in order"), ordered: true, absent: true, removes: deletes, crashes: 3, lates: 2},
	}
}
