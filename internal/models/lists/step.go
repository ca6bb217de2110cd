package lists

import (
	"math/bits"

	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The steps of an actor, in the order of the protocol.
const (
	reads messages.Step = messages.First + iota
	puts
	commit
	handles
	looks
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
	for r := range q.to {
		inserts := q.inserts&(1<<r) != 0
		if q.write&(1<<r) != 0 && (inserts && c.Keeps(Fresh) && w.lists[q.list][r] != 0 || !inserts && c.Keeps(ETags) && q.same&(1<<r) == 0) {
			return false
		}
	}
	for r := range q.to {
		if q.write&(1<<r) == 0 {
			continue
		}
		w.lists[q.list][r] = q.to[r]
		for i := range w.Actors {
			if p := &w.Actors[i]; p.list == q.list {
				p.same &^= 1 << r
			}
		}
		if w.Waits && w.Late.list == q.list {
			w.Late.same &^= 1 << r
		}
	}
	return true
}

func (c *World) step(b *base) {
	a := &act{c, b}
	p := a.Actor()
	switch p.At {
	case reads:
		a.Does("reads", func(w *world, p *actor) {
			p.Plan(&w.entities, &a.changes[p.Change])
			p.At = puts
		})
	case puts:
		a.Does("puts its message", func(w *world, p *actor) {
			w.Put(a.I)
			p.At = commit
		})
	case commit: // without an answer, the writer gives up
		q := request{commits: true, change: p.Change, versions: p.Seen.Versions()}
		a.Sends("commits", q, func(w *world, p *actor, ok bool) {
			if p.To(handles); !ok {
				w.Finish(a.I)
			}
		}, nil)
	default:
		a.holder(p)
	}
}

// holder makes the next request of a process that handles a message.
func (a *act) holder(p *actor) {
	switch p.At {
	case handles:
		a.Does("reads a member", func(w *world, p *actor) {
			if _, _, last := p.Read(&w.entities); last {
				p.N, p.list, p.leaving = 0, -1, !a.Keeps(Enter)
				a.next(p)
			}
		})
	case looks:
		a.Does("reads a row", func(w *world, p *actor) {
			p.rows[p.N] = w.lists[p.list][p.N]
			p.same |= 1 << p.N
			if p.N++; int(p.N) == len(p.rows) {
				p.N = 0
				a.decided(p)
			}
		})
	case acts:
		a.writes(p)
	case again:
		a.Does("reads a member again", func(w *world, p *actor) {
			switch was, is, last := p.Read(&w.entities); {
			case was != is && a.Keeps(Again):
				p.To(handles)
			case last || !a.Keeps(All):
				p.To(forgets)
			}
		})
	case forgets:
		a.Does("ends its message", func(w *world, p *actor) {
			if p.Unsure && a.Keeps(Unsure) {
				w.Stop(a.I)
			} else {
				w.Finish(a.I)
			}
		})
	}
}

// writes writes the rows of the list that differ: all in one transaction if there are several members, unless the service has
// refused that; else the first row. Without an answer, the holder reads the list again.
func (a *act) writes(p *actor) {
	to, write := a.edited(p)
	together := bits.OnesCount8(p.Members) > 1 && !p.alone
	if !together {
		write &= -write
	}
	q := request{list: p.list, write: write, same: p.same & write, to: to}
	for r := range to {
		if write&(1<<r) == 0 {
			q.to[r] = 0
		} else if p.rows[r] == 0 {
			q.inserts |= 1 << r
		}
	}
	a.Sends("writes rows", q, func(_ *world, p *actor, ok bool) {
		if together && (ok || !a.Keeps(OneByOne)) {
			a.next(p)
			return
		}
		p.alone = p.alone || together
		p.look()
	}, func(_ *world, p *actor) {
		p.Unsure = true
		p.look()
	})
}

// look makes the actor read its list.
func (p *actor) look() { p.At, p.N, p.rows, p.same = looks, 0, list{}, 0 }

// next makes the actor continue with the next list: first the lists that members enter, then the lists that
// they leave.
func (a *act) next(p *actor) {
	p.alone = false
	for p.list++; p.list < 2; p.list++ {
		in, out := p.split(p.list)
		if p.Keys&(1<<p.list) != 0 && (p.leaving && out != 0 || !p.leaving && in != 0 || !a.Keeps(Enter) && in != 0) {
			p.look()
			return
		}
	}
	if p.leaving {
		p.At, p.N, p.rows, p.same, p.list, p.leaving = again, 0, list{}, 0, 0, false
		return
	}
	p.leaving, p.list = true, -1
	a.next(p)
}

// split returns the actor's members that belong to a list, and the others.
func (p *actor) split(l int8) (in, out uint8) {
	for e := range p.Seen {
		if p.Members&(1<<e) != 0 {
			if p.Seen[e].Key == l {
				in |= 1 << e
			} else {
				out |= 1 << e
			}
		}
	}
	return in, out
}

// edited returns the rows that the actor's list must have, and which of them differ from the present rows.
func (a *act) edited(p *actor) (to list, write uint8) {
	in, out := p.split(p.list)
	if !p.leaving { // do not remove members that enter another list: they leave this list later
		for e := range p.Seen {
			if p.Seen[e].Key >= 0 {
				out &^= 1 << e
			}
		}
	}
	to = p.rows
	for e := range p.Seen {
		switch bit := row(1 << e); {
		case in&(1<<e) != 0:
			to.enter(bit)
		case out&(1<<e) != 0:
			for r := range to {
				had := to[r]&bit != 0
				if to[r] &^= bit; had && !a.Keeps(Everywhere) {
					break
				}
			}
		}
	}
	for r := range to {
		if to[r] != p.rows[r] {
			write |= 1 << r
		}
	}
	return to, write
}

// enter adds a member to the first row with room, unless a row has it. If the first row already has the
// member, enter removes the member from the second row.
func (l *list) enter(bit row) {
	switch {
	case l[0]&bit != 0:
		l[1] &^= bit
	case l[1]&bit != 0:
	case l[0] != 0 && bits.OnesCount8(uint8(l[0])) < room:
		l[0] |= bit
	case l[1] != 0 && bits.OnesCount8(uint8(l[1])) < room:
		l[1] |= bit
	case l[0] == 0:
		l[0] = bit
	default:
		l[1] |= bit
	}
}

// decided begins the next request after a list was read.
func (a *act) decided(p *actor) {
	if _, write := a.edited(p); write == 0 {
		a.next(p)
		return
	}
	p.At = acts
}
