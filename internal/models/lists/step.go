package lists

import "math/bits"

// step is the next request of an actor.
type step int8

const (
	done step = iota
	idle
	reads
	puts
	commit
	handles
	looks
	acts
	again
	forgets
)

var (
	who   = [...]string{"writer 1", "writer 2", "writer 3", "the worker"}
	whats = [...]string{"", "gets a message", "reads", "puts its message", "commits", "reads a member", "reads a row", "writes rows", "reads a member again", "ends its message"}
)

type act struct {
	*World
	from world
	i    int
	emit func(to world, who, what string)
}

func (a *act) does(f func(*world, *actor)) {
	to := a.from
	at := to.actors[a.i].at
	f(&to, &to.actors[a.i])
	a.emit(to, who[a.i], whats[at])
}

// sends emits the states that does emits, for a write. It also emits the state in which the request gets no answer: before
// the transaction the writer gives up, and a holder reads the list again, and does not delete the message at
// the end.
func (a *act) sends(q request, f func(w *world, p *actor, ok bool)) {
	q.change = a.from.actors[a.i].change
	a.does(func(w *world, p *actor) { f(w, p, w.service(a.World, &q)) })
	if a.from.lates > 0 && !a.from.waits {
		to := a.from
		to.lates--
		to.late, to.waits = q, true
		if p := &to.actors[a.i]; p.at == commit {
			to.stops(a.i)
		} else {
			p.unsure = true
			p.look()
		}
		a.emit(to, who[a.i], "gets no answer")
	}
}

// stops ends an actor that has crashed or gives up. Its message becomes visible.
func (w *world) stops(i int) {
	p := &w.actors[i]
	if m := &w.messages[p.change]; p.at > puts && m.state == 1 {
		m.state = 2
	}
	w.ends(i)
}

func (w *world) ends(i int) {
	w.actors[i] = actor{}
	if i == worker {
		w.actors[i].at = idle
	}
}

// service applies a request, and reports whether the conditions of all its rows were met.
func (w *world) service(c *World, q *request) bool {
	if q.commits {
		ch := &c.changes[q.change]
		for e := range w.entities {
			if ch.members&(1<<e) != 0 && w.entities[e].version != q.versions[e] {
				return false
			}
		}
		for e := range w.entities {
			if ch.members&(1<<e) != 0 {
				w.entities[e].version++
				if ch.to[e] != keep {
					w.entities[e].list = ch.to[e]
				}
			}
		}
		return true
	}
	for r := range q.to {
		inserts := q.inserts&(1<<r) != 0
		if q.write&(1<<r) != 0 && (inserts && c.keeps(Fresh) && w.lists[q.list][r] != 0 || !inserts && c.keeps(ETags) && q.same&(1<<r) == 0) {
			return false
		}
	}
	for r := range q.to {
		if q.write&(1<<r) == 0 {
			continue
		}
		w.lists[q.list][r] = q.to[r]
		for i := range w.actors {
			if p := &w.actors[i]; p.list == q.list {
				p.same &^= 1 << r
			}
		}
		if w.waits && w.late.list == q.list {
			w.late.same &^= 1 << r
		}
	}
	return true
}

// next emits every state that one step can reach.
func (c *World) next(w world, emit func(to world, who, what string)) {
	for i := range w.actors {
		a := act{c, w, i, emit}
		a.step()
	}
	if w.waits {
		to := w
		to.late, to.waits = request{}, false
		emit(to, "a late request", "never arrives")
		q := w.late
		to.service(c, &q)
		emit(to, "a late request", "arrives")
	}
}

func (a *act) step() {
	p := &a.from.actors[a.i]
	if a.from.crashes > 0 && p.at > reads {
		to := a.from
		to.crashes--
		to.stops(a.i)
		a.emit(to, who[a.i], "dies")
	}
	ch := &a.changes[min(int(p.change), len(a.changes)-1)]
	switch p.at {
	case idle:
		for m := range a.from.messages {
			if a.from.messages[m].state == 2 && (!a.from.waits || int(a.from.late.change) != m || !a.keeps(Lease)) {
				a.does(func(w *world, p *actor) {
					w.messages[m].state = 1
					*p = actor{at: handles, change: int8(m), members: w.messages[m].members, lists: w.messages[m].lists}
				})
			}
		}
	case reads:
		a.does(func(w *world, p *actor) {
			p.members, p.at = ch.members, puts
			for e, to := range ch.to {
				if ch.members&(1<<e) == 0 {
					continue
				}
				p.seen[e] = w.entities[e]
				for _, l := range []int8{p.seen[e].list, to} {
					if l >= 0 {
						p.lists |= 1 << l
					}
				}
			}
		})
	case puts:
		a.does(func(w *world, p *actor) { w.messages[p.change], p.at = message{1, p.members, p.lists}, commit })
	case commit:
		q := request{commits: true}
		for e := range p.seen {
			q.versions[e] = p.seen[e].version
		}
		a.sends(q, func(w *world, p *actor, ok bool) {
			if p.at, p.seen = handles, [3]entity{}; !ok {
				w.messages[p.change] = message{}
				w.ends(a.i)
			}
		})
	case handles, again, looks, acts, forgets:
		a.holder(p)
	}
}

