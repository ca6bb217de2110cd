// Package blobs is a model of blobs that rows name, without a message on a queue: the writer deletes the blob that its change leaves, and a
// sweep deletes what writers leave that die. Package largeentities follows it. The model does no I/O. A test explores every order of requests, ticks of the clock, crashes, late requests and
// requests that a proxy sends twice, and drops each rule of the protocol in turn.
//
//	writer   1. read the entity, and store the new blob under a new name, with its term
//	         2. commit under the ETag that was read, within the term; an insert is sent once
//	         3. committed: delete the old blob. Refused: read the entity again; unless it names the new blob, delete that. Unknown: nothing
//	sweep    list the blobs; for each whose term and grace have passed: read the entity; unless it names the blob, delete it
//
// In each state, the blob that the entity names exists. So a reader that finds no blob reads the entity again, and sees a later change. From each
// state, one can be reached in which no other blob exists. The commit of a writer arrives within a margin or never, but a blob, or its
// delete, may arrive at any time: a blob that arrives late is swept, since no row names it.
//
// # Without a rule
//
// Each time, the entity names a blob that does not exist:
//
//	BlobFirst     the writer has committed, and not yet stored the blob
//	InTerm        the sweep reads the entity; then the writer commits, and the sweep deletes the new blob
//	WaitTerm      the same
//	ReadAfter     the sweep has read the entity before the writer committed
//	AfterCommit   the writer has deleted the old blob, and not yet committed
//	LeaveUnknown  the writer deletes the new blob, and its commit arrives
//	LookAgain     a proxy sends a commit twice and returns the refusal, and the writer deletes the new blob
//	UnderETag     a change keeps a blob that another has replaced since
//	NewName       a delete of the first attempt arrives after the commit of the second
//	InsertOnce    an entity is inserted, deleted with its blob, and inserted again by a copy of the request
//
// Not modelled: several values of an entity, whose writer renews the dates of blobs while it still uploads others; rows that are restored from a
// backup, which break UnderETag.
package blobs

import (
	"fmt"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The rules of the protocol. A walk can drop some of them.
const (
	BlobFirst    models.Rules = 1 << iota // a blob is stored before the transaction that names it
	InTerm                                // the transaction is sent within the blob's term, or not at all
	WaitTerm                              // the sweep examines a blob only when its term and grace have passed
	ReadAfter                             // the sweep reads the entity after the listing
	AfterCommit                           // the old blob is deleted after the transaction
	LeaveUnknown                          // a writer whose transaction is unanswered deletes nothing
	LookAgain                             // a writer whose transaction was refused reads the entity before it deletes the new blob
	UnderETag                             // a change that keeps the blob is made under the ETag of the row that names it
	NewName                               // each attempt stores a blob with a new name
	InsertOnce                            // a transaction with an insert is sent once
)

var names = []string{"BlobFirst", "InTerm", "WaitTerm", "ReadAfter", "AfterCommit", "LeaveUnknown", "LookAgain", "UnderETag", "NewName", "InsertOnce"}

var who = []string{"writer 1", "writer 2", "the sweep"}

const (
	sweeper = 2 // actors: two writers, and a sweep
	value   = 5 // the number of blobs; the entity begins with blob 0
	nothing = -1
	absent  = -2 // as the blob of an entity that does not exist
)

// The clock has ticks. A request arrives within a margin, a tick; and within a term, a writer's clock loses up to a tick.
const (
	tick = time.Second
	term = 6 * tick
	old  = 7 // all older blobs are alike
)

// expired reports whether a cleaner may remove a blob of an age in ticks.
func expired(age int8) bool {
	return lease.Expired(time.Unix(0, 0), time.Unix(0, 0).Add(time.Duration(age)*tick), term)
}

// mayCommit reports whether a writer may send its transaction some ticks after it has sent the blob.
func mayCommit(since int8) bool {
	return time.Duration(since-1)*tick < term-lease.Margin(term)
}

// verb is what a writer does with the entity.
type verb int8

const (
	replaces verb = iota + 1 // gives it a new blob
	keeps                    // changes something else
	deletes
	inserts // gives it a blob
)

type entity struct{ version, blob int8 }

type blob struct {
	there bool
	age   int8 // in ticks
}

type actor struct {
	messages.Actor
	seen  entity
	put   int8 // the new blob, or the one that the sweep examines
	since int8 // ticks since the request was sent that stored it
	gone  int8 // the blob that the writer deletes
	again bool // this is the writer's second attempt
}

// request stores or deletes a blob, or commits a change.
type request struct {
	commits, stores bool
	blob, change    int8
	seen            entity
	age             int8 // of a late commit
}

type world struct {
	messages.World[actor, [3]actor, request, *actor]
	entity entity
	blobs  [value]blob
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	verbs [2]verb // of the writers; the entity does not exist at first if the first one inserts it
}

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop = drop
	w := world{entity: entity{1, 0}}
	if w.blobs[0] = (blob{true, old}); c.verbs[0] == inserts {
		w.entity, w.blobs[0] = entity{1, absent}, blob{}
	}
	w.Crashes, w.Lates = 1, 1
	for i, v := range c.verbs {
		if v != 0 {
			w.Begin(i, reads, i)
		}
	}
	w.Begin(sweeper, lists, sweeper)
	m := messages.New(who, sweeps, lists, c.step, c.service)
	m.After, m.Wrong, m.Quiet = passes, wrong, quiet
	m.Show = func(w world) string { return fmt.Sprintf("entity %v blobs %v", w.entity, w.blobs) }
	return m.Walk(w)
}

