package deferred

// step is the next request of an actor.
type step int8

const (
	done step = iota
	idle
	begins // the caller, between two changes
	reads
	puts
	prepares
	commit
	handles
	looks
	asks
	acts
	others // write the plain copies
	again
	forgets
)

var (
	who   = [actors]string{"the caller", "background 1", "background 2", "background 3", "the rival", "the worker"}
	whats = [...]string{"", "gets a message", "begins a change", "reads", "puts its message", "reserves", "commits", "reads a member", "looks at a key",
		"reads the owner again", "writes a key", "writes a plain copy", "reads a member again", "ends its message"}
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

// sends emits the states that does emits, for a write. It also emits the state in which the request gets no answer: a
// writer gives up before its commit, a holder sends it again, and does not delete the message at the end.
func (a *act) sends(q request, f func(w *world, p *actor, ok bool)) {
	q.change = a.from.actors[a.i].change
	a.does(func(w *world, p *actor) { f(w, p, w.service(a.World, &q)) })
	if a.from.lates > 0 && a.from.late.kind == noRequest {
		to := a.from
		to.lates--
		to.late = q
		if to.actors[a.i].at <= commit {
			to.stops(a.World, a.i)
		} else {
			to.actors[a.i].unsure = true
		}
		a.emit(to, who[a.i], "gets no answer")
	}
}

// stops ends an actor. Its message becomes visible.
func (w *world) stops(c *World, i int) {
	p := &w.actors[i]
	if m := &w.messages[p.change]; p.at > puts && m.state == 1 {
		m.state = 2
	}
	w.ends(c, i)
}

func (w *world) ends(c *World, i int) {
	n := w.actors[i].change
	w.actors[i] = actor{}
	switch i {
	case worker:
		w.actors[i].at = idle
	case caller:
		if int(n)+1 < len(c.changes) {
			w.actors[i] = actor{at: begins, change: n + 1}
		}
	}
}

func (w *world) wrote(k int8) {
	for i := range w.actors {
		if p := &w.actors[i]; p.n == k && p.at >= looks && p.at <= acts {
			p.same = false
		}
	}
	if w.late.key == k {
		w.late.same = false
	}
}

// service applies a request, and reports whether its conditions were met.
func (w *world) service(c *World, q *request) bool {
	r := &w.rows[q.key]
	switch q.kind {
	case copies:
		w.plain[q.key] = q.to.version
		return true
	case reserves:
		if r.owner != nobody {
			return false
		}
		*r = row{q.entity, 0, q.change}
	case commits:
		ch := c.change(q.change)
		for e := range w.entities {
			if ch.members&(1<<e) != 0 && w.entities[e].version != q.versions[e] {
				return false
			}
		}
		for e := range w.entities {
			if ch.members&(1<<e) != 0 {
				w.entities[e].version++
				if ch.to[e] != keep {
					w.entities[e].key = ch.to[e]
				}
			}
		}
		return true
	default:
		if q.etag && !q.same || !q.etag && (r.owner != q.from.owner || r.reserved != q.from.reserved) {
			return false
		}
		*r = q.to
	}
	w.wrote(q.key)
	return true
}

func (c *World) change(n int8) *change {
	if n == changes {
		return &c.rival
	}
	return &c.changes[n]
}

// next emits every state that one step can reach.
func (c *World) next(w world, emit func(to world, who, what string)) {
	for i := range w.actors {
		a := act{c, w, i, emit}
		a.step()
	}
	if w.late.kind != noRequest {
		to := w
		to.late = request{}
		emit(to, "a late request", "never arrives")
		q := w.late
		to.service(c, &q)
		emit(to, "a late request", "arrives")
	}
	if alive := w.actors[0].at != done || w.actors[1].at != done || w.actors[2].at != done || w.actors[3].at != done; alive && w.crashes > 0 {
		to := w
		to.crashes--
		for i := range rival {
			if to.actors[i].at != done {
				to.stops(c, i)
				to.actors[i] = actor{}
			}
		}
		emit(to, "the caller's process", "dies")
	}
}

func (a *act) step() {
	p := &a.from.actors[a.i]
	if p.at == done {
		return
	}
	if a.i != caller && a.from.crashes > 0 && p.at > reads && !p.lostOnce {
		to := a.from
		to.crashes--
		q := &to.actors[a.i]
		if m := &to.messages[q.change]; q.at > puts && m.state == 1 {
			m.state = 2
		}
		if q.lostOnce = true; a.keeps(Lease) || a.i >= rival {
			to.ends(a.World, a.i)
		}
		a.emit(to, who[a.i], "loses its lease")
	}
	switch {
	case p.at == idle:
		for m := range a.from.messages {
			if a.from.messages[m].state == 2 && (a.from.late.kind == noRequest || int(a.from.late.change) != m || !a.keeps(Lease)) {
				a.does(func(w *world, p *actor) {
					w.messages[m].state = 1
					*p = actor{at: handles, change: int8(m), members: w.messages[m].members, keys: w.messages[m].keys}
				})
			}
		}
	case p.at < handles:
		a.writer(p)
	default:
		a.holder(p)
	}
}

// waits reports whether the caller's next change waits for a background holder.
func (a *act) waits(p *actor) bool {
	for i := 1; i < rival; i++ {
		if b := &a.from.actors[i]; b.at != done && a.keeps(Wait) && b.members&a.change(p.change).members != 0 {
			return true
		}
	}
	return false
}

// writer makes the next request of a writer up to its transaction.
func (a *act) writer(p *actor) {
	ch := a.change(p.change)
	switch p.at {
	case begins:
		if !a.waits(p) {
			a.does(func(_ *world, p *actor) { p.at = reads })
		}
	case reads:
		a.does(a.plans)
	case puts:
		a.does(func(w *world, p *actor) {
			w.messages[p.change] = message{state: 1, members: p.members, keys: p.keys}
			p.at, p.n = prepares, 0
			a.prepared(p)
		})
	case prepares:
		e := p.n
		a.sends(request{kind: reserves, entity: e, key: ch.to[e]}, func(w *world, p *actor, ok bool) {
			if !ok {
				w.failed = w.failed || a.i == caller && a.alone(w) && a.rival.members == 0
				a.refused(w, p)
				return
			}
			p.reserved = true
			p.n++
			a.prepared(p)
		})
	case commit:
		q := request{kind: commits}
		for e := range p.seen {
			q.versions[e] = p.seen[e].version
		}
		a.sends(q, func(w *world, p *actor, ok bool) {
			if !ok {
				a.refused(w, p)
				return
			}
			for e := range p.seen {
				if p.members&(1<<e) == 0 {
					continue
				}
				p.seen[e] = w.entities[e]
				if a.i == caller {
					w.own[e] = w.entities[e].version
				}
			}
			p.reserved = false
			a.key(w, p, 0)
		})
	}
}

// plans reads the members and names the keys of the change.
func (a *act) plans(w *world, p *actor) {
	ch := a.change(p.change)
	p.members, p.at = ch.members, puts
	for e := range p.seen {
		if ch.members&(1<<e) == 0 {
			continue
		}
		p.seen[e] = w.entities[e]
		if a.i == caller {
			w.own[e] = 0
		}
		for _, k := range []int8{p.seen[e].key, ch.to[e]} {
			if k >= 0 {
				p.keys |= 1 << k
			}
		}
	}
}

// prepared makes the next member that takes a key the current one, or goes to the transaction.
func (a *act) prepared(p *actor) {
	ch := a.change(p.change)
	for ; p.n < 2; p.n++ {
		if to := ch.to[p.n]; ch.members&(1<<p.n) != 0 && to >= 0 && to != p.seen[p.n].key {
			return
		}
	}
	p.at, p.n = commit, 0
}

// refused ends a change that was not made: if it has reserved keys, the writer handles the message.
func (a *act) refused(w *world, p *actor) {
	if !p.reserved {
		w.messages[p.change] = message{}
		w.ends(a.World, a.i)
		return
	}
	*p = actor{at: handles, change: p.change, members: p.members, keys: p.keys, unsure: p.unsure, lostOnce: true}
}

// key goes to the first named key from k on, then to the plain copies, then to the closing read.
func (a *act) key(w *world, p *actor, k int8) {
	for k < 2 && (p.keys&(1<<k) == 0 || p.rest) {
		k++
	}
	p.n, p.at, p.there, p.same = k, looks, row{}, false
	if k < 2 {
		return
	}
	if p.n, p.at = 0, again; a.marker && p.members&(1<<x) != 0 {
		if a.i != caller || p.lostOnce {
			p.at = others
			a.plainKey(p)
			return
		}
		m := &w.messages[p.change]
		m.marked, m.marker, m.state = (p.seen[x].key != noKey || !a.keeps(Present)) && !p.unsure, p.seen[x], 2
		w.ends(a.World, a.i)
		return
	}
	if a.i == caller && !p.lostOnce { // the writer returns, and its background holder goes on
		b := *p
		b.late = !a.keeps(Release)
		if b.late {
			b.at, b.n = looks, 0
			for b.keys&(1<<b.n) == 0 {
				b.n++
			}
		}
		w.actors[1+p.change] = b
		w.ends(a.World, a.i)
	}
}

// plainKey goes to the first named plain copy from p.n on, or to the closing read.
func (a *act) plainKey(p *actor) {
	for ; p.n < 2; p.n++ {
		if p.keys&(1<<p.n) != 0 {
			return
		}
	}
	p.n, p.at = 0, again
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
			p.there, p.same = w.rows[p.n], true
			switch _, does, plain := a.decide(p); {
			case !does:
				a.key(w, p, p.n+1)
			case plain:
				p.at = asks
			default:
				p.at = acts
			}
		})
	case asks:
		a.does(func(w *world, p *actor) {
			if p.at = acts; w.entities[p.there.owner].key == p.n {
				a.key(w, p, p.n+1)
			}
		})
	case acts:
		to, _, plain := a.decide(p)
		a.sends(request{kind: writes, key: p.n, from: p.there, to: to, etag: plain, same: p.same}, func(w *world, p *actor, ok bool) {
			p.there, p.same, p.at = row{}, false, looks
			if ok {
				a.key(w, p, p.n+1)
			}
		})
	case others:
		q := request{kind: copies, key: p.n}
		if p.seen[x].key == p.n {
			q.to.version = p.seen[x].version
		}
		a.sends(q, func(_ *world, p *actor, _ bool) {
			p.n++
			a.plainKey(p)
		})
	case forgets:
		a.does(func(w *world, p *actor) {
			m := &w.messages[p.change]
			switch {
			case p.lostOnce && a.i > caller && a.i < rival: // the lease is lost: another holder has the message
			case p.taken || p.unsure && a.keeps(Unsure):
				m.state = 2
			default:
				*m = message{}
			}
			w.ends(a.World, a.i)
		})
	}
}

