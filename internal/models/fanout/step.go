package fanout

import "cmp"

// step is the next request of an actor.
type step int8

const (
	done step = iota
	idle
	sees // a holder's own writer
	spends
	reads
	puts
	commit
	handles
	looks
	asksOther
	asksOwn
	acts
	again
	forgets
)

var (
	who   = [...]string{"writer 1", "writer 2", "the holder's writer", "the worker"}
	whats = [...]string{"", "gets a message", "reads its holder", "writes its holder", "reads", "puts its message", "commits", "reads the source", "reads a holder",
		"reads the other source", "reads its source beside the other", "writes holders", "reads the source again", "ends its message"}
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

// sends emits the states that does emits, for a write. It also emits the state in which the request gets no answer and the
// actor gives up. If the rule Unsure is dropped, the actor assumes that the write was applied.
func (a *act) sends(q request, f func(w *world, p *actor, refused int8)) {
	q.change = a.from.actors[a.i].change
	a.does(func(w *world, p *actor) { f(w, p, w.service(a.World, &q)) })
	if a.from.lates > 0 && !a.from.waits && !q.spends {
		to := a.from
		to.lates--
		to.late, to.waits = q, true
		if p := &to.actors[a.i]; p.at == acts && !a.keeps(Unsure) {
			a.forget(p)
			p.next()
		} else {
			to.stops(a.i)
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

// service applies a request. It returns which holder has refused it, -1 for none.
func (w *world) service(c *World, q *request) (refused int8) {
	if q.commits {
		ch := c.changes[q.change]
		v := &w.sources[ch.source]
		if v.etag != q.etag {
			return 0
		}
		w.clock++
		*v = source{v.etag + 1, cmp.Or(ch.version, v.etag+1), w.clock, ch.names}
		return nobody
	}
	for h := range w.holders {
		if q.write&(1<<h) != 0 && q.same&(1<<h) == 0 && !q.blind {
			return int8(h)
		}
	}
	for h := range w.holders {
		if q.write&(1<<h) == 0 {
			continue
		}
		w.holders[h] = q.to[h]
		if q.spends {
			w.own[h]++
		}
		for i := range w.actors {
			w.actors[i].same &^= 1 << h
		}
		w.late.same &^= 1 << h
	}
	return nobody
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
	switch {
	case p.at == done:
	case p.at == idle:
		for m := range a.from.messages {
			if a.from.messages[m].state == 2 && (!a.from.waits || int(a.from.late.change) != m || !a.keeps(Lease)) {
				a.does(func(w *world, p *actor) {
					w.messages[m].state = 1
					*p = actor{at: handles, change: int8(m), names: w.messages[m].names, new: w.messages[m].new}
				})
			}
		}
	case p.at <= commit:
		a.writer(p)
	default:
		a.fanOut(p)
	}
}

// writer makes the next request of a writer up to its commit, or of a holder's own writer.
func (a *act) writer(p *actor) {
	switch p.at {
	case sees:
		a.does(func(w *world, p *actor) { p.rows[p.n], p.same, p.at = w.holders[p.n], 1<<p.n, spends })
	case spends:
		q := request{spends: true, write: 1 << p.n, same: p.same, to: p.rows}
		q.to[p.n].own++
		a.sends(q, func(w *world, p *actor, refused int8) {
			if p.at = sees; refused == nobody {
				w.ends(a.i)
			}
		})
	case reads:
		ch := a.changes[p.change]
		a.does(func(w *world, p *actor) {
			p.seen, p.at = w.sources[ch.source], puts
			p.names, p.new = p.seen.names|ch.names, ch.names&^p.seen.names
		})
	case puts:
		a.does(func(w *world, p *actor) { w.messages[p.change], p.at = message{1, p.names, p.new}, commit })
	case commit:
		a.sends(request{commits: true, etag: p.seen.etag}, func(w *world, p *actor, refused int8) {
			if p.at = handles; refused != nobody {
				w.messages[p.change] = message{}
				w.ends(a.i)
			}
		})
	}
}

// begin makes the actor read holders and then write them.
func (p *actor) begin(group uint8) {
	p.group, p.write, p.n, p.at, p.same, p.rows = group, 0, 0, looks, 0, [2]holder{}
	for group&(1<<p.n) == 0 {
		p.n++
	}
}

// next makes the actor continue with a holder that must be written alone, or with the closing read.
func (p *actor) next() {
	p.group, p.write, p.same, p.rows = 0, 0, 0, [2]holder{}
	switch {
	case p.alone == 0:
		p.at, p.n = again, 0
		return
	case p.alone&1 != 0:
		p.alone &^= 1
		p.begin(1)
	default:
		p.alone = 0
		p.begin(2)
	}
}

// other returns the source that the actor does not write.
func (a *act) other(p *actor) int8 { return 1 - a.changes[p.change].source }

// fanOut makes the next request of a process that handles a message.
func (a *act) fanOut(p *actor) {
	mine := a.changes[p.change].source
	switch p.at {
	case handles:
		a.does(func(w *world, p *actor) {
			p.seen, p.alone = w.sources[mine], 0
			if p.names == 0 {
				p.at = forgets
				return
			}
			a.forget(p)
			p.begin(p.names)
		})
	case looks:
		a.does(func(w *world, p *actor) {
			p.rows[p.n] = w.holders[p.n]
			p.same |= 1 << p.n
			if p.n++; p.group>>p.n == 0 {
				p.n = 0
				a.decided(p)
			}
		})
	case asksOther, asksOwn:
		s := mine
		if p.at == asksOther {
			s = a.other(p)
		}
		a.does(func(w *world, p *actor) {
			p.sources[s] = w.sources[s]
			p.known |= 1 << s
			a.decided(p)
		})
	case acts:
		a.writes(p)
	case again:
		a.does(func(w *world, p *actor) {
			if p.at = forgets; w.sources[mine] != p.seen && a.keeps(Again) {
				p.seen = w.sources[mine]
				p.begin(p.names)
			}
		})
	case forgets:
		a.does(func(w *world, p *actor) {
			w.messages[p.change] = message{}
			w.ends(a.i)
		})
	}
}

// writes sends the transaction of a group, and again without a holder that refuses it.
func (a *act) writes(p *actor) {
	q := request{write: p.write, same: p.same, blind: !a.keeps(ETags)}
	for h := range q.to {
		if p.write&(1<<h) != 0 {
			q.to[h] = a.gives(p, h)
		}
	}
	q.same &= q.write
	a.sends(q, func(_ *world, p *actor, refused int8) {
		if refused == nobody {
			a.forget(p)
			p.next()
			return
		}
		if a.keeps(Alone) {
			p.alone |= 1 << refused
		}
		if p.write &^= 1 << refused; p.write == 0 {
			a.forget(p)
			p.next()
		}
	})
}

// forget drops the sources that were read, before other holders are read.
func (a *act) forget(p *actor) {
	if a.keeps(After) {
		p.known, p.sources = 0, [2]source{}
	}
}

// gives returns the holder as the actor will write it.
func (a *act) gives(p *actor, h int) holder {
	is, mine := p.rows[h], a.changes[p.change].source
	switch {
	case p.seen.names&(1<<h) != 0:
		return holder{mine, p.seen.version, is.own}
	case is.of == mine:
		return holder{nobody, 0, is.own}
	}
	return is
}

// decided begins the next request after the holders of a group, or a source, were read: a read of another
// source, or the write.
func (a *act) decided(p *actor) {
	mine, other := a.changes[p.change].source, a.other(p)
	p.write = 0
	for h := range p.rows {
		if p.group&(1<<h) == 0 {
			continue
		}
		is, names := p.rows[h], p.seen.names&(1<<h) != 0
		if names && is.of == other && a.keeps(Takes) {
			theirs, ours := p.sources[other], p.sources[mine]
			switch {
			case p.known&(1<<other) == 0:
				p.at, p.write = asksOther, 0
				return
			case theirs.names&(1<<h) == 0:
			case p.known&(1<<mine) == 0:
				p.at, p.write = asksOwn, 0
				return
			case ours.names&(1<<h) == 0 || ours.stamp < theirs.stamp:
				continue
			}
		}
		if a.gives(p, h) != is || names && is.of == mine && p.new&(1<<h) != 0 && a.keeps(New) {
			p.write |= 1 << h
		}
	}
	if p.at = acts; p.write == 0 {
		a.forget(p)
		p.next()
	}
}
