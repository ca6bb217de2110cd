package archive

// The steps of a worker.
const (
	idle byte = iota
	readsSource
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
	case p.at <= unmarkedSource:
		a.rechecks(p)
	case p.at <= deletesRecordAfter:
		a.refuses(p)
	default:
		a.isGone(p)
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
		y.late = request{kind, *q}
		*q = worker{}
		a.emit(y, [...]string{"worker 1, which gets no answer and gives up,", "worker 2, which gets no answer and gives up,"}[a.n], what)
	}
}

// to sets the next step and discards everything that the worker has read.
func (q *worker) to(at byte) { *q = worker{at: at, msg: q.msg} }

// knows records R as just read or written.
func (q *worker) knows(w *world) { q.r, q.rSame = w.r, true }

func (c *Case) isX(s byte) bool { return s == x || c.Drop.Incarnation && s == other }

// moves emits the steps of a move that no request interferes with.
func (a act) moves(p worker) {
	switch p.at {
	case readsSource:
		a.does("reads S", func(y *world, q *worker) {
			if !a.isX(y.s) {
				q.to(goneRecord)
				return
			}
			q.content, q.sSame, q.at = y.sContent, true, putsPending
			if a.Drop.Pending {
				q.at = insertsRecord
			}
		})
	case putsPending:
		a.sends(sendsPending, "puts D, pending", func(y *world, q *worker) {
			if !y.putPending() {
				q.to(rechecksRecord)
				return
			}
			q.dSame, q.at = true, insertsRecord
			if a.Drop.RecordBeforeFill {
				q.at = fills
			}
		})
	case insertsRecord:
		a.sends(sendsRecord, "inserts R", func(y *world, q *worker) {
			if !y.insertRecord(*q) {
				q.to(rechecksRecord)
				return
			}
			q.foreign, q.at = false, fills
			if a.Drop.RecordBeforeFill {
				y.r.w, q.at = q.dSame, commits
			}
			q.knows(y)
			q.dSame = false
		})
	default:
		a.ends(p)
	}
}

