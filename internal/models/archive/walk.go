package archive

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
)

// Walk explores all interleavings of the case.
func (c Case) Walk() models.Result {
	start := world{s: x, sContent: 1, updates: 1, sOps: c.SourceChanges, dOps: c.CopyChanges, lates: c.Lates, requeues: c.Requeues}
	for m := range c.Messages {
		start.msg[m] = visible
	}
	return models.Model[world]{Start: start, Next: c.next, Wrong: c.wrong, Forbids: c.forbids, Quiet: quiet, MaxStates: 20_000_000}.Walk()
}

func quiet(w world) bool {
	return w.msg == [2]byte{} && w.p == [2]worker{} && w.late.what == noRequest
}

// forbids checks each step: a mover touches only X.
func (c Case) forbids(from, to world) string {
	if from.s == other && to.s != other || from.d == other && to.d != other && !c.Replace {
		return "an entity or blob other than X was changed"
	}
	return ""
}

// wrong checks every state; a final state must also keep the changes that users were told have succeeded.
func (c Case) wrong(w world) string {
	places := 0
	var kept byte
	if w.s == x {
		places++
		kept |= w.sContent
	}
	if w.d == x {
		places++
		kept |= w.dContent
	}
	if places == 0 && !w.sDel && !w.dDel {
		return "X is neither at S nor at D, and no user deleted it"
	}
	if !quiet(w) {
		return ""
	}
	if lost := w.updates &^ (kept | w.seen); lost != 0 {
		return fmt.Sprintf("acknowledged updates %06b are lost", lost)
	}
	switch {
	case w.r.there:
		return "R still exists"
	case w.d == pending:
		return "D is still pending"
	case w.poison && !w.dWrote:
		return "an entry is on the poison queue, though no user changed D"
	case w.poison:
	case places > 1:
		return "X is at S and at D, and no entry is on the poison queue"
	case places == 1 && (w.sDel || w.dDel):
		return "a user deleted X, but it exists, and no entry is on the poison queue"
	case w.s == x:
		return "X was not moved, and no entry is on the poison queue"
	}
	return ""
}

// users emits the next steps of users. Each change has a bit of its own.
func (c Case) users(w world, emit func(to world, who, what string)) {
	if w.sOps > 0 {
		c.usersAtSource(w, emit)
	}
	if w.dOps == 0 {
		return
	}
	y := w
	y.dOps--
	y.dWrote = true
	bit := byte(8) << w.dOps
	switch w.d {
	case x:
		u := y
		u.dContent |= bit
		u.updates |= bit
		u.wroteD()
		u.dChanged = true
		plain := u
		plain.dKept = false
		emit(plain, "a user", "updates the copy at D, without its metadata")
		u.r.w = w.r.w
		for n := range u.p {
			u.p[n].r.w = w.p[n].r.w
		}
		emit(u, "a user", "updates the copy at D, with its metadata")
		u = y
		u.seen |= w.dContent
		u.removeD()
		u.dDel = true
		emit(u, "a user", "deletes the copy at D")
	case pending:
		u := y
		u.removeD()
		emit(u, "a user", "deletes the pending blob")
	case none:
		u := y
		u.wroteD()
		u.d = other
		emit(u, "a user", "puts another blob at D")
	}
}

func (w *world) removeD() {
	w.wroteD()
	w.d, w.dContent, w.dKept, w.dChanged = none, 0, false, false
}

func (c Case) usersAtSource(w world, emit func(to world, who, what string)) {
	y := w
	y.sOps--
	bit := byte(1) << w.sOps
	switch w.s {
	case x:
		u := y
		u.sContent |= bit
		u.updates |= bit
		u.wroteS()
		emit(u, "a user", "updates X at S")
		u = y
		u.seen |= w.sContent
		u.s, u.sContent, u.sDel = none, 0, true
		u.wroteS()
		emit(u, "a user", "deletes X at S")
	case none:
		u := y
		u.s = other
		u.wroteS()
		emit(u, "a user", "inserts a new incarnation at S")
	}
}

func (c Case) next(w world, emit func(to world, who, what string)) {
	c.users(w, emit)
	for n := range w.p {
		c.step(w, n, emit)
	}
	if w.late.what != noRequest {
		y := w
		c.arrives(&y)
		emit(y, "a late request", "arrives")
	}
	for m := range w.msg {
		if w.entry[m] && w.msg[m] == none && w.requeues > 0 {
			y := w
			y.requeues--
			y.msg[m], y.entry[m] = visible, false
			emit(y, "a user", "puts a poisoned message back")
		}
		if w.msg[m] != invisible || !c.Drop.Lease && w.late.what != noRequest && int(w.late.from.msg) == m {
			continue
		}
		y := w
		y.msg[m] = visible
		for n := range y.p {
			if y.p[n].at != idle && int(y.p[n].msg) == m && !c.Drop.Lease {
				y.p[n] = worker{}
			}
		}
		emit(y, "a message", "reappears")
	}
}