// wrong returns the violation in a state.
func wrong(w world) string {
	if b := w.entity.blob; b >= 0 && !w.blobs[b].there {
		return fmt.Sprintf("the entity names blob %d, which does not exist", b)
	}
	return ""
}

// quiet reports whether no writer is at work, no request is late, and no blob is left that the entity does not name.
func quiet(w world) bool {
	for b := range w.blobs {
		if w.blobs[b].there && w.entity.blob != int8(b) {
			return false
		}
	}
	return !w.Waits && w.Actors[0].At == messages.Done && w.Actors[1].At == messages.Done && w.Actors[sweeper].At == lists
}

// passes emits that a tick passes; by then, a commit that was sent a tick ago has arrived, or never will.
func passes(w world, emit func(to world, who, what string)) {
	if w.Waits && w.Late.commits {
		if w.Late.age++; w.Late.age > 1 {
			return
		}
	}
	for b := range w.blobs {
		if w.blobs[b].there {
			w.blobs[b].age = min(w.blobs[b].age+1, old)
		}
	}
	for i := range sweeper {
		if p := &w.Actors[i]; p.At > reads {
			p.since = min(p.since+1, old)
		}
	}
	emit(w, "the clock", "ticks")
}

// worlds returns the worlds to walk through. For each rule there is a world that needs it.
func worlds() []World {
	at := models.At
	return []World{
		{at("a new blob", BlobFirst, InTerm, WaitTerm, ReadAfter, AfterCommit, LeaveUnknown, LookAgain), [2]verb{replaces}},
		{at("two new blobs"), [2]verb{replaces, replaces}},
		{at("a new blob, and another change", UnderETag, NewName), [2]verb{replaces, keeps}},
		{at("a new blob, and deleted"), [2]verb{replaces, deletes}},
		{at("deleted, and inserted"), [2]verb{deletes, inserts}},
		{at("inserted, and deleted", InsertOnce), [2]verb{inserts, deletes}},
	}
}

// The steps of an actor, in the order of the protocol.
const (
	lists messages.Step = messages.First + iota // the sweep
	asks
	sweeps
	reads // a writer
	uploads
	sends
	looks
	clears
)

type base = messages.Act[world, actor, [3]actor, request, *world, *actor]

type act struct {
	*World
	*base
}

// service applies a request, and reports whether its conditions were met.
func (c *World) service(w *world, q *request) bool {
	if q.commits {
		return c.commits(w, q)
	}
	b := &w.blobs[q.blob]
	if b.there == q.stores {
		return false
	}
	*b = blob{there: q.stores}
	return true
}

// commits makes a change, and reports whether the row's ETag is as read; an insert only needs that there is no row.
func (c *World) commits(w *world, q *request) bool {
	v := c.verbs[q.change]
	switch gone := w.entity.blob == absent; {
	case v == inserts && !gone, v != inserts && gone:
		return false
	case v != inserts && w.entity.version != q.seen.version && (v != keeps || c.Keeps(UnderETag)):
		return false
	}
	w.entity.version++
	switch v {
	case deletes:
		w.entity.blob = absent
	case keeps:
		w.entity.blob = q.seen.blob
	default:
		w.entity.blob = q.blob
	}
	return true
}

func (c *World) step(b *base) {
	if a := (&act{c, b}); a.I == sweeper {
		a.sweep(a.Actor())
	} else {
		a.writer(a.Actor())
	}
}

func (a *act) verb() verb { return a.verbs[a.I] }

