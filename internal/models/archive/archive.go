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
//	      R exists, so a user deleted S. Read D. None: delete R. D is the base, or has w and nobody has changed it: delete D, unless
//	      it was another blob before, then R. Another write of this move: if R was inserted, it arrived after the move: keep D,
//	      delete R; if R was replaced, as if D had w. Else a user has changed D: poison; D stays.
//
// To poison is to put the entry on the poison queue, then delete R under its ETag, and then the message.
//
// The pending blob is needed because otherwise, if R exists and D does not, a worker could not know whether an earlier worker
// crashed before it filled D, or a user has deleted D since.
//
// The walk covers the same interleavings as that of package mover. A user who updates a blob may keep or
// remove its metadata, and may delete a pending blob.
package archive

// Case is the size of a model, and the rules that it drops.
type Case struct {
	Messages, SourceChanges, CopyChanges, Lates, Requeues byte
	Replace                                               bool // the mover replaces another blob at the destination
	Drop                                                  Rules
}

// Rules are the rules of the protocol. A rule that is true is dropped; the walk must then find a violation.
type Rules struct {
	Pending            bool // there is no pending blob: R is inserted first, and D filled if it does not exist
	RecordBeforeFill   bool // D is filled before R is inserted
	Base               bool // D is filled without its ETag
	Unchanged          bool // a blob that has w counts as unchanged
	SourceETag         bool // S is deleted without its ETag
	RecordInCommit     bool // R is deleted after S, in a request of its own
	RecordBeforeSource bool // recheck reads S before R
	First              bool // R does not say whether it was inserted or replaced another R
	SourceAgain        bool // recheck does not read S again before it poisons
	UnmarkedAgain      bool // unmarked does not read R again
	PoisonFirst        bool // poison deletes R before it puts the entry on the poison queue
	CopyETag           bool // D is deleted without its ETag
	CleanPending       bool // gone does not delete a pending blob without R
	Incarnation        bool // the incarnation of S is not compared
	Lease              bool // a message reappears while a request of its holder is under way
}

const (
	none    byte = iota
	x            // at S: X; at D: a copy of X
	other        // at S: another incarnation; at D: another blob
	pending      // at D: the move's own blob without content
)

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
	at      byte
	msg     byte
	content byte // the updates that S had when it was read
	sSame   bool // S has not changed since it was read
	dSame   bool // D has not changed since it was read or written
	rSame   bool // R has not changed since it was read into r
	r       record
	foreign bool // D as read does not belong to this move
	gone    bool // S is gone
	early   bool // S was read before R, because the rule RecordBeforeSource is dropped
}

// request is a request under way whose sender has given up.
type request struct {
	what byte
	from worker
}

const (
	noRequest byte = iota
	sendsPending
	sendsRecord
	sendsReplacement
	sendsFill
	sendsCommit
	sendsDeleteCopy
	sendsDeleteRecord
)

const (
	invisible byte = 1
	visible   byte = 2
)

type world struct {
	s, d                        byte
	sContent, dContent          byte
	dKept                       bool // D has the metadata of a write of this move
	dChanged                    bool // a user has changed D since that write
	r                           record
	msg                         [2]byte
	entry                       [2]bool // the message is on the poison queue
	p                           [2]worker
	late                        request
	sOps, dOps, lates, requeues byte

	// The changes that users were told have succeeded.
	updates, seen byte // all updates of X; the updates that were in the entities and blobs that users deleted
	sDel, dDel    bool // users deleted X; users deleted its copy
	dWrote        bool // users changed D
	poison        bool
}

func (w *world) each(f func(*worker)) {
	f(&w.p[0])
	f(&w.p[1])
	f(&w.late.from)
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
	if w.d != none {
		return false
	}
	w.wroteD()
	w.d, w.dContent, w.dKept, w.dChanged = pending, 0, true, false
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
func (c *Case) fill(w *world, q worker) bool {
	switch {
	case c.Drop.Pending && q.r.there && !q.r.base: // the condition that D does not exist
		if w.d != none {
			return false
		}
	case c.Drop.RecordBeforeFill && !q.r.there:
		if w.d != pending {
			return false
		}
	case !q.r.base && !(c.Drop.Base && w.d != none):
		return false
	}
	var same [3]bool
	n := 0
	w.each(func(p *worker) { same[n] = p.rSame; n++ })
	w.wroteD()
	w.d, w.dContent, w.dKept, w.dChanged = x, q.content, true, false
	if !q.rSame {
		return true
	}
	w.r.w = true
	n = 0
	w.each(func(p *worker) { p.r.w = same[n]; n++ })
	return true
}

func (c *Case) commit(w *world, q worker) bool {
	if !q.sSame && !(c.Drop.SourceETag && w.s != none) || !q.rSame && !c.Drop.RecordInCommit {
		return false
	}
	w.s, w.sContent = none, 0
	w.wroteS()
	if !c.Drop.RecordInCommit {
		w.putR(record{})
	}
	return true
}

func (c *Case) deleteCopy(w *world, q worker) bool {
	if w.d == none || !q.dSame && !c.Drop.CopyETag {
		return false
	}
	w.wroteD()
	w.d, w.dContent, w.dKept, w.dChanged = none, 0, false, false
	return true
}

func (w *world) deleteRecord(q worker) bool {
	if !w.r.there || !q.rSame {
		return false
	}
	w.putR(record{})
	return true
}

// arrives applies a late request.
func (c *Case) arrives(w *world) {
	f := w.late
	switch f.what {
	case sendsPending:
		w.putPending()
	case sendsRecord:
		w.insertRecord(f.from)
	case sendsReplacement:
		w.replaceRecord(f.from)
	case sendsFill:
		c.fill(w, f.from)
	case sendsCommit:
		c.commit(w, f.from)
	case sendsDeleteCopy:
		c.deleteCopy(w, f.from)
	case sendsDeleteRecord:
		w.deleteRecord(f.from)
	}
	w.late = request{}
}
