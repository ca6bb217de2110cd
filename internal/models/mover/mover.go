// Package mover is a model of how archive.Mover moves an entity X from a source S to a copy D in another partition, table or
// account, while users write at both ends. A worker, per delivery of the message:
//
//	read S                       gone, or another incarnation: gone
//	copy: {insert D, insert M}   one transaction. The mark M is named after the move and keeps the ETag of S that the copy was
//	                             made of. D and M carry the same write id w: while they do, no user has written to D.
//	                             Refused: look
//	commit: {delete S, insert T} one transaction under S's ETag. The trace T keeps w. Refused: look
//	delete M under its ETag, then T, then the message
//
//	look: read M. None: unmarked. Then read S: gone. M was made of S as it is: commit.
//	      Else read D: same w: {replace D, replace M} under both ETags, commit.
//	      Else read M again: changed: look. Else users wrote at both ends: poison, S and D are kept.
//	unmarked: read D. None: from the start. Then read S: gone.
//	      Else poison, S and D are kept; or, if the mover replaces what it finds and D is another entity:
//	      {replace D under its ETag, insert M}, commit
//	gone: read T, then M. No M: delete T. M with T's w: X was moved: delete M, then T.
//	      Another M: a user deleted S. Read D: same w: {delete D, delete M}. None, or another entity: delete M.
//	      Else a user changed D. Read M again: changed: gone. Else poison, D is kept.
//
// Whoever poisons puts the entry on the poison queue first, then deletes M under its ETag, and then the message. So a message
// that is put back once a user has decided begins again.
//
// The walk covers all interleavings of two messages about X, two workers, messages that reappear at any moment (any number of
// crashes and slow holders), a request that arrives late, a poisoned message that is put back, and users who change both ends.
// Contents are sets of updates, so that a lost update shows. ETags are flags "nothing was written since I read it".
package mover

// Case is the size of a world, and the rules that it drops.
type Case struct {
	Messages, SourceChanges, CopyChanges, Lates, Requeues byte
	Replace                                               bool // the mover replaces another entity at the destination
	Drop                                                  Rules
}

// Rules are rules of the protocol; one that is true is dropped, and each walk then finds why the rule is there.
type Rules struct {
	Mark              bool // there is no mark: a redelivery writes over its copy, or inserts it again
	MarkInTransaction bool // M is written after D, in a request of its own
	SameWrite         bool // a copy is replaced although a user has changed it
	CopyETag          bool // the copy is replaced without its ETag
	SourceETag        bool // S is deleted without its ETag
	MarkBeforeSource  bool // look reads S before M
	Trace             bool // there is no T: S gone and M there means that X was moved
	TraceWithdraws    bool // there is no T: S gone and M there means that a user deleted X
	TraceWrite        bool // T does not keep w: any M beside a T was moved
	MarkBeforeTrace   bool // T is deleted before M
	MarkAgain         bool // whoever poisons does not read M again
	PoisonFirst       bool // whoever poisons deletes M first
	Incarnation       bool // the incarnation of S is not compared
	Lease             bool // a message reappears while its holder still sends
	CleanUp           bool // M and T are not deleted
}

const (
	none  byte = iota
	x          // at S: X; at D: a copy of X
	other      // at S: another incarnation; at D: another entity
)

// worker is a worker that handles a message. What it has read is kept as whether that is still so.
type worker struct {
	at       byte
	msg      byte
	content  byte // of S as read
	sSame    bool // S as read is S now
	mSame    bool // M as read is M now
	mOf      bool // the ETag of S in M as read is that of S now
	mW       bool // the w in M as read is that of D now
	dSame    bool // D as read is D now
	tSaw     bool // T was there
	foreign  bool // D as read is another entity
	hasMark  bool
	readOnce bool // S was read before M, by a rule that is dropped
	gone     bool // S is gone: decided by gone, not by look
}

// request is one that is still under way although its sender has given up.
type request struct {
	what                     byte
	msg                      byte
	content                  byte
	sSame, mSame, mOf, dSame bool
}

const (
	noRequest byte = iota
	sendsCopy
	sendsOver
	sendsFirstOver
	sendsCommit
	sendsDropMark
	sendsDropTrace
	sendsWithdraw
)

