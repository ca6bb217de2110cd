package holder

// step is the next request of an actor.
type step int8

const (
	begin     step = iota // read the entity to change
	readOther             // read the other entity: the copy's source, or the holder
	announce              // put the message
	commit                // write
	fanRead               // a source's message: read the source
	fanFind               // find the holder
	fanHold               // read the holder
	fanWrite              // write the copy
	fanAgain              // read the source again
	ownRead               // a holder's message: read the holder
	ownIndex              // write the index row
	ownSource             // read the source again
	ownHold               // read the holder
	ownAsk                // read the source
	ownWrite              // write the copy
	ownAgain              // read the holder again
	forget                // delete the message
	done
)

// next returns the world after the next request of an actor.
func (c *World) next(w world, i int) world {
	a := &w.actors[i]
	switch {
	case c.inside:
		c.inTransaction(&w, a)
	case a.at == forget:
		a.at, a.put = done, false
	case a.at >= ownRead:
		c.ownMessage(&w, a)
	case a.at >= fanRead:
		c.fanOut(&w, a)
	case a.kind == changeSource:
		c.writeSource(&w, a)
	default:
		c.writeHolder(&w, a)
	}
	if a.at == done { // what the actor has read no longer matters, so states that differ in it are the same
		a.seen, a.holder = source{}, row{}
	}
	return w
}

func (c *World) writeSource(w *world, a *actor) {
	s := &w.sources[a.source]
	switch a.at {
	case begin:
		a.seen, a.at = *s, announce
		if s.version == 0 && a.content == none {
			a.at = done
		}
	case announce:
		a.put, a.at = true, commit
	case commit:
		if *s != a.seen {
			a.at, a.put = begin, false
			return
		}
		w.setSource(a.source, a.content)
		a.seen, a.at = *s, fanFind
	}
}

func (w *world) setSource(n, content int8) {
	w.clock++
	w.sources[n] = source{w.clock, content}
	if content == none {
		w.sources[n].version = 0
	}
}

// fanOut makes the next request of an actor that handles a source's message.
func (c *World) fanOut(w *world, a *actor) {
	switch a.at {
	case fanRead:
		a.seen, a.at = w.sources[a.source], fanFind
	case fanFind:
		a.at = fanAgain
		if h := w.holder; h.etag != 0 && (h.indexed || !c.index) && c.asks(a.source, a.seen, h) != h {
			a.at = fanHold
		}
	case fanHold:
		a.holder, a.at = w.holder, fanWrite
		if h := w.holder; h.etag == 0 || c.asks(a.source, a.seen, h) == h {
			a.at = fanAgain
		}
	case fanWrite:
		a.at = fanHold
		if c.rewrite(w, c.writing(a)) {
			a.at = fanAgain
		}
	case fanAgain:
		a.at = forget
		if now := w.sources[a.source]; now != a.seen && c.Keeps(FanOutAgain) {
			a.seen, a.at = now, fanFind
		}
	}
}

// writing returns the write of the copy that an actor is about to send.
func (c *World) writing(a *actor) write {
	return write{true, a.holder.etag, c.asks(a.source, a.seen, a.holder)}
}

// rewrite writes the holder and reports whether the service accepts the write.
func (c *World) rewrite(w *world, x write) bool {
	if w.holder.etag == 0 || c.Keeps(Condition) && w.holder.etag != x.condition {
		return false
	}
	w.clock++
	indexed := w.holder.indexed
	w.holder = x.row
	w.holder.etag, w.holder.indexed = w.clock, indexed
	return true
}

// writeHolder makes the next request of an actor that changes the holder.
func (c *World) writeHolder(w *world, a *actor) {
	switch a.at {
	case begin:
		a.holder, a.at = w.holder, readOther
		switch {
		case a.kind == insertHolder:
			a.holder = row{ref: a.source}
		case w.holder.etag == 0:
			a.at = done
		case a.kind == moveHolder:
			a.holder.ref, a.holder.indexed = a.source, false
		default:
			a.at = commit
		}
	case readOther:
		a.seen = w.sources[a.source]
		etag := a.holder.etag
		a.holder = c.asks(a.source, a.seen, a.holder)
		a.holder.etag, a.at = etag, announce
	case announce:
		a.put, a.at = c.Keeps(Intent), commit
	case commit:
		c.commitHolder(w, a)
	}
}

