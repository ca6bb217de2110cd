// Package rebuild is a model of Rebuild beside writers and workers, for an entity whose copies under intents, outside of its
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
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The rules of the protocol. A walk can drop some of them.
const (
	Intent models.Rules = 1 << iota
	Again
	Lease
)

var names = []string{"Intent", "Again", "Lease"}

var who = []string{"writer 1", "writer 2", "Rebuild", "the worker"}

const (
	rebuilder = 2
	worker    = 3
)

type entity struct{ version, key int8 }

type actor struct {
	messages.Actor
	seen entity
	n    int8
}

// request writes the copy under a key.
type request struct{ key, version int8 }

type world struct {
	messages.World[actor, [4]actor, request, *actor]
	entity  entity
	copies  [3]int8 // the version under a key, 0 for none
	rebuilt bool
}

// World is a world in which two writers give the entity the keys in to.
type World struct {
	models.Case
	to [2]int8
}

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop = drop
	w := world{entity: entity{1, 0}, copies: [3]int8{0, 9, 0}}
	w.Crashes, w.Lates = 1, 1
	for i := range rebuilder + 1 {
		w.Begin(i, reads, i)
	}
	w.Work(worker)
	m := messages.New(who, reads, handles, c.step, service)
	m.Certain, m.Lease, m.Wrong = true, c.Keeps(Lease), wrong
	m.Show = func(w world) string { return fmt.Sprintf("%v copies %v", w.entity, w.copies) }
	return m.Walk(w)
}

// service writes a copy, without a condition.
func service(w *world, q *request) bool {
	w.copies[q.key] = q.version
	return true
}

func wrong(w world) string {
	for k, v := range w.copies {
		want := int8(0)
		if int(w.entity.key) == k {
			want = w.entity.version
		}
		if w.Quiet() && w.rebuilt && v != want {
			return fmt.Sprintf("the copy under key %d is of version %d, not %d", k, v, want)
		}
	}
	return ""
}

// The steps of an actor, in the order of the protocol.
const (
	reads messages.Step = messages.First + iota
	puts
	commits
	handles
	writes
	again
	forgets
)

type base = messages.Act[world, actor, [4]actor, request, *world, *actor]

type act struct {
	*World
	*base
}

func (c *World) step(b *base) {
	a := &act{c, b}
	p := a.Actor()
	switch p.At {
	case reads:
		a.Does("reads", a.reads)
	case puts:
		a.Does("puts its message", func(w *world, p *actor) {
			p.At = commits
			if a.I == rebuilder {
				p.At, w.rebuilt = handles, true
			}
			if a.I != rebuilder || a.Keeps(Intent) {
				w.Put(a.I)
			}
		})
	case commits:
		a.Does("commits", func(w *world, p *actor) {
			if w.entity != p.seen {
				w.Finish(a.I)
				return
			}
			w.entity = entity{w.entity.version + 1, a.to[a.I]}
			p.reconciles(w)
		})
	case handles:
		a.Does("reads the entity", func(w *world, p *actor) { p.reconciles(w) })
	case writes:
		a.writes(p)
	case again:
		a.Does("reads it again", func(w *world, p *actor) {
			if p.At = forgets; w.entity != p.seen && a.Keeps(Again) {
				p.reconciles(w)
			}
		})
	case forgets:
		a.Does("ends its message", func(w *world, _ *actor) { w.Finish(a.I) })
	}
}

// reads names the keys that the entity has and gets; Rebuild also names those of the listed copies.
func (a *act) reads(w *world, p *actor) {
	p.seen, p.At, p.Keys = w.entity, puts, 1<<w.entity.key
	if a.I < rebuilder {
		p.Keys |= 1 << a.to[a.I]
		return
	}
	for k, v := range w.copies {
		if v != 0 {
			p.Keys |= 1 << k
		}
	}
}

// reconciles begins to write the copies of the entity as it is.
func (p *actor) reconciles(w *world) { p.seen, p.At, p.n = w.entity, writes, 0 }

// writes writes the next copy. If no answer comes, the actor gives up.
func (a *act) writes(p *actor) {
	q := request{key: p.n}
	for p.Keys&(1<<q.key) == 0 {
		q.key++
	}
	if p.seen.key == q.key {
		q.version = p.seen.version
	}
	a.Sends("writes a copy", q, func(_ *world, p *actor, _ bool) {
		if p.n = q.key + 1; p.Keys>>p.n == 0 {
			p.At, p.n = again, 0
		}
	}, nil)
}

// worlds returns the worlds to walk through. For each rule there is a world that needs it.
func worlds() []World {
	return []World{
		{models.At("contents", Intent, Again, Lease), [2]int8{0, 0}},
		{models.At("moved away and back", Again, Lease), [2]int8{2, 0}},
	}
}
