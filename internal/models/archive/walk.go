package archive

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
	case w.r.there:
		return "R still exists"
	case w.D == pending:
		return "D is still pending"
	case w.Poison && !w.DWrote:
		return "an entry is on the poison queue, though no user changed D"
	case w.Poison:
		return ""
	}
	return w.Unmoved()
}

// users emits the next steps of users.
func users(w world, emit func(to world, who, what string)) {
	moves.AtSource(w, (*world).wroteS, emit)
	if w.DOps == 0 {
		return
	}
	bit := byte(8) << w.DOps
	w.DOps--
	w.DWrote = true
	u := w
	switch w.D {
	case moves.X:
		u.Update(&u.DContent, bit)
		u.wroteD()
		u.dChanged = true
		plain := u
		plain.dKept = false
		emit(plain, "a user", "updates the copy at D, without its metadata")
		u.r.w = w.r.w
		for n := range u.Actors {
			u.Actors[n].r.w = w.Actors[n].r.w
		}
		emit(u, "a user", "updates the copy at D, with its metadata")
		u = w
		u.Seen |= w.DContent
		u.removeD()
		u.DDel = true
		emit(u, "a user", "deletes the copy at D")
	case pending:
		u.removeD()
		emit(u, "a user", "deletes the pending blob")
	case moves.None:
		u.wroteD()
		u.D = moves.Other
		emit(u, "a user", "puts another blob at D")
	}
}

func (w *world) removeD() {
	w.wroteD()
	w.D, w.DContent, w.dKept, w.dChanged = moves.None, 0, false, false
}

// worlds returns the worlds to walk through.
func worlds() []World {
	at, large := models.At, models.Thorough
	return []World{
		{moves.Case{Case: at("one message"), Messages: 1, SourceChanges: 2, CopyChanges: 2, Lates: 1, Requeues: 1}},
		{moves.Case{Case: at("two messages"), Messages: 2, SourceChanges: 1}},
		{moves.Case{Case: at("replaces"), Messages: 1, SourceChanges: 1, CopyChanges: 2, Lates: 1, Replace: true}},
		{moves.Case{Case: at("two messages, replaces"), Messages: 2, SourceChanges: 1, CopyChanges: 1, Replace: true}},
		{moves.Case{Case: large("two messages, users at both ends"), Messages: 2, SourceChanges: 1, CopyChanges: 1}},
		{moves.Case{Case: large("two messages, a late request"), Messages: 2, SourceChanges: 1, CopyChanges: 1, Lates: 1}},
		{moves.Case{Case: large("two messages, two changes each"), Messages: 2, SourceChanges: 2, CopyChanges: 2}},
		{moves.Case{Case: large("two messages, replaces, two changes of D"), Messages: 2, SourceChanges: 1, CopyChanges: 2, Replace: true}},
		{moves.Case{Case: large("two messages, replaces, a late request"), Messages: 2, SourceChanges: 1, CopyChanges: 1, Lates: 1, Replace: true}},
	}
}
