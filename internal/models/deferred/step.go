package deferred

import "github.com/tablepatterns/tablepatterns/internal/models/messages"

// The steps of an actor, in the order of the protocol.
const (
	begins messages.Step = messages.First + iota // the caller, between two changes
	reads
	puts
	commit
	handles
	looks
	counts
	writes
	again
	forgets
)

type base = messages.Act[world, actor, [6]actor, request, *world, *actor]

type act struct {
	*World
	*base
}

func (c *World) change(n int8) *change {
	if n >= rivals {
		return &c.rivals[n-rivals]
	}
	return &c.changes[n]
}

// end ends the work of an actor. The caller and the rival go on with their next change.
func (c *World) end(w *world, i int) {
	n := int(w.Actors[i].Change) + 1
	switch w.End(i); {
	case i == caller && n < len(c.changes):
		w.Begin(i, begins, n)
	case i == rival && n-rivals < len(c.rivals):
		w.Begin(i, reads, n)
	}
}

// service applies a request, and reports whether its conditions were met.
func (c *World) service(w *world, q *request) bool {
	if q.commits {
		return c.commits(w, q)
	}
	if c.has(w, q.row) == q.adds || !q.same && c.Keeps(ETags) {
		return false
	}
	l := c.at(w, q.row)
	l.rows ^= 1 << c.of(q.row)
	if l.number = q.number - 1; q.adds {
		l.number = q.number + 1
	}
	for i := range w.Actors {
		if p := &w.Actors[i]; p.At == writes && c.at(w, p.n) == l {
			p.same = false
		}
	}
	if w.Waits && c.at(w, w.Late.row) == l {
		w.Late.same = false
	}
	return true
}

// commits makes a change in one transaction, and reports whether the ETags of all members are as read.
func (c *World) commits(w *world, q *request) bool {
	to := c.change(q.change).to
	for e := range to {
		if to[e] != out && !w.entities[e].same(q.seen[e]) {
			return false
		}
	}
	for e := range to {
		if to[e] != out {
			w.entities[e] = entity{w.entities[e].version + 1, to[e]}
		}
	}
	return true
}

// processDies emits the crash of the caller's process, with its background holders.
func (c *World) processDies(w world, emit func(to world, who, what string)) {
	to, alive := w, false
	to.Crashes--
	for i := range rival {
		if to.Actors[i].At != messages.Done {
			to.Release(i)
			to.Actors[i], alive = actor{}, true
		}
	}
	if alive && w.Crashes > 0 {
		emit(to, "the caller's process", "dies")
	}
}

func (c *World) step(b *base) {
	a := &act{c, b}
	p := a.Actor()
	if a.From.Crashes > 0 && p.At > puts && !p.expired {
		a.Does("loses its lease", func(w *world, p *actor) {
			w.Crashes--
			w.Release(a.I)
			if p.expired = true; a.Keeps(Lease) {
				c.end(w, a.I)
			}
		})
	}
	if p.At < handles {
		a.writer(p)
	} else {
		a.holder(p)
	}
}

// waits reports whether the caller's next change waits for a background holder.
func (a *act) waits(p *actor) bool {
	for i := 1; i < rival && a.I == caller && a.Keeps(Wait); i++ {
		if b := &a.From.Actors[i]; b.At != messages.Done && b.Members&p.Members != 0 {
			return true
		}
	}
	return false
}

// writer makes the next request of a writer up to its transaction.
func (a *act) writer(p *actor) {
	switch p.At {
	case begins:
		a.Does("begins a change", func(_ *world, p *actor) { p.At = reads })
	case reads:
		a.Does("reads", a.reads)
	case puts:
		a.Does("puts its message", func(w *world, p *actor) {
			if a.Keeps(Intent) {
				w.Put(a.I)
			}
			if p.At = commit; a.change(p.Change).job {
				p.At, w.found = handles, true
			}
		})
	case commit:
		if a.waits(p) {
			return
		}
		a.Sends("commits", request{commits: true, change: p.Change, seen: p.seen}, a.committed, unanswered)
	}
}

// unanswered makes the actor send its write again.
func unanswered(_ *world, p *actor) { p.Unsure = true }

