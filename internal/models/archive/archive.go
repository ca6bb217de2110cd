// Package archive is a model of the protocol by which archive.Mover moves an entity X from a source S in a
// table to a blob D, while users change both. No transaction contains a blob and a row, so the protocol
// differs from that of package mover: the record R is a row beside S, and one transaction deletes S and R.
// For each delivery of the message, a worker does the following:
//
//	read S                             gone, or another incarnation: gone
//	put D, pending, if D does not exist  a pending blob names the move and has no content. Refused: recheck
//	insert R                           R keeps the ETag of S, the ETag of D as it is (its base), and the id w of the write to come
//	                                   Refused: recheck
//	fill D under its base              the blob gets the content, w, and a hash of the content. Refused: recheck
//	commit: {delete S, delete R}       one transaction under both ETags. Refused: recheck
//	delete the message
//
//	recheck: read R. None: unmarked. Then read S: gone. Then read D:
//	      the base: R was made of S as it is: fill, commit. Else replace R by one of S as it is, fill, commit.
//	      has w: R was made of S as it is: commit. Else, if nobody has changed D: replace R with D as its base, fill, commit.
//	      another write of this move, unchanged: replace R with D as its base, fill, commit: an older fill came late.
//	      Else (a user has changed or deleted D): read S again: gone. Else poison; S and D stay.
//	unmarked: read D. None: start over. Not pending: read R again: it exists: recheck. Then read S: gone.
//	      D is pending for this move: insert R with D as its base. Else poison, and S and D stay; or, with Options.Replace: insert R with D as its base.
//	gone: read R. None: X was moved, or there never was a record: delete D if it is pending for this move.
//	      R exists, so a user deleted S. Read D. None: delete R. D is the base, or has w and nobody has changed it: delete D, then R.
//	      Another write of this move: if R was inserted, it arrived after the move: keep D, delete R; if R was replaced, as if
//	      D had w. Else a user has changed D: poison; D stays.
//
// To poison is to put the entry on the poison queue, then delete R under its ETag, and then the message.
//
// The pending blob is needed because otherwise, if R exists and D does not, a worker could not know whether an earlier worker
// crashed before it filled D, or a user has deleted D since.
//
// With Options.Replace, the base can be another blob. gone deletes that blob, too: as long as D is the base, a fill of another worker
// can still arrive, and without R no worker can find out afterwards that X was not moved. No request deletes R under a condition on D.
//
// The walk covers the same interleavings as that of package mover. A user who updates a blob may keep or
// remove its metadata, and may delete a pending blob. With Options.Replace and without R, the
// code replaces a copy that has lost its metadata; the model poisons the message.
package archive

import (
	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
	"github.com/tablepatterns/tablepatterns/internal/models/moves"
)

// The rules of the protocol, each with what a walk that drops it does instead.
const (
	Pending            models.Rules = 1 << iota // there is no pending blob: R is inserted first, and D filled if it does not exist
	RecordBeforeFill                            // D is filled before R is inserted
	Base                                        // D is filled without its ETag
	Unchanged                                   // a blob that has w counts as unchanged
	SourceETag                                  // S is deleted without its ETag
	RecordInCommit                              // R is deleted after S, in a request of its own
	RecordBeforeSource                          // recheck reads S before R
	First                                       // R does not say whether it was inserted or replaced another R
	SourceAgain                                 // recheck does not read S again before it poisons
	UnmarkedAgain                               // unmarked does not read R again
	PoisonFirst                                 // poison deletes R before it puts the entry on the poison queue
	CopyETag                                    // D is deleted without its ETag
	Replaced                                    // gone deletes R, but not a D that was to be replaced
	CleanPending                                // gone does not delete a pending blob without R
	Incarnation                                 // the incarnation of S is not compared
	Lease                                       // a message reappears while a request of its holder is under way
)

var names = []string{"Pending", "RecordBeforeFill", "Base", "Unchanged", "SourceETag", "RecordInCommit", "RecordBeforeSource", "First",
	"SourceAgain", "UnmarkedAgain", "PoisonFirst", "CopyETag", "Replaced", "CleanPending", "Incarnation", "Lease"}

var who = []string{"worker 1", "worker 2"}

const pending = moves.Other + 1 // at D: the move's own blob without content

