package passing

// step is the next request of an actor.
type step int8

const (
	done step = iota
	idle      // a worker without a message
	reads
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

var (
	who   = [actors]string{"writer 1", "writer 2", "writer 3", "worker 1", "worker 2"}
	whats = [...]string{"", "gets a message", "reads", "puts its message", "prepares a key", "commits", "reads a member", "looks at a key", "reads the owner again",
		"writes a key", "reads a member again", "ends its message"}
	deaths = [...]string{"", "", "dies before it reads", "dies before it puts its message", "dies before it prepares a key", "dies before it commits",
		"dies before it reads a member", "dies before it looks at a key", "dies before it reads the owner again", "dies before it writes a key",
		"dies before it reads a member again", "dies before it ends its message"}
	lates = [...]string{"", "", "", "", "prepares a key, gets no answer and gives up", "commits, gets no answer and gives up", "", "", "",
		"writes a key, gets no answer and gives up", "", ""}
)

// act is one step of an actor.
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

// sends emits the states that does emits, for a write. It also emits the state in which the request arrives late.
func (a *act) sends(q request, f func(w *world, p *actor, ok bool)) {
	q.slot = a.from.actors[a.i].slot
	a.does(func(w *world, p *actor) {
		ok := a.service(w, &q)
		f(w, p, ok)
	})
	if a.from.lates > 0 && a.from.late.kind == noRequest {
		to := a.from
		at := to.actors[a.i].at
		to.lates--
		to.late = q
		to.stops(a.i)
		a.emit(to, who[a.i], lates[at])
	}
}

// stops ends an actor that has crashed, or lost its lease. Its message becomes visible.
func (w *world) stops(i int) {
	p := &w.actors[i]
	if m := &w.messages[p.slot]; p.at > puts && m.state == 1 {
		m.state = 2
	}
	w.ends(i)
}

func (w *world) ends(i int) {
	w.actors[i] = actor{}
	if i >= writers {
		w.actors[i].at = idle
	}
}

// wrote records that a row was written.
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
func (c *World) service(w *world, q *request) bool {
	switch r := &w.rows[q.key]; q.kind {
	case marks:
		if r.owner != q.entity || r.reserved != nobody || r.passes != nobody {
			return false
		}
		r.passes = q.change
		w.wrote(q.key)
		return true
	case reserves:
		if r.owner != nobody {
			return false
		}
		*r = row{q.entity, 0, q.change, nobody}
		w.wrote(q.key)
		return true
	case commits:
		return c.commits(w, q)
	default:
		claimed := r.owner == q.from.owner && r.reserved == q.from.reserved && r.passes == q.from.passes
		if q.etag && !q.same || !q.etag && !claimed {
			return false
		}
		*r = q.to
		w.wrote(q.key)
		return true
	}
}

func (c *World) commits(w *world, q *request) bool {
	ch := &c.changes[q.change]
	for e := range w.entities {
		if ch.members&(1<<e) != 0 && w.entities[e].version != q.versions[e] {
			return false
		}
	}
	for e := range w.entities {
		if ch.members&(1<<e) == 0 {
			continue
		}
		w.entities[e].version++
		if ch.to[e] != keep {
			w.entities[e].key = ch.to[e]
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
	if w.late.kind != noRequest {
		to := w
		to.late = request{}
		emit(to, "a late request", "never arrives")
		q := w.late
		c.service(&to, &q)
		emit(to, "a late request", "arrives")
	}
	for m := range w.messages {
		underWay := w.late.kind != noRequest && int(w.late.slot) == m
		if w.messages[m].state == 2 && w.poisons > 0 && !underWay && w.rows[keyA].passes == w.messages[m].change { // for other lost messages, Verify must find the difference
			to := w
			to.poisons--
			to.messages[m] = message{}
			emit(to, "a message", "is lost")
		}
	}
	if c.repairs > 0 {
		c.time(&w, emit)
	}
}

// time emits the end of a change's deadline, and what Repair does about rows that a change has marked or reserved.
func (c *World) time(w *world, emit func(to world, who, what string)) {
	for i := range c.changes {
		bit := uint8(1) << i
		if w.over&bit == 0 && !(w.late.kind == commits && int(w.late.change) == i) {
			to := *w
			to.over |= bit
			emit(to, "a deadline", "passes")
		}
	}
	for k, r := range w.rows {
		by := max(r.reserved, r.passes)
		if by == nobody || w.repairs == 0 || w.messages[repairing].state != 0 || w.over&(1<<by) == 0 && c.keeps(Deadline) {
			continue
		}
		to := *w
		to.repairs--
		members := uint8(1) << r.owner
		if r.passes != nobody && c.keeps(Taker) {
			members = c.changes[by].members
		}
		to.messages[repairing] = message{2, by, members, 1 << k}
		emit(to, "Repair", "puts an intent of the change that a row names")
	}
}

func (a *act) step() {
	p := &a.from.actors[a.i]
	if p.at == done {
		return
	}
	if a.from.crashes > 0 && p.at > idle {
		to := a.from
		to.crashes--
		to.stops(a.i)
		a.emit(to, who[a.i], deaths[p.at])
	}
	switch {
	case p.at == idle:
		a.gets()
	case p.at < handles:
		a.writer(p)
	default:
		a.holder(p)
	}
}

func (a *act) gets() {
	for m := range a.from.messages {
		if a.from.messages[m].state != 2 || a.from.late.kind != noRequest && int(a.from.late.slot) == m && a.keeps(Lease) {
			continue
		}
		a.does(func(w *world, p *actor) {
			w.messages[m].state = 1
			g := w.messages[m]
			*p = actor{at: handles, slot: int8(m), change: g.change, members: g.members, keys: g.keys}
		})
	}
}

// writer makes the next request of a writer that has not finished its transaction.
func (a *act) writer(p *actor) {
	ch := &a.changes[p.change]
	switch p.at {
	case reads: // read all members in one step: their order does not matter, since the transaction checks all ETags
		a.does(func(w *world, p *actor) {
			p.seen, p.members, p.at = w.entities, ch.members, puts
			for e := range p.seen {
				if p.members&(1<<e) == 0 {
					p.seen[e] = entity{}
				}
			}
			a.plan(p)
		})
	case puts:
		a.does(func(w *world, p *actor) {
			w.messages[p.slot] = message{1, p.change, p.members, p.keys}
			p.at = prepares
			if p.marks|p.takes == 0 {
				p.at = commit
			}
		})
	case prepares:
		a.prepares(p)
	case commit:
		if a.from.over&(1<<p.change) != 0 && p.prepare && a.keeps(Deadline) {
			a.does(func(w *world, p *actor) { p.refused(w, a) })
			return
		}
		q := request{kind: commits, change: p.change}
		for e := range p.seen {
			q.versions[e] = p.seen[e].version
		}
		a.sends(q, func(w *world, p *actor, ok bool) {
			if !ok {
				p.refused(w, a)
				return
			}
			for e := range p.seen {
				if p.members&(1<<e) != 0 {
					p.seen[e] = w.entities[e]
				}
			}
			p.prepare = false
			p.key(0)
		})
	}
}

// plan determines the keys that the change names, the keys that pass between its members, and the other keys
// that it takes.
func (a *act) plan(p *actor) {
	ch := &a.changes[p.change]
	var before, after uint8
	for e := range p.seen {
		if p.members&(1<<e) == 0 {
			continue
		}
		k, to := p.seen[e].key, ch.to[e]
		if k != noKey {
			before |= 1 << k
			p.keys |= 1 << k
		}
		if to >= 0 {
			p.keys |= 1 << to
			if to != k {
				after |= 1 << to
			}
		}
	}
	p.takes = after &^ before
	if a.keeps(Mark) {
		p.marks = after & before
	}
}

// prepares marks or reserves the first key that the actor has not yet marked or reserved.
func (a *act) prepares(p *actor) {
	ch := &a.changes[p.change]
	k := int8(0)
	for (p.marks|p.takes)&(1<<k) == 0 {
		k++
	}
	q := request{kind: reserves, change: p.change, key: k}
	if p.marks&(1<<k) != 0 {
		q.kind = marks
	}
	for e := range p.seen {
		if p.members&(1<<e) != 0 && (q.kind == marks && p.seen[e].key == k || q.kind == reserves && ch.to[e] == k) {
			q.entity = int8(e)
		}
	}
	a.sends(q, func(w *world, p *actor, ok bool) {
		if !ok {
			p.refused(w, a)
			return
		}
		p.prepare = true
		p.marks &^= 1 << k
		p.takes &^= 1 << k
		if p.marks|p.takes == 0 {
			p.at = commit
		}
	})
}

// refused ends a change that was not made: if it has prepared keys, the writer handles the message.
func (p *actor) refused(w *world, a *act) {
	if !p.prepare || !a.keeps(GiveBack) {
		w.messages[p.slot] = message{}
		w.ends(a.i)
		return
	}
	*p = actor{at: handles, slot: p.slot, change: p.change, members: p.members, keys: p.keys}
}

// key goes to the first named key from k on, or to the closing read.
func (p *actor) key(k int8) {
	for k < 2 && p.keys&(1<<k) == 0 {
		k++
	}
	p.n, p.at, p.there, p.same = k, looks, row{}, false
	if k == 2 {
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
			switch _, does, ask := a.decide(p); {
			case !does:
				p.key(p.n + 1)
			case ask && a.keeps(Has):
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
		q := request{kind: writes, change: p.change, key: p.n, from: p.there, to: to, etag: plain, same: p.same}
		a.sends(q, func(_ *world, p *actor, ok bool) {
			p.there, p.same = row{}, false
			if p.at = looks; ok && (a.keeps(Transfer) || to.owner != nobody) {
				p.key(p.n + 1)
			}
		})
	case forgets:
		a.does(func(w *world, p *actor) {
			w.messages[p.slot] = message{state: 2, change: p.change, members: p.members, keys: p.keys}
			if !p.taken {
				w.messages[p.slot] = message{}
			}
			w.ends(a.i)
		})
	}
}

func (a *act) readsMember(w *world, p *actor, e int8) {
	if p.at == again && w.entities[e] != p.seen[e] && a.keeps(Again) {
		p.at, p.n, p.seen, p.taken = handles, 0, [3]entity{}, false
		return
	}
	p.seen[e] = w.entities[e]
	if p.n = e + 1; p.members>>p.n != 0 {
		return
	}
	if p.at == again {
		p.at, p.n, p.seen = forgets, 0, [3]entity{}
		return
	}
	p.taken = false
	p.key(0)
}

// decide returns the row that the holder's message asks for under a key, and whether there is anything to
// write. plain says that the holder deletes a copy with a plain claim, which it does under the copy's ETag
// after it has read the owner again.
func (a *act) decide(p *actor) (to row, does, plain bool) {
	k, r, has := p.n, p.there, int8(nobody)
	for e := range p.seen {
		if p.members&(1<<e) != 0 && p.seen[e].key == k {
			has = int8(e)
		}
	}
	passes := r.passes != nobody && r.passes != p.change // marked by another change
	mine := (r.reserved == nobody || r.reserved == p.change) && (!passes || !a.keeps(OnlyOwn))
	inside := r.owner != nobody && p.members&(1<<r.owner) != 0 && r.owner != has
	copied := free
	if has != nobody {
		copied = row{has, p.seen[has].version, nobody, nobody}
	}
	switch {
	case has == nobody:
		return free, inside && mine, r.reserved == nobody && (r.passes == nobody || passes)
	case r.owner == nobody:
		return copied, true, false
	case r.owner == has:
		return copied, mine, false
	case inside && (r.passes == p.change || !a.keeps(Mark)):
		if !a.keeps(Transfer) {
			return free, true, false
		}
		return copied, true, false
	case passes: // the message of that change transfers the key
		return r, false, false
	}
	p.taken = true
	return r, false, false
}
