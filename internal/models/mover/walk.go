package mover

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
	for _, m := range w.msg {
		if m != none {
			return false
		}
	}
	return w.p == [2]worker{} && w.late.what == noRequest
}

// forbids checks each step: a mover touches only X.
func (c Case) forbids(from, to world) string {
	if from.s == other && to.s != other || from.d == other && to.d != other && !c.Replace {
		return "something that is not X was changed"
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
		return "X is in neither place, and no user deleted it"
	}
	if !quiet(w) {
		return ""
	}
	if lost := w.updates &^ (kept | w.seen); lost != 0 {
		return fmt.Sprintf("acknowledged updates %06b are lost", lost)
	}
	if w.poison {
		if !w.dOther && !(w.dWrote && (w.sWrote || w.dDel && c.Messages > 1)) {
			return "poison, though users did not write at both ends, and nothing else was in the way"
		}
		if w.m {
			return "M is left behind by poison"
		}
		return ""
	}
	switch {
	case places > 1:
		return "X is in both places, and no poison says so"
	case places == 1 && (w.sDel || w.dDel):
		return "X was deleted by a user and is there, and no poison says so"
	case w.s == x:
		return "X was not moved, and no poison says so"
	case w.m || w.t:
		return "M or T is left behind"
	}
	return ""
}

// users emits the next steps of users. Each change has a bit of its own.
func (c Case) users(w world, emit func(to world, who, what string)) {
	if w.sOps > 0 {
		y := w
		y.sOps--
		bit := byte(1) << w.sOps
		switch w.s {
		case x:
			u := y
			u.sContent |= bit
			u.updates |= bit
			u.sWrote = true
			u.wroteS()
			emit(u, "a user", "updates X at S")
			u = y
			u.seen |= w.sContent
			u.s, u.sContent, u.sDel, u.sWrote = none, 0, true, true
			u.wroteS()
			emit(u, "a user", "deletes X at S")
		case none:
			u := y
			u.s = other
			u.wroteS()
			emit(u, "a user", "inserts a new incarnation at S")
		}
	}
	if w.dOps == 0 {
		return
	}
	y := w
	y.dOps--
	bit := byte(8) << w.dOps
	switch w.d {
	case x:
		u := y
		u.dContent |= bit
		u.updates |= bit
		u.dWrote = true
		u.wroteD()
		emit(u, "a user", "updates the copy at D")
		u = y
		u.seen |= w.dContent
		u.wroteD()
		u.d, u.dContent, u.dDel, u.dWrote = none, 0, true, true
		emit(u, "a user", "deletes the copy at D")
	case none:
		u := y
		u.wroteD()
		u.d, u.dWrote, u.dOther = other, true, true
		emit(u, "a user", "inserts another entity at D")
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
		if w.msg[m] != invisible || !c.Drop.Lease && w.late.what != noRequest && int(w.late.msg) == m {
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