// end ends an attempt of a writer. One that was refused, and has deleted its blob, makes a second attempt.
func (a *act) end(w *world, p *actor) {
	refused, last := p.gone == p.put && p.put >= 0, p.again
	if w.End(a.I); refused && !last {
		w.Begin(a.I, reads, a.I)
		w.Actors[a.I].again = true
	}
}

// writer makes the next request of a writer.
func (a *act) writer(p *actor) {
	switch p.At {
	case reads:
		a.Does("reads", a.reads)
	case uploads:
		a.Sends("stores a blob", request{stores: true, blob: p.put}, func(_ *world, p *actor, _ bool) { p.since, p.At = 0, sends }, a.end)
	case sends:
		a.sends(p)
	case looks:
		a.Does("reads the entity again", func(w *world, p *actor) {
			if p.gone, p.At = p.put, clears; w.entity.blob == p.put && a.Keeps(LookAgain) {
				p.gone = nothing
				a.end(w, p)
			}
		})
	case clears:
		a.Sends("deletes a blob", request{blob: p.gone}, func(w *world, p *actor, _ bool) { a.end(w, p) }, a.end)
	}
}

// reads plans the change.
func (a *act) reads(w *world, p *actor) {
	p.seen, p.put, p.gone, p.At = w.entity, nothing, nothing, sends
	if exists := w.entity.blob != absent; exists == (a.verb() == inserts) {
		a.end(w, p)
		return
	}
	if v := a.verb(); v == replaces || v == inserts {
		if p.put = int8(1 + 2*a.I); p.again && a.Keeps(NewName) {
			p.put++
		}
		if a.Keeps(BlobFirst) {
			p.At = uploads
		}
	}
	if a.removes(p) && !a.Keeps(AfterCommit) {
		p.gone, p.At = p.seen.blob, clears
	}
}

// removes reports whether the change makes the entity name its old blob no more.
func (a *act) removes(p *actor) bool { return a.verb() != keeps && p.seen.blob >= 0 }

// sends sends the transaction of a writer, unless it is too late.
func (a *act) sends(p *actor) {
	if p.put >= 0 && !mayCommit(p.since) && a.Keeps(InTerm) {
		a.Does("is too late", a.end)
		return
	}
	q := request{commits: true, blob: p.put, change: int8(a.I), seen: p.seen}
	a.Sends("commits", q, a.answered, func(w *world, p *actor) {
		switch {
		case a.verb() == inserts && !a.Keeps(InsertOnce): // send it again
		case p.put >= 0 && !a.Keeps(LeaveUnknown):
			p.gone, p.At = p.put, clears
		default:
			a.end(w, p)
		}
	})
	if a.From.Lates > 0 {
		a.Does("commits; a proxy sends it twice, and returns the second answer", func(w *world, p *actor) {
			w.Lates--
			a.service(w, &q)
			a.answered(w, p, a.service(w, &q))
		})
	}
}

// answered continues after the transaction: it deletes the blob that no row names now.
func (a *act) answered(w *world, p *actor, ok bool) {
	switch {
	case ok && a.removes(p):
		p.gone, p.At = p.seen.blob, clears
	case !ok && p.put >= 0:
		p.At = looks
	default:
		a.end(w, p)
	}
}

// sweep makes the next request of a sweep, which examines one blob after another.
func (a *act) sweep(p *actor) {
	switch p.At {
	case lists:
		for n, b := range a.From.blobs {
			if b.there && (expired(b.age) || !a.Keeps(WaitTerm)) {
				a.Does("lists a blob", func(w *world, p *actor) {
					if p.put, p.At = int8(n), asks; !a.Keeps(ReadAfter) {
						a.judges(w, p, p.seen)
					}
				})
			}
		}
	case asks:
		a.Does("reads the entity", func(w *world, p *actor) { a.judges(w, p, w.entity) })
	case sweeps:
		done := func(w *world, _ *actor) { a.sweepsOn(w) }
		a.Sends("deletes the blob", request{blob: p.put}, func(w *world, p *actor, _ bool) { done(w, p) }, done)
	}
}

// judges decides whether the sweep deletes a blob.
func (a *act) judges(w *world, p *actor, e entity) {
	if p.At = sweeps; e.blob == p.put {
		a.sweepsOn(w)
	}
}

// sweepsOn goes to the next blob. Without the rule ReadAfter, the sweep has read its entity by now.
func (a *act) sweepsOn(w *world) {
	if w.Begin(sweeper, lists, sweeper); !a.Keeps(ReadAfter) {
		w.Actors[sweeper].seen = w.entity
	}
}
