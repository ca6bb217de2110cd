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

// Case is the size of a model, and the rules that it drops.
type Case struct {
	Messages, SourceChanges, CopyChanges, Lates, Requeues byte
	Replace                                               bool // the mover replaces another entity at the destination
	Drop                                                  Rules
}

// Rules are the rules of the protocol. A rule that is true is dropped; the walk must then find a violation.
type Rules struct {
	Mark              bool // there is no mark: a redelivery overwrites its copy, or inserts it again
	MarkInTransaction bool // M is written after D, in a request of its own
	SameWrite         bool // a copy is replaced although a user has changed it
	CopyETag          bool // the copy is replaced without its ETag
	SourceETag        bool // S is deleted without its ETag
	MarkBeforeSource  bool // recheck reads S before M
	Trace             bool // there is no T: if S is gone and M exists, X counts as moved
	TraceWithdraws    bool // there is no T: if S is gone and M exists, X counts as deleted by a user
	TraceWrite        bool // T does not keep w: if there are a T and an M, X counts as moved even if M has another write id
	MarkBeforeTrace   bool // T is deleted before M
	MarkAgain         bool // poison does not read M again
	PoisonFirst       bool // poison deletes M before it puts the entry on the poison queue
	Incarnation       bool // the incarnation of S is not compared
	Lease             bool // a message reappears while a request of its holder is under way
	CleanUp           bool // M and T are not deleted
}

const (
	none  byte = iota
	x          // at S: X; at D: a copy of X
	other      // at S: another incarnation; at D: another entity
)

// worker is a worker that handles a message. It stores its reads as flags that say whether the rows are still
// unchanged.
type worker struct {
	at       byte
	msg      byte
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

// request is a request under way whose sender has given up.
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
	m, mOf, mW                  bool // M exists; was made of the current S; has the same w as D
	t, tW                       bool // T exists; its w is the one in M
	msg                         [2]byte
	entry                       [2]bool // the message is on the poison queue
	p                           [2]worker
	late                        request
	sOps, dOps, lates, requeues byte

	// The changes that users were told have succeeded.
	updates, seen  byte // all updates of X; the updates in the entities that users deleted
	sDel, dDel     bool // users deleted X; users deleted its copy
	sWrote, dWrote bool // users wrote at S; at D
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

// wroteM records a change of M, whose new w no worker has read and T does not have.
func (w *world) wroteM() {
	w.each(func(p *worker) { p.mSame = false })
	w.late.mSame, w.tW = false, false
}

// putCopy writes D and its mark in one transaction.
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

// commit deletes S and writes T. isMark says that the w in T is the one in M.
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

// dropTrace deletes T. It needs no condition: T has the name of the move, and a move is committed only once.
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
