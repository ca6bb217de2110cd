package mover

import (
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
	"github.com/tablepatterns/tablepatterns/internal/models/moves"
)

// The steps of a worker.
const (
	readsSource messages.Step = messages.First + iota
	copies
	marks // used only if the rule MarkInTransaction is dropped
	commits
	dropsMark
	dropsTrace
	finishes
	rechecksMark
	rechecksSource
	rechecksCopy
	overwrites
	bothChanged
	poisons
	dropsMarkAfter
	unmarkedCopy
	unmarkedSource
	firstOverwrites
	goneTrace
	goneMark
	goneCopy
	goneDrops
	withdraws
)

type base = messages.Act[world, worker, [2]worker, request, *world, *worker]

type act struct {
	*World
	*base
}

func (c *World) step(b *base) {
	a := &act{c, b}
	switch p := a.Actor(); {
	case p.At <= finishes:
		a.moves(p)
	case p.At <= firstOverwrites:
		a.rechecks(p)
	default:
		a.isGone(p)
	}
}

// sends emits the states that a write leads to. If no answer comes, the worker gives up.
func (a *act) sends(kind kind, what string, f func(w *world, q *worker, ok bool)) {
	p := a.Actor()
	q := request{kind, worker{content: p.content, sSame: p.sSame, mSame: p.mSame, dSame: p.dSame}}
	a.Sends(what, q, f, func(w *world, _ *worker) { w.End(a.I) })
}

// to sets the next step and discards everything that the worker has read.
func (q *worker) to(at messages.Step) {
	*q = worker{Actor: messages.Actor{At: at, Message: q.Message, Worker: true}}
}

func (c *World) isX(w *world) bool { return w.IsX(c.Keeps(Incarnation)) }

// moves emits the steps of a move that no request interferes with.
func (a *act) moves(p *worker) {
	switch p.At {
	case readsSource:
		a.Does("reads S", func(y *world, q *worker) {
			if !a.isX(y) {
				q.to(goneTrace)
				return
			}
			q.content, q.sSame, q.At = y.SContent, true, copies
		})
	case copies:
		a.sends(copyX, "inserts D and M", func(_ *world, q *worker, ok bool) {
			if ok {
				a.copied(q)
				return
			}
			content, same := q.content, q.sSame
			q.to(rechecksMark)
			if a.Drops(MarkBeforeSource) {
				q.content, q.sSame, q.readOnce = content, same, true
			}
			if a.Drops(Mark) {
				q.At = rechecksSource
			}
		})
	case marks:
		a.Does("inserts M", func(y *world, q *worker) {
			if y.m {
				q.to(rechecksMark)
				return
			}
			same := q.mW
			y.wroteM()
			y.m, y.mOf, y.mW = true, q.sSame, same
			q.hasMark, q.mSame, q.At = true, true, commits
		})
	case commits:
		a.sends(commit, "deletes S and inserts T", func(_ *world, q *worker, ok bool) {
			if !ok {
				q.to(rechecksMark)
				if a.Drops(Mark) {
					q.At = readsSource
				}
				return
			}
			q.sSame = false
			switch {
			case a.Drops(Mark) || a.Drops(CleanUp):
				q.to(finishes)
			case a.Drops(MarkBeforeTrace):
				q.At = dropsTrace
			default:
				q.At = dropsMark
			}
		})
	default:
		a.cleansUp(p)
	}
}

// copied sets the worker's state after it has written the copy, with its mark.
func (q *worker) copied(mark bool) {
	q.content, q.dSame, q.At = 0, false, commits
	q.hasMark, q.mSame = mark, mark
}

// copied sets the worker's state after it has written the first copy.
func (a *act) copied(q *worker) {
	if q.copied(!a.Drops(Mark)); !a.Drops(Mark) && a.Drops(MarkInTransaction) {
		q.At, q.hasMark, q.mSame, q.mW = marks, false, false, true
	}
}

// cleansUp deletes M, T and the message.
func (a *act) cleansUp(p *worker) {
	switch p.At {
	case dropsMark:
		a.sends(dropMark, "deletes M", func(_ *world, q *worker, _ bool) {
			q.to(dropsTrace)
			if a.Drops(MarkBeforeTrace) {
				q.to(finishes)
			}
		})
	case dropsTrace:
		a.sends(dropTrace, "deletes T", func(_ *world, q *worker, _ bool) {
			if a.Drops(MarkBeforeTrace) && q.mSame {
				q.At = dropsMark
				return
			}
			q.to(finishes)
		})
	case finishes:
		a.Does("deletes its message", func(y *world, _ *worker) {
			y.Finish(a.I)
		})
	}
}

