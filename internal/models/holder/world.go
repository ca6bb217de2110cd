package holder

// Rules are the rules of the protocol. A walk can drop some of them.
type Rules uint16

const (
	// Intent: the message is put before the holder is written.
	Intent Rules = 1 << iota
	// Named: the message names the source that the holder was given with, also if that did not name the holder when it was read.
	Named
	// SourceAgain: the source is read again after the holder is written.
	SourceAgain
	// IndexFirst: the row by which a source finds the holder is written before the source is read again.
	IndexFirst
	// RoundAgain: whoever writes the copy for a holder's message begins again afterwards.
	RoundAgain
	// Condition: the copy is written under the ETag with which the holder was read.
	Condition
	// FanOutAgain: whoever handles a source's message reads the source again after the holder.
	FanOutAgain
	// Lease: nothing arrives that was sent for a message which is somebody else's by now.
	Lease
	// Touch: inside a partition, a transaction that gives a holder a copy writes the source as well, under its ETag.
	Touch
	// Required: inside a partition, a holder is not written with a source that is not there.
	Required
	// SourceFirst: inside a partition, a change of a source reads the source before the holder.
	SourceFirst
)

// Contents of a source. Others are 1 and more.
const (
	none   = 0  // the source is absent; a holder without a copy
	silent = -1 // the source is there and names no holder
)

type source struct {
	version int8 // 0: absent
	content int8
}

type row struct {
	etag    int8 // 0: absent
	ref     int8 // the source it refers to, 0 for none
	copied  int8
	indexed bool
}

// kind is what an actor does.
type kind int8

const (
	changeSource kind = iota + 1 // to content; none deletes it
	insertHolder                 // with a reference to source
	moveHolder                   // to source
	editHolder                   // changes what is no copy
	deleteHolder
)

// actor is one change, with the message of it. Whoever dies has a successor who begins with the message.
type actor struct {
	kind    kind
	source  int8 // 1 or 2
	content int8
	at      step
	put     bool // the message is there

	seen   source // as it was read
	holder row    // as it was read or written
}

// world is a state. It is comparable: a walk visits each once.
type world struct {
	sources [3]source // 0 is no source
	holder  row
	given   int8 // the reference that the holder's last writer gave it
	there   bool // whether the holder was written, and not deleted since
	clock   int8 // of ETags and versions
	crashes int8
	actors  [4]actor
	late    write // with Lease dropped: what may still arrive
}

// write is a conditional write of the holder that is under way.
type write struct {
	is        bool
	condition int8
	row       row
}

// World is a small world to walk through.
type World struct {
	Name    string
	naming  bool // the source names its holder; otherwise the holder names its source
	index   bool // sources find the holder by an index
	inside  bool // the holder is in its sources' partition
	before  [3]int8
	exists  bool // the holder, with a copy of source 1
	crashes int8
	actors  []actor
	// Shows are the rules without which this world goes wrong.
	Shows []Rules
	// Drop are the rules that nobody keeps.
	Drop Rules
}

func (c *World) keeps(r Rules) bool { return c.Drop&r == 0 }

func (c *World) first() world {
	var w world
	for i, content := range c.before {
		if content != none {
			w.clock++
			w.sources[i] = source{w.clock, content}
		}
	}
	if c.exists {
		w.clock++
		w.holder = row{etag: w.clock, ref: 1, copied: w.sources[1].content, indexed: true}
		w.given, w.there = 1, true
	}
	w.crashes = c.crashes
	for i := range w.actors {
		w.actors[i].at = done
	}
	for i, a := range c.actors {
		a.at = begin
		w.actors[i] = a
	}
	return w
}

// asks returns what a source asks of a row that refers to ref.
func (c *World) asks(of int8, s source, r row) row {
	switch {
	case c.naming && s.content > none:
		r.ref, r.copied = of, s.content
	case c.naming && r.ref == of:
		r.ref, r.copied = 0, none
	case !c.naming && r.ref == of:
		r.copied = s.content
	}
	return r
}

// wrong tells what does not hold in a quiet end.
func (c *World) wrong(w *world) string {
	if w.there != (w.holder.etag != 0) {
		return "a holder that was deleted is there, or one that was written is not"
	}
	if !w.there {
		return ""
	}
	if !c.naming && w.holder.ref != w.given {
		return "the reference that the last writer gave is lost"
	}
	for of := int8(1); of <= 2; of++ {
		if want := c.asks(of, w.sources[of], w.holder); want != w.holder {
			return "the holder is not as its source asks"
		}
	}
	if w.holder.ref == 0 && w.holder.copied != none {
		return "the holder has a copy of no source"
	}
	return ""
}
