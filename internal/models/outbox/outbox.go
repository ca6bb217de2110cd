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
)

// The rules of the protocol. A walk can drop some of them.
const (
	// Put: the message is put before the commit.
	Put models.Rules = 1 << iota
	// Refused: a writer whose commit was refused does not call the handler.
	Refused
	// Was: a worker does not call the handler if the entity has the write ID that it had before the change.
	Was
	// Absent: an entity that does not exist has no write ID, so it proves nothing.
	Absent
	// Unsure: a writer whose commit is unanswered leaves the message.
	Unsure
	// Again: the entity is read again after the call.
	Again
	// Lease: no process gets a message while a request for it is on its way.
	Lease
	// Turn: a holder calls the handler under the entity's lock.
	Turn
	// Mine: a lock belongs to a change, so only the next holder of its message takes it over.
	Mine
	// Fresh: the entity is read under the lock.
	Fresh
)

var names = []string{"Put", "Refused", "Was", "Absent", "Unsure", "Again", "Lease", "Turn", "Mine", "Fresh"}

// World is a small world: two writers change one entity, and a worker handles the messages that they leave.
type World struct {
	models.Case
	absent   bool    // the entity does not exist at first
	removes  [2]bool // the writer deletes the entity, else it inserts or replaces it
	ordered  bool
	crashes  int8
	lates    int8
	thorough bool
	drop     models.Rules
}

func (c *World) keeps(r models.Rules) bool { return c.drop&r == 0 }

// entity is an entity's version, which the service does not show, and its write ID: the writer's number, 0
// for the first; none if the entity does not exist.
type entity struct{ version, write int8 }

const none = int8(-1)

type step int8

const (
	done step = iota
	idle
	reads
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

var (
	who   = [...]string{"writer 1", "writer 2", "the worker"}
	whats = [...]string{"", "gets a message", "reads", "puts its message", "commits", "reads the entity", "inserts the lock", "reads under the lock",
		"calls the handler", "deletes the lock", "reads again", "ends its message"}
)

const worker = 2

type actor struct {
	at      step
	change  int8
	seen    entity
	refused bool // the writer's commit was refused
}

type message struct {
	state int8 // 0: does not exist, 1: held, 2: visible
	was   int8 // the write ID before the change, none if unknown
}

// request is a request that got no answer: a commit of a writer, or a call of the handler.
type request struct {
	of     int8 // change, none for no request
	commit bool
	seen   entity
}

type world struct {
	entity         entity
	committed      [2]int8 // by change: the version that it committed, 0 if it was not committed
	called         [2]bool // by change: the handler was called after the commit
	there          int8    // the version of the entity that the destination holds
	content        int8    // the version that a call wrote last; 0 if the entity did not exist
	lock           int8    // the change that has the lock, none for nobody
	messages       [2]message
	actors         [3]actor
	late           request
	crashes, lates int8
	wrong          string
}

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.drop = drop
	w := world{entity: entity{1, 0}, there: 1, content: 1, lock: none, late: request{of: none}, crashes: c.crashes, lates: c.lates}
	if c.absent {
		w.entity.write, w.content = none, 0
	}
	for i := range worker {
		w.actors[i] = actor{at: reads, change: int8(i)}
	}
	w.actors[worker].at = idle
	show := func(w world) string {
		return fmt.Sprintf("%v committed %v called %v destination %d lock %d", w.entity, w.committed, w.called, w.there, w.lock)
	}
	return models.Model[world]{Start: w, Next: c.next, Wrong: wrong, Quiet: quiet, Show: show, MaxStates: 5_000_000}.Walk()
}

func quiet(w world) bool {
	for _, a := range w.actors {
		if a.at > idle {
			return false
		}
	}
	return w.late.of == none && w.messages[0].state == 0 && w.messages[1].state == 0
}

