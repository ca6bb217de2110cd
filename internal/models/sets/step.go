package sets

// step is the next request of an actor.
type step int8

const (
	done step = iota
	idle
	reads
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

var (
	who   = [...]string{"writer 1", "writer 2", "writer 3", "the worker"}
	whats = [...]string{"", "gets a message", "reads", "puts its message", "reserves together", "reserves one key", "commits", "fills together",
		"reads a member", "looks at a key", "reads the owner again", "writes a key", "reads a member again", "ends its message"}
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
// the transaction the writer gives up, and so does the holder of a joint write; a holder sends a single write
// again, and does not delete the message at the end.
func (a *act) sends(q request, f func(w *world, p *actor, ok bool)) {
	q.change = a.from.actors[a.i].change
	a.does(func(w *world, p *actor) { f(w, p, w.service(a.World, &q)) })
	if a.from.lates > 0 && !a.from.waits {
		to := a.from
		to.lates--
		to.late, to.waits = q, true
		if p := &to.actors[a.i]; p.at <= places {
			to.stops(a.i)
		} else {
			p.unsure = true
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
					w.entities[e].key = ch.to[e]
				}
			}
		}
		return true
	}
	for k := range w.rows {
		claimed := w.rows[k].owner == q.from[k].owner && w.rows[k].reserved == q.from[k].reserved
		if q.keys&(1<<k) != 0 && !q.blind && (q.etag && !q.same || !q.etag && !claimed) {
			return false
		}
	}
	for k := range w.rows {
		if q.keys&(1<<k) == 0 {
			continue
		}
		w.rows[k] = q.to[k]
		for i := range w.actors {
			if p := &w.actors[i]; int(p.n) == k && p.at >= looks && p.at <= acts {
				p.same = false
			}
		}
		if w.late.keys&(1<<k) != 0 {
			w.late.same = false
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
	if p.at == done {
		return
	}
	if a.from.crashes > 0 && p.at > reads {
		to := a.from
		to.crashes--
		to.stops(a.i)
		a.emit(to, who[a.i], "dies")
	}
	switch {
	case p.at == idle:
		for m := range a.from.messages {
			if a.from.messages[m].state == 2 && (!a.from.waits || int(a.from.late.change) != m || !a.keeps(Lease)) {
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

// fresh returns the keys that the change adds, and for each the member that takes it.
func (a *act) fresh(p *actor) (keys uint8, of [3]int8) {
	ch := &a.changes[p.change]
	for e, to := range ch.to {
		if ch.members&(1<<e) != 0 && to >= 0 && (p.left&(1<<to) != 0 || p.at == places) {
			keys |= 1 << to
			of[to] = int8(e)
		}
	}
	return keys, of
}

// writer makes the next request of a writer up to the joint write of its new copies.
func (a *act) writer(p *actor) {
	switch p.at {
	case reads:
		if first := a.from.actors[0].at; a.plain && a.i == z && first > idle && first <= commit {
			return
		}
		a.does(a.plans)
	case puts:
		a.does(func(w *world, p *actor) {
			w.messages[p.change] = message{1, p.members, p.keys}
			p.reserves()
		})
	case together, prepares:
		a.reserve(p)
	case commit:
		q := request{commits: true}
		for e := range p.seen {
			q.versions[e] = p.seen[e].version
		}
		a.sends(q, func(w *world, p *actor, ok bool) {
			if !ok {
				a.refused(w, p)
				return
			}
			for e := range p.seen {
				if p.members&(1<<e) != 0 {
					p.seen[e] = w.entities[e]
				}
			}
			p.at = places
			if keys, _ := a.fresh(p); keys&(keys-1) == 0 {
				p.key(0)
			}
		})
	case places:
		keys, of := a.fresh(p)
		q := request{keys: keys, blind: !a.keeps(Claims)}
		for k, e := range of {
			q.from[k], q.to[k] = row{e, 0, p.change}, row{e, p.seen[e].version, nobody}
			if a.plain {
				q.from[k] = free
			}
		}
		a.sends(q, func(_ *world, p *actor, ok bool) {
			if ok || !a.keeps(OneByOne) {
				p.placed = keys
			}
			p.key(0)
		})
	}
}

// plans reads the members and names the keys of the change.
func (a *act) plans(w *world, p *actor) {
	ch := &a.changes[p.change]
	p.members, p.at = ch.members, puts
	for e := range p.seen {
		if ch.members&(1<<e) == 0 {
			continue
		}
		p.seen[e] = w.entities[e]
		if k := p.seen[e].key; k != noKey {
			p.keys |= 1 << k
		}
		if to := ch.to[e]; to >= 0 {
			p.keys |= 1 << to
			if to != p.seen[e].key && !a.plain {
				p.left |= 1 << to
			}
			for _, other := range w.entities {
				if a.plain && other.key == to && to != p.seen[e].key {
					w.ends(a.i)
					return
				}
			}
		}
	}
}

// reserves continues with the reservation of the remaining keys, or with the transaction.
func (p *actor) reserves() {
	switch {
	case p.left == 0:
		p.at = commit
	case p.left&(p.left-1) != 0 && !p.reserved && p.at == puts:
		p.at = together
	default:
		p.at = prepares
	}
}

// reserve reserves all remaining keys in one transaction or, if that was refused, the first of them.
func (a *act) reserve(p *actor) {
	keys, of := a.fresh(p)
	if p.at == prepares {
		keys &= -keys
	}
	q := request{keys: keys}
	for k, e := range of {
		q.from[k], q.to[k] = free, row{e, 0, p.change}
	}
	a.sends(q, func(w *world, p *actor, ok bool) {
		switch {
		case ok:
			p.reserved = true
			p.left &^= keys
			p.reserves()
		case p.at == together:
			p.at = prepares
		default:
			a.refused(w, p)
		}
	})
}

// refused ends a change that was not made: if it has reserved keys, the writer handles the message.
func (a *act) refused(w *world, p *actor) {
	if !p.reserved || !a.keeps(Handle) {
		w.messages[p.change] = message{}
		w.ends(a.i)
		return
	}
	*p = actor{at: handles, change: p.change, members: p.members, keys: p.keys}
}

// key goes to the first named key from k on that was not written together, or to the closing read.
func (p *actor) key(k int8) {
	for k < 3 && (p.keys&^p.placed)&(1<<k) == 0 {
		k++
	}
	p.n, p.at, p.there, p.same, p.reserved, p.left = k, looks, row{}, false, false, 0
	if k == 3 {
		p.n, p.at = 0, again
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
			p.there, p.same = w.rows[p.n], true
			switch _, does, plain := a.decide(p); {
			case !does:
				p.key(p.n + 1)
			case plain:
				p.at = asks
			default:
				p.at = acts
			}
		})
	case asks:
		a.does(func(w *world, p *actor) {
			if p.at = acts; w.entities[p.there.owner].key == p.n {
				p.key(p.n + 1)
			}
		})
	case acts:
		to, _, plain := a.decide(p)
		q := request{keys: 1 << p.n, etag: plain, same: p.same}
		q.from[p.n], q.to[p.n] = p.there, to
		a.sends(q, func(_ *world, p *actor, ok bool) {
			p.there, p.same, p.at = row{}, false, looks
			if ok {
				p.key(p.n + 1)
			}
		})
	case forgets:
		a.does(func(w *world, p *actor) {
			m := &w.messages[p.change]
			if m.state = 2; !p.taken && !(p.unsure && a.keeps(Unsure)) {
				*m = message{}
			}
			w.ends(a.i)
		})
	}
}

func (a *act) readsMember(w *world, p *actor, e int8) {
	if p.at == again && w.entities[e] != p.seen[e] {
		p.at, p.n, p.seen, p.taken = handles, 0, [3]entity{}, false
		if a.keeps(Anew) {
			p.placed = 0
		}
		return
	}
	first := p.at == handles
	p.seen[e] = w.entities[e]
	if p.n = e + 1; p.members>>p.n != 0 && (first || a.keeps(All)) {
		return
	}
	if !first {
		p.at, p.n, p.seen, p.placed = forgets, 0, [3]entity{}, 0
		return
	}
	p.taken = false
	p.key(0)
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
	mine := r.reserved == nobody || r.reserved == p.change || !a.keeps(Own)
	switch {
	case has == nobody:
		return free, r.owner != nobody && p.members&(1<<r.owner) != 0 && mine, r.reserved == nobody
	case r.owner == nobody || r.owner == has:
		return row{has, p.seen[has].version, nobody}, r.owner == nobody || mine, false
	}
	p.taken = true
	return r, false, false
}