func (a *act) readsMember(w *world, p *actor, e int8) {
	if p.at == again && !w.entities[e].same(p.seen[e]) && (a.keeps(Again) || a.i >= rival) {
		rest := p.rest && !a.keeps(Whole)
		p.at, p.n, p.seen, p.taken, p.late, p.rest = handles, 0, [2]entity{}, false, false, rest
		return
	}
	first := p.at == handles
	p.seen[e] = w.entities[e]
	if p.n = e + 1; p.members>>p.n != 0 {
		return
	}
	if !first {
		p.at, p.n, p.seen = forgets, 0, [2]entity{}
		return
	}
	m := &w.messages[p.change]
	p.rest = p.rest || m.marked && (m.marker.same(p.seen[x]) || !a.keeps(Whole))
	p.taken = false
	a.key(w, p, 0)
}

// decide returns the row that the holder's message asks for under a key, and whether there is anything to
// write. plain says that the holder deletes a filled copy, which it does under the copy's ETag after it has
// read the owner again.
func (a *act) decide(p *actor) (to row, does, plain bool) {
	k, r, has := p.n, p.there, int8(nobody)
	for e := range p.seen {
		if p.members&(1<<e) != 0 && p.seen[e].key == k {
			has = int8(e)
		}
	}
	mine := r.reserved == nobody || r.reserved == p.change
	switch {
	case has == nobody:
		later := a.i == caller && !a.keeps(Release)
		return free, r.owner != nobody && p.members&(1<<r.owner) != 0 && mine && !later, r.reserved == nobody
	case r.owner == nobody || r.owner == has:
		return row{has, p.seen[has].version, nobody}, r.owner == nobody || mine, false
	}
	p.taken = true
	return r, false, false
}