// reads names the rows that the members have before or after the change, but not both; a job names those that are wrong.
func (a *act) reads(w *world, p *actor) {
	ch := a.change(p.Change)
	p.seen, p.At = w.entities, puts
	next := w.entities
	for e, to := range ch.to {
		if ch.job || to != out {
			p.Members |= 1 << e
		}
		if to != out {
			next[e].parent = to
		}
		if a.I == caller && to != out {
			w.own[e] = 0
		}
	}
	for row := range int8(2 * parents) {
		before := a.needs(&p.seen, row)
		if ch.job && a.has(w, row) != before || !ch.job && a.needs(&next, row) != before {
			p.Keys |= 1 << row
		}
	}
	if p.Keys == 0 {
		w.found = w.found || ch.job
		a.end(w, a.I)
	} else if ch.job {
		p.seen = [2]entity{}
	}
}

// committed begins to write the rows after the transaction. A change that was refused has prepared nothing; but if an earlier attempt
// got no answer, that may have been applied, or may arrive later.
func (a *act) committed(w *world, p *actor, ok bool) {
	if !ok {
		a.ends(w, p)
		return
	}
	for e := range p.seen {
		if p.Members&(1<<e) == 0 {
			continue
		}
		if p.seen[e] = w.entities[e]; a.I == caller {
			w.own[e] = w.entities[e].version
		}
	}
	p.open = p.Members
	a.row(w, p, 0)
}

// leaves reports whether an actor is a writer that leaves the second pattern to workers.
func (a *act) leaves(p *actor) bool { return a.async && !p.Worker && !a.change(p.Change).job }

const first = 1<<parents - 1 // the rows of the first pattern

// row goes to the first row from n on of a member that may have changed, or to what comes after the rows.
func (a *act) row(w *world, p *actor, n int8) {
	rows := p.Keys
	if a.leaves(p) {
		rows &= first
	}
	p.has, p.number, p.same = false, 0, false
	for ; n < 2*parents; n++ {
		named := rows&(1<<n) != 0 || !a.Keeps(Named) && a.needs(&p.seen, n)
		if named && p.open&(1<<a.of(n)) != 0 {
			p.n, p.At = n, looks
			return
		}
	}
	p.n, p.At = 0, again
	switch {
	case a.leaves(p): // a worker reads the members again
		if w.Release(a.I); !a.Keeps(Whole) {
			w.Messages[p.Message].Keys &^= first
		}
		a.end(w, a.I)
	case a.I == caller: // the writer returns, and its background holder goes on
		w.Actors[1+p.Change] = *p
		a.end(w, a.I)
	}
}

// holder makes the next request of a process that handles a message.
func (a *act) holder(p *actor) {
	switch p.At {
	case handles:
		a.Does("reads the members", func(w *world, p *actor) {
			p.seen, p.open = w.entities, p.Members
			a.row(w, p, 0)
		})
	case looks:
		a.Does("reads a row", func(w *world, p *actor) {
			if p.has = a.has(w, p.n); p.has == a.needs(&p.seen, p.n) {
				a.row(w, p, p.n+1)
				return
			}
			p.At = counts
		})
	case counts:
		a.Does("reads the number", func(w *world, p *actor) { p.number, p.same, p.At = a.at(w, p.n).number, true, writes })
	case writes:
		q := request{row: p.n, adds: !p.has, number: p.number, same: p.same}
		a.Sends("writes a row and the number", q, func(w *world, p *actor, ok bool) {
			if p.has, p.number, p.same, p.At = false, 0, false, looks; ok {
				a.row(w, p, p.n+1)
			}
		}, unanswered)
	case again:
		a.Does("reads a member again", a.readsAgain)
	case forgets:
		a.Does("ends its message", a.ends)
	}
}

// readsAgain reads the next member that may have changed. After the last one, the actor goes round for those that have changed.
func (a *act) readsAgain(w *world, p *actor) {
	for p.open&(1<<p.n) == 0 {
		p.n++
	}
	was := p.seen[p.n]
	if p.seen[p.n] = w.entities[p.n]; was.same(p.seen[p.n]) || !a.Keeps(Again) {
		p.open &^= 1 << p.n
	}
	if p.n++; p.open>>p.n != 0 {
		return
	}
	if p.n, p.At = 0, forgets; p.open != 0 {
		a.row(w, p, 0)
	}
}

// ends deletes the message, or leaves it to a worker if a write or the commit got no answer. A holder without its lease leaves it alone.
func (a *act) ends(w *world, p *actor) {
	switch {
	case p.expired:
	case p.Unsure && a.Keeps(Unsure):
		w.Release(a.I)
	default:
		w.Messages[p.Message] = messages.Message{}
	}
	a.end(w, a.I)
}