// holder makes the next request of a process that handles a message.
func (a *act) holder(p *actor) {
	switch p.at {
	case handles, again:
		e := p.n
		for p.members&(1<<e) == 0 {
			e++
		}
		a.does(func(w *world, p *actor) { a.readsMember(w, p, e) })
	case looks:
		a.does(func(w *world, p *actor) {
			p.rows[p.n] = w.lists[p.list][p.n]
			p.same |= 1 << p.n
			if p.n++; int(p.n) == len(p.rows) {
				p.n = 0
				a.decided(p)
			}
		})
	case acts:
		to, write := a.edited(p)
		together := bits.OnesCount8(p.members) > 1 && !p.alone
		if !together {
			write &= -write // the first row
		}
		q := request{list: p.list, write: write, same: p.same & write, to: to}
		for r := range to {
			if write&(1<<r) == 0 {
				q.to[r] = 0
			} else if p.rows[r] == 0 {
				q.inserts |= 1 << r
			}
		}
		a.sends(q, func(_ *world, p *actor, ok bool) {
			switch {
			case together && (ok || !a.keeps(OneByOne)):
				a.next(p)
			case together:
				p.alone = true
				p.look()
			default:
				p.look()
			}
		})
	case forgets:
		a.does(func(w *world, p *actor) {
			m := &w.messages[p.change]
			if m.state = 2; !(p.unsure && a.keeps(Unsure)) {
				*m = message{}
			}
			w.ends(a.i)
		})
	}
}

func (a *act) readsMember(w *world, p *actor, e int8) {
	if p.at == again && w.entities[e] != p.seen[e] && a.keeps(Again) {
		p.at, p.n, p.seen = handles, 0, [3]entity{}
		return
	}
	first := p.at == handles
	if first {
		p.seen[e] = w.entities[e]
	}
	if p.n = e + 1; p.members>>p.n != 0 && (first || a.keeps(All)) {
		return
	}
	p.n = 0
	if !first {
		p.at, p.seen = forgets, [3]entity{}
		return
	}
	p.list, p.leaving = -1, !a.keeps(Enter)
	a.next(p)
}

// look makes the actor read its list.
func (p *actor) look() { p.at, p.n, p.rows, p.same = looks, 0, list{}, 0 }

// next makes the actor continue with the next list: first the lists that members enter, then the lists that
// they leave.
func (a *act) next(p *actor) {
	p.alone = false
	for p.list++; p.list < 2; p.list++ {
		in, out := p.split(p.list)
		if p.lists&(1<<p.list) != 0 && (p.leaving && out != 0 || !p.leaving && in != 0 || !a.keeps(Enter) && in != 0) {
			p.look()
			return
		}
	}
	if p.leaving {
		p.at, p.n, p.rows, p.same, p.list, p.leaving = again, 0, list{}, 0, 0, false
		return
	}
	p.leaving, p.list = true, -1
	a.next(p)
}

// split returns the actor's members that belong to a list, and the others.
func (p *actor) split(l int8) (in, out uint8) {
	for e := range p.seen {
		if p.members&(1<<e) != 0 {
			if p.seen[e].list == l {
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
		for e := range p.seen {
			if p.seen[e].list >= 0 {
				out &^= 1 << e
			}
		}
	}
	to = p.rows
	for e := range p.seen {
		switch bit := row(1 << e); {
		case in&(1<<e) != 0:
			to.enter(bit)
		case out&(1<<e) != 0:
			for r := range to {
				had := to[r]&bit != 0
				if to[r] &^= bit; had && !a.keeps(Everywhere) {
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
	p.at = acts
}
