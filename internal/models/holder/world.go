package holder

import "github.com/tablepatterns/tablepatterns/internal/models"

// The rules of the protocol. A walk can drop some of them.
const (
	Intent      models.Rules = 1 << iota // the message is put before the holder is written
	Named                                // the message names the source that the holder's writer chose, even if that source did not name the holder then
	SourceAgain                          // the source is read again after the holder is written
	IndexFirst                           // the row by which a source finds the holder is written before the source is read again
	RoundAgain                           // after a process has written the copy for a holder's message, it starts over
	Condition                            // the copy is written under the ETag with which the holder was read
	FanOutAgain                          // a process that handles a source's message reads the source again after the holder
	Lease                                // no request arrives after another process has got the message for which it was sent
	Touch                                // within a partition, a transaction that gives a holder a copy also writes the source, under its ETag
	Required                             // within a partition, a holder whose source does not exist is not written
	SourceFirst                          // within a partition, a change of a source reads the source before the holder
)

// Special contents of a source. All others are positive.
const (
	none   = 0  // the source does not exist; for a holder: it has no copy
	silent = -1 // the source exists and names no holder
)

type source struct {
	version int8 // 0: absent
	content int8
}

type row struct {
	etag    int8 // 0: absent
	ref     int8 // the source to which it refers, 0 for none
	copied  int8
	indexed bool
}

// kind is the kind of change that an actor makes.
type kind int8

const (
	changeSource kind = iota + 1 // sets the source's content; the content none deletes it
	insertHolder                 // inserts the holder with a reference to a source
	moveHolder                   // changes the reference to another source
	editHolder                   // changes properties that are not part of the copy
	deleteHolder
)

// actor is a process that makes one change and handles its message. After a crash, a successor handles the message.
type actor struct {
	kind    kind
	source  int8 // 1 or 2
	content int8
	at      step
	put     bool // the message is on the queue

	seen   source // as the actor has read it
	holder row    // as the actor has read or written it
}

// world is a state. It is comparable, so that a walk visits each state once.
type world struct {
	sources [3]source // by number; sources[0] is unused
	holder  row
	given   int8 // the reference that the holder's last writer set
	there   bool // the holder was inserted and not deleted since
	clock   int8 // the last ETag or version
	crashes int8
	actors  [4]actor
	late    write // a write that may still arrive, if Lease is dropped
}

// write is a conditional write of the holder that is under way.
type write struct {
	is        bool
	condition int8
	row       row
}

// World is the initial state and the parameters of a model.
type World struct {
	models.Case
	naming  bool // the source names its holder; otherwise the holder names its source
	index   bool // a change of a source finds the holder by an index
	inside  bool // the holder is in its sources' partition
	before  [3]int8
	exists  bool // the holder exists at first, with a copy of source 1
	crashes int8
	actors  []actor
}

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

// asks returns the row that a source requires, given the present row r: with the copy, without it, or
// unchanged if r belongs to another source.
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

// wrong returns which requirement a final state violates, or "".
func (c *World) wrong(w *world) string {
	if w.there != (w.holder.etag != 0) {
		return "a deleted holder exists, or a holder that was written does not"
	}
	if !w.there {
		return ""
	}
	if !c.naming && w.holder.ref != w.given {
		return "the reference that the last writer set is lost"
	}
	for of := int8(1); of <= 2; of++ {
		if want := c.asks(of, w.sources[of], w.holder); want != w.holder {
			return "the holder is not as its source requires"
		}
	}
	if w.holder.ref == 0 && w.holder.copied != none {
		return "the holder has a copy of no source"
	}
	return ""
}
