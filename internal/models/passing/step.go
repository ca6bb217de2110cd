package passing

import (
	"github.com/tablepatterns/tablepatterns/internal/models/keys"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The steps of an actor, in the order of the protocol.
const (
	reads messages.Step = messages.First + iota
	puts
	prepares
	commit
	handles // read a member
	looks   // read the row of a key
	asks    // read the owner again
	acts    // write the row
	again   // read a member again
	forgets // delete the message
)

type base = messages.Act[world, actor, [5]actor, request, *world, *actor]

// act is one step of an actor. A process that gets no answer to a write gives up.
type act struct {
	*World
	*base
}

// service applies a request, and reports whether its conditions were met.
func (c *World) service(w *world, q *request) bool {
	r := &w.rows[q.key]
	switch {
	case q.commits:
		return w.entities.Commit(&c.changes[q.change], q.versions)
	case q.etag && !q.same || !q.etag && !r.Claimed(q.from):
		return false
	case q.marks:
		r.Passes = q.change
	default:
		*r = q.to
	}
	for i := range w.Actors {
		w.Actors[i].Wrote(q.key)
	}
	if w.Late.key == q.key {
		w.Late.same = false
	}
	return true
}

// others emits what no process does: a message is lost, a deadline passes, and Repair finds a row that a change has marked or
// reserved.
func (c *World) others(w world, emit func(to world, who, what string)) {
	for m := range w.Messages {
		underWay := w.Waits && int(w.LateOf) == m
		if w.Messages[m].State == messages.Visible && w.poisons > 0 && !underWay && w.rows[keyA].Passes == w.Messages[m].Change { // for other lost messages, Verify must find the difference
			to := w
			to.poisons--
			to.Messages[m] = messages.Message{}
			emit(to, "a message", "is lost")
		}
	}
	if c.repairs == 0 {
		return
	}
	for i := range c.changes {
		bit := uint8(1) << i
		if w.over&bit == 0 && !(w.Late.commits && int(w.Late.change) == i) {
			to := w
			to.over |= bit
			emit(to, "a deadline", "passes")
		}
	}
	for k, r := range w.rows {
		by := max(r.Reserved, r.Passes)
		if by == keys.Nobody || w.repairs == 0 || w.Messages[repairing].State != messages.Absent || w.over&(1<<by) == 0 && c.Keeps(Deadline) {
			continue
		}
		to := w
		to.repairs--
		members := uint8(1) << r.Owner
		if r.Passes != keys.Nobody && c.Keeps(Taker) {
			members = c.changes[by].Members
		}
		to.Messages[repairing] = messages.Message{State: messages.Visible, Intent: messages.Intent{Change: by, Members: members, Keys: 1 << k}}
		emit(to, "Repair", "puts an intent of the change that a row names")
	}
}

func (c *World) step(b *base) {
	a := &act{c, b}
	if p := a.Actor(); p.At < handles {
		a.writer(p)
	} else {
		a.holder(p)
	}
}

// writer makes the next request of a writer that has not finished its transaction.
func (a *act) writer(p *actor) {
	switch p.At {
	case reads: // read all members in one step: their order does not matter, since the transaction checks all ETags
		a.Does("reads", func(w *world, p *actor) {
			before, after := p.Plan(&w.entities, &a.changes[p.Change])
			p.At, p.takes = puts, after&^before
			if a.Keeps(Mark) {
				p.marks = after & before
			}
		})
	case puts:
		a.Does("puts its message", func(w *world, p *actor) {
			w.Put(a.I)
			p.At = prepares
			if p.marks|p.takes == 0 {
				p.At = commit
			}
		})
	case prepares:
		a.prepares(p)
	case commit:
		if a.From.over&(1<<p.Change) != 0 && p.prepared && a.Keeps(Deadline) {
			a.Does("commits", a.refused)
			return
		}
		q := request{commits: true, change: p.Change, versions: p.Seen.Versions()}
		a.Sends("commits", q, func(w *world, p *actor, ok bool) {
			if !ok {
				a.refused(w, p)
				return
			}
			p.Committed(&w.entities)
			p.prepared = false
			p.key(0)
		}, nil)
	}
}

// prepares marks or reserves the first key that the actor has not yet marked or reserved.
func (a *act) prepares(p *actor) {
	k := int8(0)
	for (p.marks|p.takes)&(1<<k) == 0 {
		k++
	}
	q := request{marks: p.marks&(1<<k) != 0, change: p.Change, key: k, from: keys.Free()}
	if q.marks {
		q.from.Owner = p.Has(k)
	} else {
		q.to = keys.Reserved(a.changes[p.Change].Taker(k), p.Change)
	}
	a.Sends("prepares a key", q, func(w *world, p *actor, ok bool) {
		if !ok {
			a.refused(w, p)
			return
		}
		p.prepared = true
		p.marks &^= 1 << k
		p.takes &^= 1 << k
		if p.marks|p.takes == 0 {
			p.At = commit
		}
	}, nil)
}

// refused ends a change that was not made: if it has prepared keys, the writer handles the message.
func (a *act) refused(w *world, p *actor) {
	if !p.prepared || !a.Keeps(GiveBack) {
		w.Finish(a.I)
		return
	}
	w.Handle(a.I, handles)
}

// key goes to the first named key from k on, or to the closing read.
func (p *actor) key(k int8) {
	if p.At = looks; !p.Next(p.Keys, k) {
		p.At, p.N = again, 0
	}
}

// holder makes the next request of a process that handles a message.
func (a *act) holder(p *actor) {
	switch p.At {
	case handles:
		a.Does("reads a member", func(w *world, p *actor) {
			if _, _, last := p.Read(&w.entities); last {
				p.Taken = false
				p.key(0)
			}
		})
	case looks:
		a.Does("looks at a key", func(w *world, p *actor) {
			p.Look(&w.rows)
			switch _, does, ask := a.decide(p); {
			case !does:
				p.key(p.N + 1)
			case ask && a.Keeps(Has):
				p.At = asks
			default:
				p.At = acts
			}
		})
	case asks:
		a.Does("reads the owner again", func(w *world, p *actor) {
			if p.At = acts; w.entities[p.There.Owner].Key == p.N {
				p.key(p.N + 1)
			}
		})
	case acts:
		to, _, plain := a.decide(p)
		q := request{change: p.Change, key: p.N, from: p.There, to: to, etag: plain, same: p.Same}
		a.Sends("writes a key", q, func(_ *world, p *actor, ok bool) {
			p.There, p.Same, p.At = keys.Row{}, false, looks
			if ok && (a.Keeps(Transfer) || to.Owner != keys.Nobody) {
				p.key(p.N + 1)
			}
		}, nil)
	case again:
		a.Does("reads a member again", func(w *world, p *actor) {
			switch was, is, last := p.Read(&w.entities); {
			case was != is && a.Keeps(Again):
				p.To(handles)
				p.Taken = false
			case last:
				p.To(forgets)
			}
		})
	case forgets:
		a.Does("ends its message", func(w *world, p *actor) {
			if p.Taken {
				w.Stop(a.I)
			} else {
				w.Finish(a.I)
			}
		})
	}
}

// decide returns the row that the holder's message asks for under a key, and whether there is anything to
// write. plain says that the holder deletes a copy with a plain claim, which it does under the copy's ETag
// after it has read the owner again.
func (a *act) decide(p *actor) (to keys.Row, does, plain bool) {
	r, has := p.There, p.Has(p.N)
	passes := r.Passes != keys.Nobody && r.Passes != p.Change // marked by another change
	mine := (r.Reserved == keys.Nobody || r.Reserved == p.Change) && (!passes || !a.Keeps(OnlyOwn))
	inside := r.Owner != keys.Nobody && p.Members&(1<<r.Owner) != 0 && r.Owner != has
	copied := p.Seen.Copy(has)
	switch {
	case has == keys.Nobody:
		return copied, inside && mine, r.Reserved == keys.Nobody && (r.Passes == keys.Nobody || passes)
	case r.Owner == keys.Nobody:
		return copied, true, false
	case r.Owner == has:
		return copied, mine, false
	case inside && (r.Passes == p.Change || !a.Keeps(Mark)):
		if !a.Keeps(Transfer) {
			return keys.Free(), true, false
		}
		return copied, true, false
	case passes: // the message of that change transfers the key
		return r, false, false
	}
	p.Taken = true
	return r, false, false
}
