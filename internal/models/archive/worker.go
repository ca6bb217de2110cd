package archive

import (
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
	"github.com/tablepatterns/tablepatterns/internal/models/moves"
)

// The steps of a worker.
const (
	readsSource messages.Step = messages.First + iota
	putsPending
	insertsRecord
	fills
	commits
	finishes
	rechecksRecord
	rechecksSource
	rechecksCopy
	replacesRecord
	unmarkedCopy
	unmarkedRecord
	unmarkedSource
	deletesPending // afterwards the worker poisons the message
	userChanged
	poisons
	deletesRecordAfter
	goneRecord
	goneUnrecorded
	goneCopy
	deletesCopy
	deletesRecord
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
	case p.At <= unmarkedSource:
		a.rechecks(p)
	case p.At <= deletesRecordAfter:
		a.refuses(p)
	default:
		a.isGone(p)
	}
}

// sends emits the states that a write leads to. If no answer comes, the worker gives up.
func (a *act) sends(kind kind, what string, f func(w *world, q *worker, ok bool)) {
	a.Sends(what, request{kind, *a.Actor()}, f, func(w *world, _ *worker) { w.End(a.I) })
}

// to sets the next step and discards everything that the worker has read.
func (q *worker) to(at messages.Step) {
	*q = worker{Actor: messages.Actor{At: at, Message: q.Message, Worker: true}}
}

// knows records R as just read or written.
func (q *worker) knows(w *world) { q.r, q.rSame = w.r, true }

func (c *World) isX(w *world) bool { return w.IsX(c.Keeps(Incarnation)) }

// moves emits the steps of a move that no request interferes with.
func (a *act) moves(p *worker) {
	switch p.At {
	case readsSource:
		a.Does("reads S", func(y *world, q *worker) {
			if !a.isX(y) {
				q.to(goneRecord)
				return
			}
			q.content, q.sSame, q.At = y.SContent, true, putsPending
			if a.Drops(Pending) {
				q.At = insertsRecord
			}
		})
	case putsPending:
		a.sends(putPending, "puts D, pending", func(_ *world, q *worker, ok bool) {
			if !ok {
				q.to(rechecksRecord)
				return
			}
			q.dSame, q.At = true, insertsRecord
			if a.Drops(RecordBeforeFill) {
				q.At = fills
			}
		})
	case insertsRecord:
		a.sends(insertRecord, "inserts R", func(y *world, q *worker, ok bool) {
			if !ok {
				q.to(rechecksRecord)
				return
			}
			q.At = fills
			if a.Drops(RecordBeforeFill) {
				y.r.w, q.At = q.dSame, commits
			}
			q.knows(y)
			q.dSame = false
		})
	default:
		a.ends(p)
	}
}

