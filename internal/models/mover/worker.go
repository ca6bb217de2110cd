package mover

// The states of a worker.
const (
	idle byte = iota
	readsSource
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

// act describes one step of a worker.
type act struct {
	*Case
	from world
	n    int
	emit func(to world, who, what string)
}

// step emits the next steps of a worker.
func (c *Case) step(w world, n int, emit func(to world, who, what string)) {
	a := act{c, w, n, emit}
	switch p := w.p[n]; {
	case p.at == idle:
		for m := range w.msg {
			if w.msg[m] == visible {
				a.does("gets a message", func(y *world, q *worker) {
					y.msg[m] = invisible
					*q = worker{at: readsSource, msg: byte(m)}
				})
			}
		}
	case p.at <= finishes:
		a.moves(p)
	case p.at <= firstOverwrites:
		a.rechecks(p)
	default:
		a.isGone()
	}
}

// does emits the state after a change whose response arrives.
func (a act) does(what string, f func(*world, *worker)) {
	y := a.from
	f(&y, &y.p[a.n])
	a.emit(y, [...]string{"worker 1", "worker 2"}[a.n], what)
}

// sends emits the states that does emits, for a request that changes something. It also emits the state in which the
// request arrives late.
func (a act) sends(kind byte, what string, f func(*world, *worker)) {
	a.does(what, f)
	if a.from.lates > 0 && a.from.late.what == noRequest {
		y := a.from
		q := &y.p[a.n]
		y.lates--
		y.late = request{what: kind, msg: q.msg, content: q.content, sSame: q.sSame, mSame: q.mSame, dSame: q.dSame}
		*q = worker{}
		a.emit(y, [...]string{"worker 1, which gets no answer and gives up,", "worker 2, which gets no answer and gives up,"}[a.n], what)
	}
}

// to sets the next step and discards everything that the worker has read.
func (q *worker) to(at byte) { *q = worker{at: at, msg: q.msg} }

func (c *Case) isX(s byte) bool { return s == x || c.Drop.Incarnation && s == other }

// moves emits the steps of a move that no request interferes with.
func (a act) moves(p worker) {
	switch p.at {
	case readsSource:
		a.does("reads S", func(y *world, q *worker) {
			if !a.isX(y.s) {
				q.to(goneTrace)
				return
			}
			q.content, q.sSame, q.at = y.sContent, true, copies
		})
	case copies:
		a.sends(sendsCopy, "inserts D and M", func(y *world, q *worker) {
			content, same := q.content, q.sSame
			if a.copy(y, content, same) {
				q.copied(a.Case)
				return
			}
			q.to(rechecksMark)
			if a.Drop.MarkBeforeSource {
				q.content, q.sSame, q.readOnce = content, same, true
			}
			if a.Drop.Mark {
				q.at = rechecksSource
			}
		})
	case marks:
		a.does("inserts M", func(y *world, q *worker) {
			if y.m {
				q.to(rechecksMark)
				return
			}
			same := q.mW
			y.wroteM()
			y.m, y.mOf, y.mW = true, q.sSame, same
			q.hasMark, q.mSame, q.at = true, true, commits
		})
	case commits:
		a.sends(sendsCommit, "deletes S and inserts T", func(y *world, q *worker) {
			if !a.commit(y, q.sSame, q.mSame) {
				q.to(rechecksMark)
				if a.Drop.Mark {
					q.at = readsSource
				}
				return
			}
			q.sSame = false
			switch {
			case a.Drop.Mark || a.Drop.CleanUp:
				q.to(finishes)
			case a.Drop.MarkBeforeTrace:
				q.at = dropsTrace
			default:
				q.at = dropsMark
			}
		})
	default:
		a.cleansUp(p)
	}
}

// copied sets the worker's state after it has written the copy.
func (q *worker) copied(c *Case) {
	q.content, q.dSame, q.at = 0, false, commits
	q.hasMark, q.mSame = true, true
	switch {
	case c.Drop.Mark:
		q.hasMark, q.mSame = false, false
	case c.Drop.MarkInTransaction:
		q.at, q.hasMark, q.mSame, q.mW = marks, false, false, true
	}
}

// cleansUp deletes M, T and the message.
func (a act) cleansUp(p worker) {
	switch p.at {
	case dropsMark:
		a.sends(sendsDropMark, "deletes M", func(y *world, q *worker) {
			y.dropMark(q.mSame)
			q.to(dropsTrace)
			if a.Drop.MarkBeforeTrace {
				q.to(finishes)
			}
		})
	case dropsTrace:
		a.sends(sendsDropTrace, "deletes T", func(y *world, q *worker) {
			y.dropTrace()
			if a.Drop.MarkBeforeTrace && q.mSame {
				q.at = dropsMark
				return
			}
			q.to(finishes)
		})
	case finishes:
		a.does("deletes its message", func(y *world, q *worker) {
			y.msg[q.msg] = none
			*q = worker{}
		})
	}
}

// rechecks emits the steps of a worker after a refusal.
func (a act) rechecks(p worker) {
	switch p.at {
	case rechecksMark:
		a.does("reads M", func(y *world, q *worker) {
			if !y.m {
				q.to(unmarkedCopy)
				return
			}
			q.mSame, q.mOf, q.mW, q.hasMark, q.at = true, y.mOf, y.mW, true, rechecksSource
			if q.readOnce {
				q.readOnce = false
				q.decides(q.sSame && y.mOf)
			}
		})
	case rechecksSource:
		a.does("reads S again", func(y *world, q *worker) {
			if !a.isX(y.s) {
				q.to(goneTrace)
				return
			}
			q.content, q.sSame = y.sContent, true
			if a.Drop.Mark { // an earlier version of the mover had no mark
				q.at = copies
				if y.d == x {
					q.at, q.dSame = overwrites, true
				}
				return
			}
			q.decides(q.mOf)
		})
	case rechecksCopy:
		a.does("reads D", func(y *world, q *worker) {
			q.at = bothChanged
			if y.d == x && (q.mW || a.Drop.SameWrite) {
				q.dSame, q.at = true, overwrites
			}
		})
	case overwrites:
		a.sends(sendsOver, "replaces D and M", func(y *world, q *worker) {
			if !a.over(y, q.content, q.sSame, q.dSame, q.mSame) {
				q.to(rechecksMark)
				if a.Drop.Mark {
					q.at = rechecksSource
				}
				return
			}
			q.copied(&Case{Drop: Rules{Mark: a.Drop.Mark}})
		})
	default:
		a.refuses(p)
	}
}

// decides sets the next step, which depends on whether M was made of the current S.
func (q *worker) decides(madeOfS bool) {
	q.at = rechecksCopy
	if madeOfS {
		q.at = commits
	}
}

// refuses emits the steps that lead to poison, or to the replacement of another entity.
func (a act) refuses(p worker) {
	switch p.at {
	case bothChanged:
		a.does("reads M again, before it poisons", func(y *world, q *worker) {
			switch {
			case a.Drop.PoisonFirst && y.dropMark(q.mSame):
				q.at, q.mSame = poisons, false
			case q.mSame || a.Drop.MarkAgain:
				q.at = poisons
			case q.gone:
				q.to(goneTrace)
			default:
				q.to(rechecksMark)
			}
		})
	case poisons:
		a.does("puts an entry on the poison queue", func(y *world, q *worker) {
			y.poison, y.entry[q.msg] = true, true
			q.at = dropsMarkAfter
			if !q.mSame {
				q.to(finishes)
			}
		})
	case dropsMarkAfter:
		a.sends(sendsDropMark, "deletes M, having poisoned", func(y *world, q *worker) {
			y.dropMark(q.mSame)
			saw := q.tSaw
			q.to(finishes)
			if saw {
				q.at = dropsTrace
			}
		})
	default:
		a.unmarked(p)
	}
}

// unmarked emits the steps for an entity at D that has no mark.
func (a act) unmarked(p worker) {
	switch p.at {
	case unmarkedCopy:
		a.does("reads D, which has no M", func(y *world, q *worker) {
			q.foreign, q.dSame, q.at = y.d == other, true, unmarkedSource
			if y.d == none {
				q.to(readsSource)
			}
		})
	case unmarkedSource:
		a.does("reads S again", func(y *world, q *worker) {
			switch {
			case !a.isX(y.s):
				q.to(goneTrace)
			case a.Replace && q.foreign:
				q.content, q.sSame, q.at = y.sContent, true, firstOverwrites
			default:
				q.to(poisons)
			}
		})
	case firstOverwrites:
		a.sends(sendsFirstOver, "replaces another entity at D and inserts M", func(y *world, q *worker) {
			if !a.firstOver(y, q.content, q.sSame, q.dSame) {
				q.to(rechecksMark)
				return
			}
			q.foreign = false
			q.copied(a.Case)
		})
	}
}

// isGone emits the steps of a worker after S is gone.
func (a act) isGone() {
	switch a.from.p[a.n].at {
	case goneTrace:
		a.does("reads T", func(y *world, q *worker) {
			if a.Drop.Mark {
				q.to(finishes)
				return
			}
			q.tSaw, q.at = y.t, goneMark
		})
	case goneMark:
		a.does("reads M", func(y *world, q *worker) {
			switch {
			case !y.m && q.tSaw:
				q.to(dropsTrace)
			case !y.m:
				q.to(finishes)
			case a.Drop.Trace, q.tSaw && (y.tW || a.Drop.TraceWrite):
				q.mSame, q.hasMark, q.at = true, true, dropsMark
			default:
				q.mSame, q.hasMark, q.mW, q.at = true, true, y.mW, goneCopy
			}
		})
	case goneCopy:
		a.does("reads D", func(y *world, q *worker) {
			switch {
			case y.d == x && q.mW:
				q.dSame, q.at = true, withdraws
			case y.d == x:
				q.at, q.gone = bothChanged, true
			default:
				q.at = goneDrops
			}
		})
	case goneDrops:
		a.sends(sendsDropMark, "deletes M", func(y *world, q *worker) { q.withdrew(y.dropMark(q.mSame)) })
	case withdraws:
		a.sends(sendsWithdraw, "withdraws D and M", func(y *world, q *worker) { q.withdrew(y.withdraw(q.dSame, q.mSame)) })
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
