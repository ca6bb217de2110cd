package mover

import (
	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
	"github.com/tablepatterns/tablepatterns/internal/models/moves"
)

// World is the size of a world.
type World struct{ moves.Case }

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop = drop
	w := world{Ends: c.Start()}
	w.Queue(c.Messages, c.Lates)
	m := messages.New(who, messages.Never, readsSource, c.step, c.service)
	m.Before, m.Lease, m.Certain, m.Wrong = users, c.Keeps(Lease), true, c.wrong
	m.After = func(w world, emit func(to world, who, what string)) { moves.Messages(w, m.Lease, emit) }
	m.Forbids = func(from, to world) string { return c.Forbids(&from.Ends, &to.Ends) }
	return m.Walk(w)
}

// wrong checks every state; a final state must also keep the changes that users were told have succeeded.
func (c *World) wrong(w world) string {
	lost := w.Lost(w.Quiet())
	switch {
	case lost != "" || !w.Quiet():
		return lost
	case w.Poison && !w.dOther && !(w.DWrote && (w.sWrote || w.DDel && c.Messages > 1)):
		return "poison, though users did not write at both ends, and nothing else was in the way"
	case w.Poison && w.m:
		return "M is left behind by poison"
	case w.Poison:
		return ""
	}
	if unmoved := w.Unmoved(); unmoved != "" || !w.m && !w.t {
		return unmoved
	}
	return "M or T is left behind"
}

// users emits the next steps of users.
func users(w world, emit func(to world, who, what string)) {
	moves.AtSource(w, func(w *world) {
		w.wroteS()
		w.sWrote = w.sWrote || w.S != moves.Other
	}, emit)
	if w.DOps == 0 {
		return
	}
	bit := byte(8) << w.DOps
	w.DOps--
	u := w
	u.DWrote = true
	u.wroteD()
	switch w.D {
	case moves.X:
		updated := u
		updated.Update(&updated.DContent, bit)
		emit(updated, "a user", "updates the copy at D")
		u.Seen |= w.DContent
		u.D, u.DContent, u.DDel = moves.None, 0, true
		emit(u, "a user", "deletes the copy at D")
	case moves.None:
		u.D, u.dOther = moves.Other, true
		emit(u, "a user", "inserts another entity at D")
	}
}

// worlds returns the worlds to walk through.
func worlds() []World {
	at, large := models.At, models.Thorough
	return []World{
		{moves.Case{Case: at("one message"), Messages: 1, SourceChanges: 2, CopyChanges: 2, Lates: 1, Requeues: 1}},
		{moves.Case{Case: at("two messages"), Messages: 2, SourceChanges: 1, CopyChanges: 1}},
		{moves.Case{Case: at("replaces"), Messages: 1, SourceChanges: 1, CopyChanges: 2, Lates: 1, Replace: true}},
		{moves.Case{Case: large("two messages, a late request"), Messages: 2, SourceChanges: 1, CopyChanges: 1, Lates: 1}},
		{moves.Case{Case: large("two messages, two changes each"), Messages: 2, SourceChanges: 2, CopyChanges: 2}},
		{moves.Case{Case: large("two messages, replaces"), Messages: 2, SourceChanges: 1, CopyChanges: 2, Replace: true}},
	}
}
