package deferred

import (
	"github.com/tablepatterns/tablepatterns/internal/models/keys"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The steps of an actor, in the order of the protocol.
const (
	begins messages.Step = messages.First + iota // the caller, between two changes
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

type base = messages.Act[world, actor, [6]actor, request, *world, *actor]

type act struct {
	*World
	*base
}

// end ends the work of an actor. The caller goes on with its next change.
func (c *World) end(w *world, i int) {
	n := int(w.Actors[i].Change)
	if w.End(i); i == caller && n+1 < len(c.changes) {
		w.Begin(i, begins, n+1)
	}
}

func (c *World) change(n int8) *keys.Change {
	if n == rivals {
		return &c.rival
	}
	return &c.changes[n]
}

// service applies a request, and reports whether its conditions were met.
func (c *World) service(w *world, q *request) bool {
	r := &w.rows[q.key]
	switch {
	case q.kind == commits:
		return w.entities.Commit(c.change(q.change), q.versions)
	case q.kind == copies:
		w.plain[q.key] = q.to.Version
		return true
	case q.etag && !q.same || !q.etag && !r.Claimed(q.from):
		return false
	}
	*r = q.to
	for i := range w.Actors {
		w.Actors[i].Wrote(q.key)
	}
	if w.Late.key == q.key {
		w.Late.same = false
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
	if a.I != caller && a.From.Crashes > 0 && p.At > reads && !p.lostOnce {
		a.Does("loses its lease", func(w *world, p *actor) {
			w.Crashes--
			w.Release(a.I)
			if p.lostOnce = true; a.Keeps(Lease) || a.I >= rival {
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
	for i := 1; i < rival; i++ {
		if b := &a.From.Actors[i]; b.At != messages.Done && a.Keeps(Wait) && b.Members&a.change(p.Change).Members != 0 {
			return true
		}
	}
	return false
}

// writer makes the next request of a writer up to its transaction. If a request gets no answer, the writer gives up.
func (a *act) writer(p *actor) {
	ch := a.change(p.Change)
	gives := func(w *world, _ *actor) {
		w.Release(a.I)
		a.end(w, a.I)
	}
	switch p.At {
	case begins:
		if !a.waits(p) {
			a.Does("begins a change", func(_ *world, p *actor) { p.At = reads })
		}
	case reads:
		a.Does("reads", func(w *world, p *actor) {
			p.Plan(&w.entities, ch)
			p.At = puts
			for e := range w.own {
				if a.I == caller && ch.Members&(1<<e) != 0 {
					w.own[e] = 0
				}
			}
		})
	case puts:
		a.Does("puts its message", func(w *world, p *actor) {
			w.Put(a.I)
			p.At, p.N = prepares, 0
			a.prepared(p)
		})
	case prepares:
		q := request{kind: writes, key: ch.To[p.N], from: keys.Free(), to: keys.Reserved(p.N, p.Change)}
		a.Sends("reserves", q, func(w *world, p *actor, ok bool) {
			if !ok {
				w.failed = w.failed || a.I == caller && a.alone(w) && a.rival.Members == 0
				a.refused(w, p)
				return
			}
			p.reserved = true
			p.N++
			a.prepared(p)
		}, gives)
	case commit:
		q := request{kind: commits, change: p.Change, versions: p.Seen.Versions()}
		a.Sends("commits", q, func(w *world, p *actor, ok bool) {
			if !ok {
				a.refused(w, p)
				return
			}
			p.Committed(&w.entities)
			for e := range w.own {
				if a.I == caller && p.Members&(1<<e) != 0 {
					w.own[e] = w.entities[e].Version
				}
			}
			p.reserved = false
			a.key(w, p, 0)
		}, gives)
	}
}

// prepared makes the next member that takes a key the current one, or goes to the transaction.
func (a *act) prepared(p *actor) {
	ch := a.change(p.Change)
	for ; p.N < 2; p.N++ {
		if to := ch.To[p.N]; to >= 0 && to != p.Seen[p.N].Key {
			return
		}
	}
	p.At, p.N = commit, 0
}

// refused ends a change that was not made: if it has reserved keys, the writer handles the message.
func (a *act) refused(w *world, p *actor) {
	if !p.reserved {
		w.Messages[p.Message] = messages.Message{}
		a.end(w, a.I)
		return
	}
	w.Handle(a.I, handles)
	p.lostOnce = true
}

// key goes to the first named key from k on, then to the plain copies, then to the closing read.
func (a *act) key(w *world, p *actor, k int8) {
	named := p.Keys
	if p.rest {
		named = 0
	}
	if p.At = looks; p.Next(named, k) {
		return
	}
	p.N, p.At = 0, again
	switch returns := a.I == caller && !p.lostOnce; {
	case a.marker && p.Members&(1<<x) != 0 && returns: // the writer returns, and a worker does the rest
		w.markers[p.Message] = marker{(p.Seen[x].Key != keys.NoKey || !a.Keeps(Present)) && !p.Unsure, p.Seen[x]}
		w.Release(a.I)
		a.end(w, a.I)
	case a.marker && p.Members&(1<<x) != 0:
		p.At = others
		p.plainKey()
	case returns: // the writer returns, and its background holder goes on
		b := *p
		if b.late = !a.Keeps(Release); b.late {
			b.At = looks
			b.Next(b.Keys, 0)
		}
		w.Actors[1+p.Change] = b
		a.end(w, a.I)
	}
}

// plainKey goes to the first named plain copy from N on, or to the closing read.
func (p *actor) plainKey() {
	if !p.Next(p.Keys, p.N) {
		p.N, p.At = 0, again
	}
}

// holder makes the next request of a process that handles a message. It sends a write again that got no answer.
func (a *act) holder(p *actor) {
	resends := func(_ *world, p *actor) { p.Unsure = true }
	switch p.At {
	case handles:
		a.Does("reads a member", func(w *world, p *actor) {
			if _, _, last := p.Read(&w.entities); last {
				m := w.markers[p.Message]
				p.rest = p.rest || m.is && (same(m.of, p.Seen[x]) || !a.Keeps(Whole))
				p.Taken = false
				a.key(w, p, 0)
			}
		})
	case looks:
		a.Does("looks at a key", func(w *world, p *actor) {
			p.Look(&w.rows)
			switch _, does, plain := a.decide(p); {
			case !does:
				a.key(w, p, p.N+1)
			case plain:
				p.At = asks
			default:
				p.At = acts
			}
		})
	case asks:
		a.Does("reads the owner again", func(w *world, p *actor) {
			if p.At = acts; w.entities[p.There.Owner].Key == p.N {
				a.key(w, p, p.N+1)
			}
		})
	case acts:
		to, _, plain := a.decide(p)
		q := request{kind: writes, key: p.N, from: p.There, to: to, etag: plain, same: p.Same}
		a.Sends("writes a key", q, func(w *world, p *actor, ok bool) {
			p.There, p.Same, p.At = keys.Row{}, false, looks
			if ok {
				a.key(w, p, p.N+1)
			}
		}, resends)
	case others:
		q := request{kind: copies, key: p.N}
		if p.Seen[x].Key == p.N {
			q.to.Version = p.Seen[x].Version
		}
		a.Sends("writes a plain copy", q, func(_ *world, p *actor, _ bool) {
			p.N++
			p.plainKey()
		}, resends)
	case again:
		a.Does("reads a member again", a.readsAgain)
	case forgets:
		a.Does("ends its message", a.ends)
	}
}

// readsAgain goes round if a member has changed since it was read.
func (a *act) readsAgain(w *world, p *actor) {
	switch was, is, last := p.Read(&w.entities); {
	case !same(was, is) && (a.Keeps(Again) || a.I >= rival):
		p.To(handles)
		p.Taken, p.late, p.rest = false, false, p.rest && !a.Keeps(Whole)
	case last:
		p.To(forgets)
	}
}

// ends deletes the message, or makes it visible if a key belongs to another entity or a write got no answer. A background holder
// without its lease leaves it alone, since another process holds it.
func (a *act) ends(w *world, p *actor) {
	switch {
	case p.lostOnce && a.I > caller && a.I < rival:
	case p.Taken || p.Unsure && a.Keeps(Unsure):
		w.Release(a.I)
	default:
		w.Messages[p.Message], w.markers[p.Message] = messages.Message{}, marker{}
	}
	a.end(w, a.I)
}

// decide is keys.Holder.Decide, except that a writer without the rule Release leaves the removals to its background holder.
func (a *act) decide(p *actor) (to keys.Row, does, plain bool) {
	to, does, plain = p.Decide()
	later := a.I == caller && !a.Keeps(Release) && to.Owner == keys.Nobody
	return to, does && !later, plain
}
