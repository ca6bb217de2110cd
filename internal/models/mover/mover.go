// Package mover is a model of the protocol by which archive.Mover moves an entity X from a source S to a copy
// D in another partition, table or account, while users write at both ends. A worker, per delivery of the
// message:
//
//	read S                       gone, or another incarnation: gone
//	copy: {insert D, insert M}   one transaction. The mark M is named after the move and keeps the ETag of S that the copy was
//	                             made of. D and M carry the same write id w: while they do, no user has written to D.
//	                             Refused: recheck
//	commit: {delete S, insert T} one transaction under S's ETag. The trace T keeps w. Refused: recheck
//	delete M under its ETag, then T, then the message
//
//	recheck: read M. None: unmarked. Then read S: gone. M was made of S as it is: commit.
//	      Else read D: same w: {replace D, replace M} under both ETags, commit.
//	      Else read M again: changed: recheck. Else users wrote at both ends: poison, S and D are kept.
//	unmarked: read D. None: from the start. Then read S: gone.
//	      Else poison, S and D are kept; or, if the mover replaces what it finds and D is another entity:
//	      {replace D under its ETag, insert M}, commit
//	gone: read T, then M. No M: delete T. M with T's w: X was moved: delete M, then T.
//	      Another M: a user deleted S. Read D: same w: {delete D, delete M}. None, or another entity: delete M.
//	      Else a user changed D. Read M again: changed: gone. Else poison, D is kept.
//
// To poison is to put the entry on the poison queue, then delete M under its ETag, and then the message. So a message
// that is requeued after a user has decided starts over.
//
// The walk covers all interleavings of two messages about X, two workers, messages that reappear at any
// moment (any number of crashes and slow holders), a request that arrives late, a poisoned message that is
// put back, and users who change both ends. The content of an entity is the set of updates that it has, so
// that the model finds a lost update. An ETag is a flag that says whether the row is unchanged since it was
// read.
package mover

import (
	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
	"github.com/tablepatterns/tablepatterns/internal/models/moves"
)

// The rules of the protocol, each with what a walk that drops it does instead.
const (
	Mark              models.Rules = 1 << iota // there is no mark: a redelivery overwrites its copy, or inserts it again
	MarkInTransaction                          // M is written after D, in a request of its own
	SameWrite                                  // a copy is replaced although a user has changed it
	CopyETag                                   // the copy is replaced without its ETag
	SourceETag                                 // S is deleted without its ETag
	MarkBeforeSource                           // recheck reads S before M
	Trace                                      // there is no T: if S is gone and M exists, X counts as moved
	TraceWithdraws                             // there is no T: if S is gone and M exists, X counts as deleted by a user
	TraceWrite                                 // T does not keep w: if there are a T and an M, X counts as moved even if M has another write id
	MarkBeforeTrace                            // T is deleted before M
	MarkAgain                                  // poison does not read M again
	PoisonFirst                                // poison deletes M before it puts the entry on the poison queue
	Incarnation                                // the incarnation of S is not compared
	Lease                                      // a message reappears while a request of its holder is under way
	CleanUp                                    // M and T are not deleted
)

var names = []string{"Mark", "MarkInTransaction", "SameWrite", "CopyETag", "SourceETag", "MarkBeforeSource", "Trace", "TraceWithdraws",
	"TraceWrite", "MarkBeforeTrace", "MarkAgain", "PoisonFirst", "Incarnation", "Lease", "CleanUp"}

var who = []string{"worker 1", "worker 2"}

// worker is a worker that handles a message. It stores its reads as flags that say whether the rows are still
// unchanged.
type worker struct {
	messages.Actor
	content  byte // the updates in S as read
	sSame    bool // S has not changed since it was read
	mSame    bool // M has not changed since it was read
	mOf      bool // the ETag of S in M as read is the current one
	mW       bool // the w in M as read is the one in D now
	dSame    bool // D has not changed since it was read
	tSaw     bool // T existed when it was read
	foreign  bool // D as read is another entity
	hasMark  bool
	readOnce bool // S was read before M, because the rule MarkBeforeSource is dropped
	gone     bool // the worker is in step gone, not in recheck
}

// request is a write, with the part of what its sender has read that is its content or condition.
type request struct {
	what kind
	from worker
}

type kind byte

const (
	copyX kind = iota + 1
	over
	firstOver
	commit
	dropMark
	dropTrace
	withdraw
)

type world struct {
	messages.World[worker, [2]worker, request, *worker]
	moves.Ends
	m, mOf, mW bool // M exists; was made of the current S; has the same w as D
	t, tW      bool // T exists; its w is the one in M
	sWrote     bool // users wrote at S
	dOther     bool // users inserted another entity at D
}

func (w *world) each(f func(*worker)) {
	for i := range w.Actors {
		f(&w.Actors[i])
	}
	f(&w.Late.from)
}

func (w *world) wroteS() {
	w.each(func(p *worker) { p.sSame, p.mOf = false, false })
	w.mOf = false
}

func (w *world) wroteD() {
	w.each(func(p *worker) { p.dSame, p.mW = false, false })
	w.mW = false
}

// wroteM records a change of M, whose new w no worker has read and T does not have.
func (w *world) wroteM() {
	w.each(func(p *worker) { p.mSame = false })
	w.tW = false
}

// putCopy writes D and its mark in one transaction.
func (c *World) putCopy(w *world, q worker) {
	w.wroteD()
	w.D, w.DContent = moves.X, q.content
	if !c.Drops(MarkInTransaction) && !c.Drops(Mark) {
		w.wroteM()
		w.m, w.mOf, w.mW = true, q.sSame, true
	}
}

// service applies a write, and reports whether its conditions were met.
func (c *World) service(w *world, r *request) bool {
	q := r.from
	switch r.what {
	case copyX:
		if w.D != moves.None || w.m {
			return false
		}
		c.putCopy(w, q)
	case firstOver: // replaces another entity at D
		if w.m || !q.dSame {
			return false
		}
		c.putCopy(w, q)
	case over: // replaces an earlier copy
		if !(q.dSame || c.Drops(CopyETag) && w.D != moves.None) || !q.mSame && !c.Drops(Mark) {
			return false
		}
		w.wroteD()
		w.D, w.DContent = moves.X, q.content
		if !c.Drops(Mark) {
			w.wroteM()
			w.mOf, w.mW = q.sSame, true
		}
	case commit: // deletes S and writes T; M as read says whether the w in T is the one in M
		if !q.sSame && !(c.Drops(SourceETag) && w.S != moves.None) {
			return false
		}
		w.S, w.SContent = moves.None, 0
		w.wroteS()
		if !c.Drops(Mark) && !c.Drops(Trace) && !c.Drops(TraceWithdraws) {
			w.t, w.tW = true, w.m && q.mSame
		}
	case dropMark:
		return w.dropMark(q.mSame)
	case dropTrace: // needs no condition: T has the name of the move, and a move is committed only once
		w.t, w.tW = false, false
	case withdraw:
		if !q.dSame || !q.mSame || !w.m {
			return false
		}
		w.wroteD()
		w.D, w.DContent = moves.None, 0
		return w.dropMark(true)
	}
	return true
}

func (w *world) dropMark(mSame bool) bool {
	if !w.m || !mSame {
		return false
	}
	w.wroteM()
	w.m, w.mOf, w.mW = false, false, false
	return true
}