func (c *World) commitHolder(w *world, a *actor) {
	if a.holder.etag != w.holder.etag {
		a.at, a.put = begin, false
		if a.kind == insertHolder { // the holder exists
			a.at = done
		}
		return
	}
	w.clock++
	a.holder.etag, a.at = w.clock, ownIndex
	switch a.kind {
	case deleteHolder:
		w.holder, w.there, w.given, a.at = row{}, false, 0, done
		return
	case editHolder:
		a.holder.indexed, a.at = w.holder.indexed, done
	default:
		w.given = a.source
	}
	w.holder, w.there = a.holder, true
}

// ownMessage makes the next request of an actor that handles a holder's message.
func (c *World) ownMessage(w *world, a *actor) {
	switch a.at {
	case ownRead:
		a.holder, a.at = w.holder, ownIndex
		if w.holder.etag == 0 {
			a.at = forget
		}
	case ownIndex:
		if a.at = ownSource; c.Keeps(IndexFirst) {
			w.index()
		}
	case ownSource:
		a.seen, a.at = w.sources[a.source], ownAgain
		named := c.Keeps(Named) || a.holder.ref == a.source
		if named && c.asks(a.source, a.seen, a.holder) != a.holder && c.Keeps(SourceAgain) {
			a.at = ownHold
		}
	case ownHold:
		a.holder, a.at = w.holder, ownAsk
		if w.holder.etag == 0 {
			a.at = forget
		}
	case ownAsk:
		a.seen, a.at = w.sources[a.source], ownWrite
		if c.asks(a.source, a.seen, a.holder) == a.holder {
			a.at = ownAgain
		}
	case ownWrite:
		a.at = ownHold
		if c.rewrite(w, c.writing(a)) {
			a.holder, a.at = w.holder, ownIndex
			if !c.Keeps(RoundAgain) {
				a.at = forget
			}
		}
	case ownAgain:
		now := w.holder
		now.indexed = a.holder.indexed
		changed := now != a.holder
		a.holder, a.at = w.holder, forget
		if changed && w.holder.etag != 0 {
			a.at = ownIndex
		}
	}
	if !c.Keeps(IndexFirst) && a.at == forget {
		w.index()
	}
}

// index writes the index row of the holder.
func (w *world) index() {
	if w.holder.etag != 0 {
		w.holder.indexed = true
	}
}

// inTransaction makes the next request of a change within a partition: reads, then one transaction.
func (c *World) inTransaction(w *world, a *actor) {
	switch a.at {
	case begin:
		a.holder, a.seen, a.at = w.holder, w.sources[a.source], readOther
		switch {
		case a.kind == changeSource && c.Keeps(SourceFirst):
			a.holder = row{}
		case a.kind == changeSource:
			a.seen = source{}
		case a.kind == insertHolder:
			a.holder, a.seen = row{ref: a.source}, source{}
		case w.holder.etag == 0:
			a.at = done
		default:
			a.at = commit
		}
	case readOther:
		c.readInside(w, a)
	case commit:
		c.commitInside(w, a)
	}
}

// readInside reads the entity that is written together with the changed one.
func (c *World) readInside(w *world, a *actor) {
	a.at = commit
	if a.kind == changeSource && c.Keeps(SourceFirst) {
		a.holder = w.holder
		return
	}
	a.seen = w.sources[a.source]
	if a.kind == changeSource {
		return
	}
	if a.seen.version == 0 && c.Keeps(Required) {
		a.at = done // refused
		return
	}
	a.holder = c.asks(a.source, a.seen, a.holder)
}

func (c *World) commitInside(w *world, a *actor) {
	s := &w.sources[a.source]
	gives := a.kind == insertHolder
	stale := a.kind == changeSource && (*s != a.seen || a.holder.etag != 0 && a.holder.etag != w.holder.etag) ||
		gives && c.Keeps(Touch) && *s != a.seen
	if stale {
		a.at = begin
		return
	}
	if a.kind != changeSource {
		c.commitHolder(w, a)
		if a.at == ownIndex {
			a.at = done
			if gives && c.Keeps(Touch) && s.version != 0 {
				w.setSource(a.source, s.content)
			}
		}
		return
	}
	w.setSource(a.source, a.content)
	if a.holder.etag != 0 {
		w.clock++
		w.holder = c.asks(a.source, *s, a.holder)
		w.holder.etag = w.clock
	}
	a.at = done
}
