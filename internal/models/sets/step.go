package sets

import (
	"github.com/tablepatterns/tablepatterns/internal/models/keys"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The steps of an actor, in the order of the protocol.
const (
	reads messages.Step = messages.First + iota
	puts
	together // reserve the new keys in one transaction
	prepares // reserve one of them
	commit
	places // fill the new copies in one transaction
	handles
	looks
	asks
	acts
	again
	forgets
)

type base = messages.Act[world, actor, [4]actor, request, *world, *actor]

type act struct {
	*World
	*base
}

// service applies a request, and reports whether the conditions of all its rows were met.
func (c *World) service(w *world, q *request) bool {
	if q.commits {
		return w.entities.Commit(&c.changes[q.change], q.versions)
	}
	for k := range w.rows {
		if q.keys&(1<<k) != 0 && !q.blind && (q.etag && !q.same || !q.etag && !w.rows[k].Claimed(q.from[k])) {
			return false
		}
	}
	for k := range w.rows {
		if q.keys&(1<<k) == 0 {
			continue
		}
		w.rows[k] = q.to[k]
		for i := range w.Actors {
			w.Actors[i].Wrote(int8(k))
		}
		if w.Late.keys&(1<<k) != 0 {
			w.Late.same = false
		}
	}
	return true
}

func (c *World) step(b *base) {
	a := &act{c, b}
	if p := a.Actor(); p.At < handles {
		a.writer(p)
	} else {
		a.holder(p)
	}
}

// writer makes the next request of a writer up to the joint write of its new copies. If a request gets no answer, it gives up.
func (a *act) writer(p *actor) {
	switch p.At {
	case reads:
		if first := a.From.Actors[0].At; a.plain && a.I == 2 && first >= reads && first <= commit {
			return
		}
		a.Does("reads", a.plans)
	case puts:
		a.Does("puts its message", func(w *world, p *actor) {
			w.Put(a.I)
			p.reserves()
		})
	case together:
		a.reserve(p, "reserves together")
	case prepares:
		a.reserve(p, "reserves one key")
	case commit:
		q := request{commits: true, change: p.Change, versions: p.Seen.Versions()}
		a.Sends("commits", q, func(w *world, p *actor, ok bool) {
			if !ok {
				a.refused(w, p)
				return
			}
			p.Committed(&w.entities)
			p.At = places
			if added, _ := a.fresh(p); added&(added-1) == 0 {
				p.key(0)
			}
		}, nil)
	case places:
		fresh, of := a.fresh(p)
		q := request{keys: fresh, blind: !a.Keeps(Claims)}
		for k, e := range of {
			q.from[k], q.to[k] = keys.Reserved(e, p.Change), p.Seen.Copy(e)
			if a.plain {
				q.from[k] = keys.Free()
			}
		}
		a.Sends("fills together", q, func(_ *world, p *actor, ok bool) {
			if ok || !a.Keeps(OneByOne) {
				p.placed = fresh
			}
			p.key(0)
		}, nil)
	}
}

// plans reads the members and names the keys of the change.
func (a *act) plans(w *world, p *actor) {
	_, after := p.Plan(&w.entities, &a.changes[p.Change])
	if p.At = puts; !a.plain {
		p.left = after
		return
	}
	for k := range w.rows {
		if owner, _ := w.entities.Owner(k); after&(1<<k) != 0 && owner != keys.Nobody {
			w.End(a.I)
			return
		}
	}
}

// fresh returns the keys that the change adds, and for each the member that takes it.
func (a *act) fresh(p *actor) (added uint8, of [3]int8) {
	ch := &a.changes[p.Change]
	for e, to := range ch.To {
		if ch.Members&(1<<e) != 0 && to >= 0 && (p.left&(1<<to) != 0 || p.At == places) {
			added |= 1 << to
			of[to] = int8(e)
		}
	}
	return added, of
}

// reserves continues with the reservation of the remaining keys, or with the transaction.
func (p *actor) reserves() {
	switch {
	case p.left == 0:
		p.At = commit
	case p.left&(p.left-1) != 0 && !p.reserved && p.At == puts:
		p.At = together
	default:
		p.At = prepares
	}
}

// reserve reserves all remaining keys in one transaction or, if that was refused, the first of them.
func (a *act) reserve(p *actor, what string) {
	left, of := a.fresh(p)
	if p.At == prepares {
		left &= -left
	}
	q := request{keys: left}
	for k, e := range of {
		q.from[k], q.to[k] = keys.Free(), keys.Reserved(e, p.Change)
	}
	a.Sends(what, q, func(w *world, p *actor, ok bool) {
		switch {
		case ok:
			p.reserved = true
			p.left &^= left
			p.reserves()
		case p.At == together:
			p.At = prepares
		default:
			a.refused(w, p)
		}
	}, nil)
}

// refused ends a change that was not made: if it has reserved keys, the writer handles the message.
func (a *act) refused(w *world, p *actor) {
	if !p.reserved || !a.Keeps(Handle) {
		w.Finish(a.I)
		return
	}
	w.Handle(a.I, handles)
}

// key goes to the first named key from k on that was not written together, or to the closing read.
func (p *actor) key(k int8) {
	p.At, p.reserved, p.left = looks, false, 0
	if !p.Next(p.Keys&^p.placed, k) {
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
			switch _, does, plain := p.Decide(!a.Keeps(Own)); {
			case !does:
				p.key(p.N + 1)
			case plain:
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
		to, _, plain := p.Decide(!a.Keeps(Own))
		q := request{keys: 1 << p.N, etag: plain, same: p.Same}
		q.from[p.N], q.to[p.N] = p.There, to
		a.Sends("writes a key", q, func(_ *world, p *actor, ok bool) {
			p.There, p.Same, p.At = keys.Row{}, false, looks
			if ok {
				p.key(p.N + 1)
			}
		}, func(_ *world, p *actor) { p.Unsure = true }) // the holder sends it again
	case again:
		a.Does("reads a member again", a.readsAgain)
	case forgets:
		a.Does("ends its message", func(w *world, p *actor) {
			if p.Taken || p.Unsure && a.Keeps(Unsure) {
				w.Stop(a.I)
			} else {
				w.Finish(a.I)
			}
		})
	}
}

// readsAgain goes round if a member has changed since it was read.
func (a *act) readsAgain(w *world, p *actor) {
	switch was, is, last := p.Read(&w.entities); {
	case was != is:
		p.To(handles)
		if p.Taken = false; a.Keeps(Anew) {
			p.placed = 0
		}
	case last || !a.Keeps(All):
		p.To(forgets)
		p.placed = 0
	}
}