const (
	invisible byte = 1
	visible   byte = 2
)

type world struct {
	s, d                        byte
	sContent, dContent          byte
	m, mOf, mW                  bool // M is there; made of S as it is now; has the same w as D
	t, tW                       bool // T is there; its w is M's
	msg                         [2]byte
	entry                       [2]bool // on the poison queue
	p                           [2]worker
	late                        request
	sOps, dOps, lates, requeues byte

	// What users were told.
	updates, seen  byte // all updates of X; those in what users deleted
	sDel, dDel     bool // users deleted X, its copy
	sWrote, dWrote bool // users wrote at S, at D
	dOther         bool // users inserted another entity at D
	poison         bool
}

func (w *world) each(f func(*worker)) {
	for i := range w.p {
		f(&w.p[i])
	}
}

func (w *world) wroteS() {
	w.each(func(p *worker) { p.sSame, p.mOf = false, false })
	w.late.sSame, w.late.mOf, w.mOf = false, false, false
}

func (w *world) wroteD() {
	w.each(func(p *worker) { p.dSame, p.mW = false, false })
	w.late.dSame, w.mW = false, false
}

// wroteM also says that M has another w than anybody has seen.
func (w *world) wroteM() {
	w.each(func(p *worker) { p.mSame = false })
	w.late.mSame, w.tW = false, false
}

// putCopy writes D and its mark, both or none.
func (c *Case) putCopy(w *world, content byte, ofS bool) {
	w.wroteD()
	w.d, w.dContent = x, content
	if !c.Drop.MarkInTransaction && !c.Drop.Mark {
		w.wroteM()
		w.m, w.mOf, w.mW = true, ofS, true
	}
}

func (c *Case) copy(w *world, content byte, ofS bool) bool {
	if w.d != none || w.m {
		return false
	}
	c.putCopy(w, content, ofS)
	return true
}

// firstOver replaces another entity at D.
func (c *Case) firstOver(w *world, content byte, ofS, dSame bool) bool {
	if w.m || !dSame {
		return false
	}
	c.putCopy(w, content, ofS)
	return true
}

// over replaces an earlier copy.
func (c *Case) over(w *world, content byte, ofS, dSame, mSame bool) bool {
	if !(dSame || c.Drop.CopyETag && w.d != none) || !mSame && !c.Drop.Mark {
		return false
	}
	w.wroteD()
	w.d, w.dContent = x, content
	if !c.Drop.Mark {
		w.wroteM()
		w.mOf, w.mW = ofS, true
	}
	return true
}

// commit deletes S. isMark says that the w that it writes into T is M's now.
func (c *Case) commit(w *world, sSame, isMark bool) bool {
	if !sSame && !(c.Drop.SourceETag && w.s != none) {
		return false
	}
	w.s, w.sContent = none, 0
	w.wroteS()
	if !c.Drop.Mark && !c.Drop.Trace && !c.Drop.TraceWithdraws {
		w.t, w.tW = true, w.m && isMark
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

// dropTrace needs no condition: T has the name of the move, and a move has one commit.
func (w *world) dropTrace() { w.t, w.tW = false, false }

func (w *world) withdraw(dSame, mSame bool) bool {
	if !dSame || !mSame || !w.m {
		return false
	}
	w.wroteD()
	w.d, w.dContent = none, 0
	return w.dropMark(true)
}

// arrives carries out a late request.
func (c *Case) arrives(w *world) {
	f := w.late
	w.late = request{}
	switch f.what {
	case sendsCopy:
		c.copy(w, f.content, f.sSame)
	case sendsFirstOver:
		c.firstOver(w, f.content, f.sSame, f.dSame)
	case sendsOver:
		c.over(w, f.content, f.sSame, f.dSame, f.mSame)
	case sendsCommit:
		c.commit(w, f.sSame, f.mSame)
	case sendsDropMark:
		w.dropMark(f.mSame)
	case sendsDropTrace:
		w.dropTrace()
	case sendsWithdraw:
		w.withdraw(f.dSame, f.mSame)
	}
}