// ends emits the last steps of a move.
func (a act) ends(p worker) {
	switch p.at {
	case fills:
		a.sends(sendsFill, "fills D", func(y *world, q *worker) {
			if !a.fill(y, *q) {
				q.to(rechecksRecord)
				return
			}
			q.at = commits
			if a.Drop.RecordBeforeFill && !q.r.there {
				q.dSame, q.at = true, insertsRecord
				return
			}
			q.content = 0
		})
	case commits:
		a.sends(sendsCommit, "deletes S and R", func(y *world, q *worker) {
			if !a.commit(y, *q) {
				q.to(rechecksRecord)
				return
			}
			if a.Drop.RecordInCommit {
				q.at, q.sSame, q.content = deletesRecord, false, 0
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
	case rechecksRecord:
		if a.Drop.RecordBeforeSource && !p.early {
			a.does("reads S", func(y *world, q *worker) {
				if !a.isX(y.s) {
					q.to(goneRecord)
					return
				}
				q.content, q.sSame, q.early = y.sContent, true, true
			})
			return
		}
		a.does("reads R", func(y *world, q *worker) {
			if !y.r.there {
				q.to(unmarkedCopy)
				return
			}
			q.knows(y)
			q.at = rechecksSource
			if q.early {
				q.early, q.at = false, rechecksCopy
			}
		})
	case rechecksSource:
		a.does("reads S again", func(y *world, q *worker) {
			if !a.isX(y.s) {
				q.to(goneRecord)
				return
			}
			q.content, q.sSame, q.at = y.sContent, true, rechecksCopy
		})
	case rechecksCopy:
		a.does("reads D", func(y *world, q *worker) { a.decides(y, q) })
	case replacesRecord:
		a.sends(sendsReplacement, "replaces R", func(y *world, q *worker) {
			if !y.replaceRecord(*q) {
				q.to(rechecksRecord)
				return
			}
			q.knows(y)
			q.dSame, q.at = false, fills
		})
	default:
		a.unmarked(p)
	}
}

// decides sets the next step, which depends on R, S and D.
func (a act) decides(y *world, q *worker) {
	q.dSame = true
	unchanged := y.dKept && y.d == x && (!y.dChanged || a.Drop.Unchanged)
	switch {
	case q.r.base || a.Drop.Pending && y.d == none:
		q.at = replacesRecord
		if q.r.of {
			q.dSame, q.at = false, fills
		}
	case q.r.w && q.r.of && y.d == x:
		q.at, q.dSame = commits, false
	case unchanged:
		q.at = replacesRecord
	case y.d == pending:
		q.at = deletesPending
	default:
		q.at = userChanged
	}
}

// unmarked emits the steps for a blob that has no record.
func (a act) unmarked(p worker) {
	switch p.at {
	case unmarkedCopy:
		a.does("reads D, which has no R", func(y *world, q *worker) {
			switch {
			case y.d == none:
				q.to(readsSource)
			case y.d == pending || a.Drop.UnmarkedAgain:
				q.dSame, q.at, q.foreign = y.d != x, unmarkedSource, y.d != pending
			default:
				q.dSame, q.at, q.foreign = y.d != x, unmarkedRecord, true
			}
		})
	case unmarkedRecord:
		a.does("reads R again", func(y *world, q *worker) {
			q.at = unmarkedSource
			if y.r.there {
				q.to(rechecksRecord)
			}
		})
	case unmarkedSource:
		a.does("reads S again", func(y *world, q *worker) {
			known := q.dSame || a.Replace && y.d == other
			switch {
			case !a.isX(y.s):
				q.to(goneRecord)
			case !q.foreign || a.Replace && known:
				q.content, q.sSame, q.at = y.sContent, true, insertsRecord
			default:
				q.to(poisons)
			}
		})
	}
}

// refuses emits the steps that lead to poison.
func (a act) refuses(p worker) {
	switch p.at {
	case deletesPending:
		a.sends(sendsDeleteCopy, "deletes D, which is pending", func(y *world, q *worker) {
			q.at = userChanged
			if !a.deleteCopy(y, *q) {
				q.to(rechecksRecord)
			}
		})
	case userChanged:
		a.does("reads S again, before it poisons", func(y *world, q *worker) {
			switch {
			case !q.gone && !a.isX(y.s) && !a.Drop.SourceAgain:
				q.to(goneRecord)
			case a.Drop.PoisonFirst && y.deleteRecord(*q):
				q.at, q.rSame = poisons, false
			default:
				q.at = poisons
			}
		})
	case poisons:
		a.does("puts an entry on the poison queue", func(y *world, q *worker) {
			y.poison, y.entry[q.msg] = true, true
			q.at = deletesRecordAfter
			if !q.rSame {
				q.to(finishes)
			}
		})
	case deletesRecordAfter:
		a.sends(sendsDeleteRecord, "deletes R, having poisoned", func(y *world, q *worker) {
			y.deleteRecord(*q)
			q.to(finishes)
		})
	}
}

// isGone emits the steps of a worker after S is gone.
func (a act) isGone(p worker) {
	switch p.at {
	case goneRecord:
		a.does("reads R", func(y *world, q *worker) {
			q.at = goneUnrecorded
			if y.r.there {
				q.knows(y)
				q.at = goneCopy
			}
		})
	case goneUnrecorded:
		a.does("reads D, which has no R", func(y *world, q *worker) {
			q.to(finishes)
			if y.d == pending && !a.Drop.CleanPending {
				q.dSame, q.at = true, deletesCopy
			}
		})
	case goneCopy:
		a.does("reads D", func(y *world, q *worker) { a.decidesGone(y, q) })
	case deletesCopy:
		a.sends(sendsDeleteCopy, "deletes D", func(y *world, q *worker) {
			switch {
			case !a.deleteCopy(y, *q):
				q.to(goneRecord)
			case q.r.there:
				q.at = deletesRecord
			default:
				q.to(finishes)
			}
		})
	case deletesRecord:
		a.sends(sendsDeleteRecord, "deletes R", func(y *world, q *worker) {
			q.at = finishes
			if !y.deleteRecord(*q) && !a.Drop.RecordInCommit {
				q.at = goneRecord
			}
			q.to(q.at)
		})
	}
}

// decidesGone sets the next step after a user has deleted S, which depends on R and D.
func (a act) decidesGone(y *world, q *worker) {
	q.dSame, q.gone = true, true
	unchanged := y.dKept && y.d == x && (!y.dChanged || a.Drop.Unchanged)
	switch {
	case y.d == none, q.r.base && !y.dKept:
		q.dSame, q.at = false, deletesRecord
	case q.r.base, q.r.w && unchanged, y.d == pending:
		q.at = deletesCopy
	case y.d == x && y.dKept && !q.r.w && q.r.first && !a.Drop.First:
		q.dSame, q.at = false, deletesRecord // the insert of R arrived after the move
	case unchanged:
		q.at = deletesCopy
	default:
		q.at = userChanged
	}
}
