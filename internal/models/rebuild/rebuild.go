// Package rebuild is a model of Rebuild beside writers and workers, for an entity whose copies outside of its
// partition were lost, or which has leftover copies that it does not require. It does no I/O.
//
//	Rebuild  read the entity, and list its copies. Put an intent that names the keys that it has and those of the listed copies. Read the
//	         entity again, write each named key, read the entity again, go round if it has changed, delete the message
//	writer   read the entity, put the message with its old and new key, commit under the ETag, write each named key, and so on
//	worker   get a message; the rest as Rebuild after its put
//
// The copies are written without a condition, so only the message, its lease and the reads protect them.
// After Rebuild has put its intent, every final state has the right copies. If a rule is dropped, some final
// state has not:
//
//	Intent     Rebuild writes copies without a message: nobody completes them after a crash
//	Again      a stale copy: a writer came between the read and the write
//	Lease      a stale copy: a request arrives after another process has handled the message
package rebuild

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
)

// The rules of the protocol. A walk can drop some of them.
const (
	Intent models.Rules = 1 << iota
	Again
	Lease
)

var names = []string{"Intent", "Again", "Lease"}

type step int8

const (
	done step = iota
	idle
	reads
	puts
	commits
	handles
	writes
	again
	forgets
)

// Actors: two writers, Rebuild, a worker.
const (
	rebuilder = 2
	worker    = 3
)

var (
	who   = [...]string{"writer 1", "writer 2", "Rebuild", "the worker"}
	whats = [...]string{"", "gets a message", "reads", "puts its message", "commits", "reads the entity", "writes a copy", "reads it again", "ends its message"}
)

type entity struct{ version, key int8 }

type actor struct {
	at      step
	message int8
	keys    uint8
	seen    entity
	n       int8
}

type message struct {
	state int8 // 0: does not exist, 1: held, 2: visible
	keys  uint8
}

type world struct {
	entity         entity
	copies         [3]int8 // the version under a key, 0 for none
	messages       [3]message
	actors         [4]actor
	late, lateTo   int8 // the key of a late write, -1 for none; the version that it writes
	lateOf         int8 // the message of the late write
	crashes, lates int8
	rebuilt        bool
}

// walk explores the world in which the two writers give the entity the keys in to.
func walk(to [2]int8, drop models.Rules) models.Result {
	keeps := func(r models.Rules) bool { return drop&r == 0 }
	w := world{entity: entity{1, 0}, copies: [3]int8{0, 9, 0}, late: -1, crashes: 1, lates: 1}
	for i := range rebuilder + 1 {
		w.actors[i].at, w.actors[i].message = reads, int8(i)
	}
	w.actors[worker].at = idle
	next := func(w world, emit func(world, string, string)) {
		for i := range w.actors {
			steps(w, i, to, keeps, emit)
		}
		if w.late >= 0 {
			x := w
			x.copies[w.late], x.late, x.lateTo, x.lateOf = w.lateTo, -1, 0, 0
			emit(x, "a late write", "arrives")
		}
	}
	show := func(w world) string { return fmt.Sprintf("%v copies %v", w.entity, w.copies) }
	return models.Model[world]{Start: w, Next: next, Wrong: wrong, Quiet: quiet, Show: show, MaxStates: 5_000_000}.Walk()
}

func quiet(w world) bool {
	for _, a := range w.actors {
		if a.at > idle {
			return false
		}
	}
	return w.late < 0 && w.messages == [3]message{}
}

func wrong(w world) string {
	for k, v := range w.copies {
		want := int8(0)
		if int(w.entity.key) == k {
			want = w.entity.version
		}
		if quiet(w) && w.rebuilt && v != want {
			return fmt.Sprintf("the copy under key %d is of version %d, not %d", k, v, want)
		}
	}
	return ""
}

func ends(w *world, i int, state int8) {
	p := &w.actors[i]
	if m := &w.messages[p.message]; p.at > puts && m.state == 1 {
		if m.state = state; state == 0 {
			m.keys = 0
		}
	}
	if *p = (actor{}); i == worker {
		p.at = idle
	}
}

// steps emits the possible next steps of an actor.
func steps(w world, i int, to [2]int8, keeps func(models.Rules) bool, emit func(world, string, string)) {
	p := w.actors[i]
	does := func(what string, f func(*world, *actor)) {
		x := w
		f(&x, &x.actors[i])
		emit(x, who[i], what)
	}
	if w.crashes > 0 && p.at > reads {
		does("dies", func(x *world, _ *actor) { x.crashes--; ends(x, i, 2) })
	}
	switch p.at {
	case idle:
		for m := range w.messages {
			if w.messages[m].state == 2 && (w.late < 0 || int(w.lateOf) != m || !keeps(Lease)) {
				does(whats[idle], func(x *world, q *actor) {
					x.messages[m].state = 1
					*q = actor{at: handles, message: int8(m), keys: x.messages[m].keys}
				})
			}
		}
	case writes:
		for p.n < 3 && p.keys&(1<<p.n) == 0 {
			p.n++
		}
		version := int8(0)
		if p.seen.key == p.n {
			version = p.seen.version
		}
		does(whats[writes], func(x *world, q *actor) {
			x.copies[p.n] = version
			if q.n = p.n + 1; q.keys>>q.n == 0 {
				q.at, q.n = again, 0
			}
		})
		if w.lates > 0 && w.late < 0 {
			does("writes a copy, gets no answer and gives up", func(x *world, _ *actor) {
				x.lates--
				x.late, x.lateTo, x.lateOf = p.n, version, p.message
				ends(x, i, 2)
			})
		}
	case done:
	default:
		does(whats[p.at], func(x *world, q *actor) { reading(x, q, i, to, keeps) })
	}
}

// reading makes the steps that are not writes of copies.
func reading(x *world, q *actor, i int, to [2]int8, keeps func(models.Rules) bool) {
	switch q.at {
	case reads:
		q.seen, q.at, q.keys = x.entity, puts, 1<<x.entity.key
		if i < rebuilder {
			q.keys |= 1 << to[i]
			return
		}
		for k, v := range x.copies {
			if v != 0 {
				q.keys |= 1 << k
			}
		}
	case puts:
		q.at = commits
		if i == rebuilder {
			q.at, x.rebuilt = handles, true
		}
		if i != rebuilder || keeps(Intent) {
			x.messages[q.message] = message{1, q.keys}
		}
	case commits:
		if x.entity != q.seen {
			ends(x, i, 0)
			return
		}
		x.entity = entity{x.entity.version + 1, to[i]}
		q.seen, q.at, q.n = x.entity, writes, 0
	case handles:
		q.seen, q.at, q.n = x.entity, writes, 0
	case again:
		if q.at = forgets; x.entity != q.seen && keeps(Again) {
			q.seen, q.at, q.n = x.entity, writes, 0
		}
	case forgets:
		ends(x, i, 0)
	}
}

// Cases returns the worlds to walk through. For each rule there is a world that needs it.
func Cases() []models.Case {
	at := func(name string, a, b int8, shows ...models.Rules) models.Case {
		return models.Case{Name: name, Shows: shows, Walk: func(drop models.Rules) models.Result { return walk([2]int8{a, b}, drop) }}
	}
	return []models.Case{at("contents", 0, 0, Intent, Again, Lease), at("moved away and back", 2, 0, Again, Lease)}
}