// record is R, or R as a worker has read it. In place of ETags and ids it stores flags that say whether these
// are still current.
type record struct {
	there bool
	of    bool // the ETag of S in it is the current one
	base  bool // the base in it is the current ETag of D
	w     bool // the w in it is the one in D now
	first bool // true if R was inserted, false if it replaced another R
}

type worker struct {
	messages.Actor
	content byte // the updates that S had when it was read
	sSame   bool // S has not changed since it was read
	dSame   bool // D has not changed since it was read or written
	rSame   bool // R has not changed since it was read into r
	r       record
	foreign bool // D as read has no R, and this move must not write it
	gone    bool // S is gone
	early   bool // S was read before R, because the rule RecordBeforeSource is dropped
}

// request is a write, with what its sender has read.
type request struct {
	what kind
	from worker
}

type kind byte

const (
	putPending kind = iota + 1
	insertRecord
	replaceRecord
	fill
	commit
	deleteCopy
	deleteRecord
)

type world struct {
	messages.World[worker, [2]worker, request, *worker]
	moves.Ends
	dKept    bool // D has the metadata of a write of this move
	dChanged bool // a user has changed D since that write
	r        record
}

func (w *world) each(f func(*worker)) {
	for i := range w.Actors {
		f(&w.Actors[i])
	}
	f(&w.Late.from)
}

func (w *world) wroteS() {
	w.each(func(p *worker) { p.sSame, p.r.of = false, false })
	w.r.of = false
}

func (w *world) wroteD() {
	w.each(func(p *worker) { p.dSame, p.r.base, p.r.w = false, false, false })
	w.r.base, w.r.w = false, false
}

func (w *world) putR(r record) {
	w.each(func(p *worker) { p.rSame = false })
	w.r = r
}

func (w *world) putPending() bool {
	if w.D != moves.None {
		return false
	}
	w.wroteD()
	w.D, w.DContent, w.dKept, w.dChanged = pending, 0, true, false
	return true
}

func (w *world) insertRecord(q worker) bool {
	if w.r.there {
		return false
	}
	w.putR(record{there: true, of: q.sSame, base: q.dSame, first: true})
	return true
}

func (w *world) replaceRecord(q worker) bool {
	if !q.rSame {
		return false
	}
	w.putR(record{there: true, of: q.sSame, base: q.dSame})
	return true
}

// fill writes the content of D. The w of the content is the w that the worker has read in R.
func (c *World) fill(w *world, q worker) bool {
	switch {
	case c.Drops(Pending) && q.r.there && !q.r.base: // the condition that D does not exist
		if w.D != moves.None {
			return false
		}
	case c.Drops(RecordBeforeFill) && !q.r.there:
		if w.D != pending {
			return false
		}
	case !q.r.base && !(c.Drops(Base) && w.D != moves.None):
		return false
	}
	var same [len(w.Actors) + 1]bool
	n := 0
	w.each(func(p *worker) { same[n] = p.rSame; n++ })
	w.wroteD()
	w.D, w.DContent, w.dKept, w.dChanged = moves.X, q.content, true, false
	if !q.rSame {
		return true
	}
	w.r.w = true
	n = 0
	w.each(func(p *worker) { p.r.w = same[n]; n++ })
	return true
}

func (c *World) commit(w *world, q worker) bool {
	if !q.sSame && !(c.Drops(SourceETag) && w.S != moves.None) || !q.rSame && !c.Drops(RecordInCommit) {
		return false
	}
	w.S, w.SContent = moves.None, 0
	w.wroteS()
	if !c.Drops(RecordInCommit) {
		w.putR(record{})
	}
	return true
}

func (c *World) deleteCopy(w *world, q worker) bool {
	if w.D == moves.None || !q.dSame && !c.Drops(CopyETag) {
		return false
	}
	w.removeD()
	return true
}

func (w *world) deleteRecord(q worker) bool {
	if !w.r.there || !q.rSame {
		return false
	}
	w.putR(record{})
	return true
}

// service applies a write, and reports whether its conditions were met.
func (c *World) service(w *world, r *request) bool {
	switch r.what {
	case putPending:
		return w.putPending()
	case insertRecord:
		return w.insertRecord(r.from)
	case replaceRecord:
		return w.replaceRecord(r.from)
	case fill:
		return c.fill(w, r.from)
	case commit:
		return c.commit(w, r.from)
	case deleteCopy:
		return c.deleteCopy(w, r.from)
	}
	return w.deleteRecord(r.from)
}
