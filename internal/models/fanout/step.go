package fanout

import (
	"cmp"

	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The steps of an actor, in the order of the protocol.
const (
	sees messages.Step = messages.First + iota // a holder's own writer
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

type base = messages.Act[world, actor, [4]actor, request, *world, *actor]

type act struct {
	*World
	*base
}

// service applies a request, and reports whether its conditions were met.
func (c *World) service(w *world, q *request) bool {
	if q.commits {
		ch := c.changes[q.change]
		v := &w.sources[ch.source]
		if v.etag != q.etag {
			return false
		}
		w.clock++
		*v = source{v.etag + 1, cmp.Or(ch.version, v.etag+1), w.clock, ch.names}
		return true
	}
	if w.refuses(q) != nobody {
		return false
	}
	for h := range w.holders {
		if q.write&(1<<h) == 0 {
			continue
		}
		w.holders[h] = q.to[h]
		for i := range w.Actors {
			w.Actors[i].same &^= 1 << h
		}
		w.Late.same &^= 1 << h
	}
	return true
}

// refuses returns which holder's ETag is another one than in the request, -1 for none.
func (w *world) refuses(q *request) int8 {
	for h := range w.holders {
		if q.write&(1<<h) != 0 && q.same&(1<<h) == 0 && !q.blind {
			return int8(h)
		}
	}
	return nobody
}

func (c *World) step(b *base) {
	a := &act{c, b}
	p := a.Actor()
	switch {
	case p.At <= spends:
		a.spend(p)
	case p.At <= commit:
		a.writer(p)
	default:
		a.fanOut(p)
	}
}

// spend makes the next request of a holder's own writer.
func (a *act) spend(p *actor) {
	switch p.At {
	case sees:
		a.Does("reads its holder", func(w *world, p *actor) { p.rows[p.n], p.same, p.At = w.holders[p.n], 1<<p.n, spends })
	case spends:
		q := request{write: 1 << p.n, same: p.same, to: p.rows}
		q.to[p.n].own++
		a.Does("writes its holder", func(w *world, p *actor) {
			if p.At = sees; a.service(w, &q) {
				w.own[p.n]++
				w.End(a.I)
			}
		})
	}
}

// writer makes the next request of a writer up to its commit. If that gets no answer, the writer gives up.
func (a *act) writer(p *actor) {
	switch p.At {
	case reads:
		ch := a.changes[p.Change]
		a.Does("reads", func(w *world, p *actor) {
			p.seen, p.At = w.sources[ch.source], puts
			p.Keys, p.Fresh = p.seen.names|ch.names, ch.names&^p.seen.names
		})
	case puts:
		a.Does("puts its message", func(w *world, p *actor) {
			w.Put(a.I)
			p.At = commit
		})
	case commit:
		q := request{commits: true, change: p.Change, etag: p.seen.etag}
		a.Sends("commits", q, func(w *world, p *actor, ok bool) {
			if p.At = handles; !ok {
				w.Finish(a.I)
			}
		}, nil)
	}
}

// begin makes the actor read holders and then write them.
func (p *actor) begin(group uint8) {
	p.group, p.write, p.n, p.At, p.same, p.rows = group, 0, 0, looks, 0, [2]holder{}
	for group&(1<<p.n) == 0 {
		p.n++
	}
}

// next makes the actor continue with a holder that must be written alone, or with the closing read.
func (p *actor) next() {
	p.group, p.write, p.same, p.rows = 0, 0, 0, [2]holder{}
	switch {
	case p.alone == 0:
		p.At, p.n = again, 0
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
func (a *act) other(p *actor) int8 { return 1 - a.changes[p.Change].source }

// fanOut makes the next request of a process that handles a message.
func (a *act) fanOut(p *actor) {
	mine, other := a.changes[p.Change].source, a.other(p)
	switch p.At {
	case handles:
		a.Does("reads the source", func(w *world, p *actor) {
			p.seen, p.alone = w.sources[mine], 0
			if p.Keys == 0 {
				p.At = forgets
				return
			}
			a.forget(p)
			p.begin(p.Keys)
		})
	case looks:
		a.Does("reads a holder", func(w *world, p *actor) {
			p.rows[p.n] = w.holders[p.n]
			p.same |= 1 << p.n
			if p.n++; p.group>>p.n == 0 {
				p.n = 0
				a.decided(p)
			}
		})
	case asksOther:
		a.Does("reads the other source", func(w *world, p *actor) { a.asks(w, p, other) })
	case asksOwn:
		a.Does("reads its source beside the other", func(w *world, p *actor) { a.asks(w, p, mine) })
	case acts:
		a.writes(p)
	case again:
		a.Does("reads the source again", func(w *world, p *actor) {
			if p.At = forgets; w.sources[mine] != p.seen && a.Keeps(Again) {
				p.seen = w.sources[mine]
				p.begin(p.Keys)
			}
		})
	case forgets:
		a.Does("ends its message", func(w *world, _ *actor) { w.Finish(a.I) })
	}
}

// asks reads a source after the holders.
func (a *act) asks(w *world, p *actor, source int8) {
	p.sources[source] = w.sources[source]
	p.known |= 1 << source
	a.decided(p)
}

// writes sends the transaction of a group, and again without a holder that refuses it. If no answer comes, the actor gives up; without
// the rule Unsure, it assumes that the write was applied.
func (a *act) writes(p *actor) {
	q := request{write: p.write, same: p.same & p.write, blind: !a.Keeps(ETags)}
	for h := range q.to {
		if p.write&(1<<h) != 0 {
			q.to[h] = a.gives(p, h)
		}
	}
	written := func(_ *world, p *actor) {
		a.forget(p)
		p.next()
	}
	lost := written
	if a.Keeps(Unsure) {
		lost = nil
	}
	a.Sends("writes holders", q, func(w *world, p *actor, ok bool) {
		if !ok {
			refused := w.refuses(&q)
			if a.Keeps(Alone) {
				p.alone |= 1 << refused
			}
			p.write &^= 1 << refused
		}
		if ok || p.write == 0 {
			written(w, p)
		}
	}, lost)
}

// forget drops the sources that were read, before other holders are read.
func (a *act) forget(p *actor) {
	if a.Keeps(After) {
		p.known, p.sources = 0, [2]source{}
	}
}

// gives returns the holder as the actor will write it.
func (a *act) gives(p *actor, h int) holder {
	is, mine := p.rows[h], a.changes[p.Change].source
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
	mine, other := a.changes[p.Change].source, a.other(p)
	p.write = 0
	for h := range p.rows {
		if p.group&(1<<h) == 0 {
			continue
		}
		is, names := p.rows[h], p.seen.names&(1<<h) != 0
		if names && is.of == other && a.Keeps(Takes) {
			theirs, ours := p.sources[other], p.sources[mine]
			switch {
			case p.known&(1<<other) == 0:
				p.At, p.write = asksOther, 0
				return
			case theirs.names&(1<<h) == 0:
			case p.known&(1<<mine) == 0:
				p.At, p.write = asksOwn, 0
				return
			case ours.names&(1<<h) == 0 || ours.stamp < theirs.stamp:
				continue
			}
		}
		if a.gives(p, h) != is || names && is.of == mine && p.Fresh&(1<<h) != 0 && a.Keeps(New) {
			p.write |= 1 << h
		}
	}
	if p.At = acts; p.write == 0 {
		a.forget(p)
		p.next()
	}
}