func wrong(w world) string {
	if w.wrong != "" || !quiet(w) {
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

func (c *World) next(w world, emit func(to world, who, what string)) {
	for i := range w.actors {
		c.steps(w, i, emit)
	}
	if q := w.late; q.of != none {
		x := w
		x.late = request{of: none}
		emit(x, "a late request", "never arrives")
		if q.commit {
			c.commit(&x, q.of, q.seen)
		} else {
			c.arrives(&x, q.of, q.seen)
		}
		emit(x, "a late request", "arrives")
	}
}

// ends ends an actor, and leaves its message in a state.
func (w *world) ends(i int, state int8) {
	p := &w.actors[i]
	if m := &w.messages[p.change]; m.state == 1 {
		if m.state = state; state == 0 {
			m.was = 0
		}
	}
	if *p = (actor{}); i == worker {
		p.at = idle
	}
}

// steps emits the possible next steps of an actor.
func (c *World) steps(w world, i int, emit func(to world, who, what string)) {
	p := w.actors[i]
	does := func(what string, f func(*world, *actor)) {
		x := w
		f(&x, &x.actors[i])
		emit(x, who[i], what)
	}
	if w.crashes > 0 && p.at > reads {
		does("dies", func(x *world, _ *actor) { x.crashes--; x.ends(i, 2) })
	}
	switch p.at {
	case done:
	case idle:
		for m := range w.messages {
			if w.messages[m].state == 2 && (w.late.of != int8(m) || !c.keeps(Lease)) {
				does(whats[idle], func(x *world, q *actor) {
					x.messages[m].state = 1
					*q = actor{at: handles, change: int8(m)}
				})
			}
		}
	case locks:
		does(whats[locks], func(x *world, q *actor) { c.acquires(x, q, i) })
	default:
		does(whats[p.at], func(x *world, q *actor) { c.does(x, q, i) })
		if (p.at == commits || p.at == calls) && w.lates > 0 && w.late.of == none {
			does(whats[p.at]+", gets no answer and gives up", func(x *world, _ *actor) {
				x.lates--
				x.late = request{p.change, p.at == commits, p.seen}
				state := int8(2)
				if p.at == commits && !c.keeps(Unsure) {
					state = 0
				}
				x.ends(i, state)
			})
		}
	}
}

// acquires inserts the lock, unless the message's change has it already.
func (c *World) acquires(x *world, q *actor, i int) {
	dead := func(change int8) bool { // reports whether no process holds the message of the change
		return x.messages[change].state != 1
	}
	if x.lock != none && x.lock != q.change && (c.keeps(Mine) || !dead(x.lock)) {
		x.ends(i, 2)
		return
	}
	x.lock, q.at = q.change, rereads
}

// does makes the steps that always succeed.
func (c *World) does(x *world, q *actor, i int) {
	call := calls
	if c.ordered && c.keeps(Turn) {
		call = locks
	}
	switch q.at {
	case reads:
		q.seen, q.at = x.entity, puts
		if !c.keeps(Put) {
			q.at = commits
		}
	case puts:
		if x.messages[q.change] = (message{1, q.seen.write}); x.messages[q.change].was == none && c.keeps(Absent) {
			x.messages[q.change].was = -2 // a value that no write ID equals
		}
		if q.at = commits; !c.keeps(Put) {
			q.at = call
		}
	case commits:
		if !c.commit(x, q.change, q.seen) {
			if c.keeps(Refused) {
				x.ends(i, 0)
				return
			}
			q.refused = true
		}
		q.seen, q.at = x.entity, call
		if !c.keeps(Put) {
			q.at = puts
		}
	case handles:
		q.seen, q.at = x.entity, call
		if c.keeps(Was) && x.messages[q.change].was == q.seen.write {
			q.at = again
		}
	case rereads:
		if q.at = calls; c.keeps(Fresh) {
			q.seen = x.entity
		}
	case calls:
		c.calling(x, q, i)
		if q.at = again; c.ordered && c.keeps(Turn) {
			q.at = unlocks
		}
	case unlocks:
		x.lock, q.at = none, again
	case again:
		if q.at = forgets; x.entity.write != q.seen.write && c.keeps(Again) {
			q.seen, q.at = x.entity, call
		}
	case forgets:
		x.ends(i, 0)
	}
}

// calling calls the handler, and records a call that the protocol forbids.
func (c *World) calling(x *world, q *actor, i int) {
	if x.committed[q.change] == 0 && x.wrong == "" {
		switch others := x.committed[1-q.change] != 0; {
		case i != worker && q.refused:
			x.wrong = fmt.Sprintf("the writer of change %d, which was refused, calls the handler", q.change+1)
		case !others && q.seen.write != none:
			x.wrong = fmt.Sprintf("the handler is called for change %d, which was not committed, and nothing has changed", q.change+1)
		}
	}
	c.arrives(x, q.change, q.seen)
}

// Cases returns the worlds to walk through, the large ones only if thorough. For each rule there is a world that needs it.
func Cases(thorough bool) (all []models.Case) {
	at := func(name string, shows ...models.Rules) models.Case { return models.Case{Name: name, Shows: shows} }
	for _, c := range []World{
		{Case: at("replaced twice", Put, Refused, Was, Again), crashes: 1},
		{Case: at("unanswered", Unsure, Lease), crashes: 1, lates: 1},
		{Case: at("inserted and deleted", Absent), absent: true, removes: [2]bool{false, true}, crashes: 2},
		{Case: at("deleted and inserted", Again), removes: [2]bool{true, false}, crashes: 1, lates: 1},
		{Case: at("in order", Turn, Mine, Fresh, Lease), ordered: true, crashes: 1, lates: 1},
		{Case: at("in order, deleted"), ordered: true, removes: [2]bool{true, false}, crashes: 1, lates: 1},
		{Case: at("thorough: unanswered"), thorough: true, crashes: 3, lates: 2},
		{Case: at("thorough: in order"), thorough: true, ordered: true, crashes: 3, lates: 2},
		{Case: at("thorough: inserted and deleted, in order"), thorough: true, ordered: true, absent: true, removes: [2]bool{false, true}, crashes: 3, lates: 2},
	} {
		if c.thorough && !thorough {
			continue
		}
		c.Case.Walk = c.Walk
		all = append(all, c.Case)
	}
	return all
}