// ends emits the last steps of a move.
func (a *act) ends(p *worker) {
	switch p.At {
	case fills:
		a.sends(fill, "fills D", func(_ *world, q *worker, ok bool) {
			if !ok {
				q.to(rechecksRecord)
				return
			}
			q.At = commits
			if a.Drops(RecordBeforeFill) && !q.r.there {
				q.dSame, q.At = true, insertsRecord
				return
			}
			q.content = 0
		})
	case commits:
		a.sends(commit, "deletes S and R", func(_ *world, q *worker, ok bool) {
			if !ok {
				q.to(rechecksRecord)
				return
			}
			if a.Drops(RecordInCommit) {
				q.At, q.sSame, q.content = deletesRecord, false, 0
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
	case rechecksRecord:
		if a.Drops(RecordBeforeSource) && !p.early {
			a.Does("reads S", func(y *world, q *worker) {
				if !a.isX(y) {
					q.to(goneRecord)
					return
				}
				q.content, q.sSame, q.early = y.SContent, true, true
			})
			return
		}
		a.Does("reads R", func(y *world, q *worker) {
			if !y.r.there {
				q.to(unmarkedCopy)
				return
			}
			q.knows(y)
			q.At = rechecksSource
			if q.early {
				q.early, q.At = false, rechecksCopy
			}
		})
	case rechecksSource:
		a.Does("reads S again", func(y *world, q *worker) {
			if !a.isX(y) {
				q.to(goneRecord)
				return
			}
			q.content, q.sSame, q.At = y.SContent, true, rechecksCopy
		})
	case rechecksCopy:
		a.Does("reads D", func(y *world, q *worker) { a.decides(y, q) })
	case replacesRecord:
		a.sends(replaceRecord, "replaces R", func(y *world, q *worker, ok bool) {
			if !ok {
				q.to(rechecksRecord)
				return
			}
			q.knows(y)
			q.dSame, q.At = false, fills
		})
	default:
		a.unmarked(p)
	}
}

// decides sets the next step, which depends on R, S and D.
func (a *act) decides(y *world, q *worker) {
	q.dSame = true
	unchanged := y.dKept && y.D == moves.X && (!y.dChanged || a.Drops(Unchanged))
	switch {
	case q.r.base || a.Drops(Pending) && y.D == moves.None:
		q.At = replacesRecord
		if q.r.of {
			q.dSame, q.At = false, fills
		}
	case q.r.w && q.r.of && y.D == moves.X:
		q.At, q.dSame = commits, false
	case unchanged:
		q.At = replacesRecord
	case y.D == pending:
		q.At = deletesPending
	default:
		q.At = userChanged
	}
}

// unmarked emits the steps for a blob that has no record.
func (a *act) unmarked(p *worker) {
	switch p.At {
	case unmarkedCopy:
		a.Does("reads D, which has no R", func(y *world, q *worker) {
			switch {
			case y.D == moves.None:
				q.to(readsSource)
			case y.D == pending || a.Drops(UnmarkedAgain):
				q.dSame, q.At = true, unmarkedSource
			default:
				q.dSame, q.At = true, unmarkedRecord
			}
			q.foreign = y.D == moves.X || y.D == moves.Other && !a.Replace
		})
	case unmarkedRecord:
		a.Does("reads R again", func(y *world, q *worker) {
			q.At = unmarkedSource
			if y.r.there {
				q.to(rechecksRecord)
			}
		})
	case unmarkedSource:
		a.Does("reads S again", func(y *world, q *worker) {
			switch {
			case !a.isX(y):
				q.to(goneRecord)
			case !q.foreign:
				q.content, q.sSame, q.At = y.SContent, true, insertsRecord
			default:
				q.to(poisons)
			}
		})
	}
}

// refuses emits the steps that lead to poison.
func (a *act) refuses(p *worker) {
	switch p.At {
	case deletesPending:
		a.sends(deleteCopy, "deletes D, which is pending", func(_ *world, q *worker, ok bool) {
			q.At = userChanged
			if !ok {
				q.to(rechecksRecord)
			}
		})
	case userChanged:
		a.Does("reads S again, before it poisons", func(y *world, q *worker) {
			switch {
			case !q.gone && !a.isX(y) && !a.Drops(SourceAgain):
				q.to(goneRecord)
			case a.Drops(PoisonFirst) && y.deleteRecord(*q):
				q.At, q.rSame = poisons, false
			default:
				q.At = poisons
			}
		})
	case poisons:
		a.Does("puts an entry on the poison queue", func(y *world, q *worker) {
			y.Poison, y.Entry[q.Message] = true, true
			q.At = deletesRecordAfter
			if !q.rSame {
				q.to(finishes)
			}
		})
	case deletesRecordAfter:
		a.sends(deleteRecord, "deletes R, having poisoned", func(_ *world, q *worker, _ bool) {
			q.to(finishes)
		})
	}
}

// isGone emits the steps of a worker after S is gone.
func (a *act) isGone(p *worker) {
	switch p.At {
	case goneRecord:
		a.Does("reads R", func(y *world, q *worker) {
			q.At = goneUnrecorded
			if y.r.there {
				q.knows(y)
				q.At = goneCopy
			}
		})
	case goneUnrecorded:
		a.Does("reads D, which has no R", func(y *world, q *worker) {
			q.to(finishes)
			if y.D == pending && !a.Drops(CleanPending) {
				q.dSame, q.At = true, deletesCopy
			}
		})
	case goneCopy:
		a.Does("reads D", func(y *world, q *worker) { a.decidesGone(y, q) })
	case deletesCopy:
		a.sends(deleteCopy, "deletes D", func(_ *world, q *worker, ok bool) {
			switch {
			case !ok:
				q.to(goneRecord)
			case q.r.there:
				q.At = deletesRecord
			default:
				q.to(finishes)
			}
		})
	case deletesRecord:
		a.sends(deleteRecord, "deletes R", func(_ *world, q *worker, ok bool) {
			q.At = finishes
			if !ok && !a.Drops(RecordInCommit) {
				q.At = goneRecord
			}
			q.to(q.At)
		})
	}
}

// decidesGone sets the next step after a user has deleted S, which depends on R and D.
func (a *act) decidesGone(y *world, q *worker) {
	q.dSame, q.gone = true, true
	unchanged := y.dKept && y.D == moves.X && (!y.dChanged || a.Drops(Unchanged))
	switch {
	case y.D == moves.None, q.r.base && !y.dKept && a.Drops(Replaced):
		q.dSame, q.At = false, deletesRecord
	case q.r.base, q.r.w && unchanged, y.D == pending:
		q.At = deletesCopy
	case y.D == moves.X && y.dKept && !q.r.w && q.r.first && !a.Drops(First):
		q.dSame, q.At = false, deletesRecord // the insert of R arrived after the move
	case unchanged:
		q.At = deletesCopy
	default:
		q.At = userChanged
	}
}