// rechecks emits the steps of a worker after a refusal.
func (a *act) rechecks(p *worker) {
	switch p.At {
	case rechecksMark:
		a.Does("reads M", func(y *world, q *worker) {
			if !y.m {
				q.to(unmarkedCopy)
				return
			}
			q.mSame, q.mOf, q.mW, q.hasMark, q.At = true, y.mOf, y.mW, true, rechecksSource
			if q.readOnce {
				q.readOnce = false
				q.decides(q.sSame && y.mOf)
			}
		})
	case rechecksSource:
		a.Does("reads S again", func(y *world, q *worker) {
			if !a.isX(y) {
				q.to(goneTrace)
				return
			}
			q.content, q.sSame = y.SContent, true
			if a.Drops(Mark) { // an earlier version of the mover had no mark
				q.At = copies
				if y.D == moves.X {
					q.At, q.dSame = overwrites, true
				}
				return
			}
			q.decides(q.mOf)
		})
	case rechecksCopy:
		a.Does("reads D", func(y *world, q *worker) {
			q.At = bothChanged
			if y.D == moves.X && (q.mW || a.Drops(SameWrite)) {
				q.dSame, q.At = true, overwrites
			}
		})
	case overwrites:
		a.sends(over, "replaces D and M", func(_ *world, q *worker, ok bool) {
			if !ok {
				q.to(rechecksMark)
				if a.Drops(Mark) {
					q.At = rechecksSource
				}
				return
			}
			q.copied(!a.Drops(Mark))
		})
	default:
		a.refuses(p)
	}
}

// decides sets the next step, which depends on whether M was made of the current S.
func (q *worker) decides(madeOfS bool) {
	q.At = rechecksCopy
	if madeOfS {
		q.At = commits
	}
}

// refuses emits the steps that lead to poison, or to the replacement of another entity.
func (a *act) refuses(p *worker) {
	switch p.At {
	case bothChanged:
		a.Does("reads M again, before it poisons", func(y *world, q *worker) {
			switch {
			case a.Drops(PoisonFirst) && y.dropMark(q.mSame):
				q.At, q.mSame = poisons, false
			case q.mSame || a.Drops(MarkAgain):
				q.At = poisons
			case q.gone:
				q.to(goneTrace)
			default:
				q.to(rechecksMark)
			}
		})
	case poisons:
		a.Does("puts an entry on the poison queue", func(y *world, q *worker) {
			y.Poison, y.Entry[q.Message] = true, true
			q.At = dropsMarkAfter
			if !q.mSame {
				q.to(finishes)
			}
		})
	case dropsMarkAfter:
		a.sends(dropMark, "deletes M, having poisoned", func(_ *world, q *worker, _ bool) {
			saw := q.tSaw
			q.to(finishes)
			if saw {
				q.At = dropsTrace
			}
		})
	default:
		a.unmarked(p)
	}
}

// unmarked emits the steps for an entity at D that has no mark.
func (a *act) unmarked(p *worker) {
	switch p.At {
	case unmarkedCopy:
		a.Does("reads D, which has no M", func(y *world, q *worker) {
			q.foreign, q.dSame, q.At = y.D == moves.Other, true, unmarkedSource
			if y.D == moves.None {
				q.to(readsSource)
			}
		})
	case unmarkedSource:
		a.Does("reads S again", func(y *world, q *worker) {
			switch {
			case !a.isX(y):
				q.to(goneTrace)
			case a.Replace && q.foreign:
				q.content, q.sSame, q.At = y.SContent, true, firstOverwrites
			default:
				q.to(poisons)
			}
		})
	case firstOverwrites:
		a.sends(firstOver, "replaces another entity at D and inserts M", func(_ *world, q *worker, ok bool) {
			if !ok {
				q.to(rechecksMark)
				return
			}
			q.foreign = false
			a.copied(q)
		})
	}
}

// isGone emits the steps of a worker after S is gone.
func (a *act) isGone(p *worker) {
	switch p.At {
	case goneTrace:
		a.Does("reads T", func(y *world, q *worker) {
			if a.Drops(Mark) {
				q.to(finishes)
				return
			}
			q.tSaw, q.At = y.t, goneMark
		})
	case goneMark:
		a.Does("reads M", func(y *world, q *worker) {
			switch {
			case !y.m && q.tSaw:
				q.to(dropsTrace)
			case !y.m:
				q.to(finishes)
			case a.Drops(Trace), q.tSaw && (y.tW || a.Drops(TraceWrite)):
				q.mSame, q.hasMark, q.At = true, true, dropsMark
			default:
				q.mSame, q.hasMark, q.mW, q.At = true, true, y.mW, goneCopy
			}
		})
	case goneCopy:
		a.Does("reads D", func(y *world, q *worker) {
			switch {
			case y.D == moves.X && q.mW:
				q.dSame, q.At = true, withdraws
			case y.D == moves.X:
				q.At, q.gone = bothChanged, true
			default:
				q.At = goneDrops
			}
		})
	case goneDrops:
		a.sends(dropMark, "deletes M", func(_ *world, q *worker, ok bool) { q.withdrew(ok) })
	case withdraws:
		a.sends(withdraw, "withdraws D and M", func(_ *world, q *worker, ok bool) { q.withdrew(ok) })
	}
}

// withdrew sets the next step after M was deleted, or after the deletion was refused because another worker changed M.
func (q *worker) withdrew(done bool) {
	saw := q.tSaw
	switch {
	case !done:
		q.to(goneTrace)
	case saw:
		q.to(dropsTrace)
	default:
		q.to(finishes)
	}
}
