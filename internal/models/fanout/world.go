package fanout

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The rules of the protocol. A walk can drop some of them.
const (
	ETags  models.Rules = 1 << iota // the transaction has the ETag of each holder as condition
	Alone                           // a holder that is refused is read and written by itself
	Again                           // the source is read again after the holders were written
	New                             // a holder that the source begins to name is written even if it is correct
	Takes                           // a holder is taken over from another source only if the other source does not name it, or was written earlier
	After                           // the sources are read after the holders. If dropped, the holder uses the sources as it read them in an earlier round.
	Lease                           // no request arrives after another process has got the message for which it was sent
	Unsure                          // an actor whose transaction got no answer leaves the message
)

var names = []string{"ETags", "Alone", "Again", "New", "Takes", "After", "Lease", "Unsure"}

var who = []string{"writer 1", "writer 2", "the holder's writer", "the worker"}

const (
	nobody  = -1
	spender = 2 // actors: two writers of the sources 0 and 1, a holder's own writer, a worker
	worker  = 3
)

// source is a source's ETag, the version of what is copied, the holders that it names, and when it was written.
type source struct {
	etag, version, stamp int8
	names                uint8
}

// holder is the row of a holder: whose copy it has, of which version, and how often its own writer has changed it.
type holder struct{ of, version, own int8 }

// change is a change of a source by writer 1 or 2: the holders that it names afterwards.
type change struct {
	source  int8
	names   uint8
	version int8 // version of the copied content; 0 for a version that never existed
	pending bool // it was committed before, and its message is on the queue
}

// actor is a process. The keys of its message are the holders that the source named and will name.
type actor struct {
	messages.Actor
	seen    source
	n       int8
	group   uint8 // the holders that are being read and written
	write   uint8 // the holders of the group that remain to be written
	alone   uint8 // the holders that must be read and written alone
	rows    [2]holder
	same    uint8 // the rows that have not changed since they were read
	known   uint8 // the sources that were read after the holders
	sources [2]source
}

// request writes holders, or commits a source.
type request struct {
	commits bool
	change  int8
	write   uint8
	same    uint8
	blind   bool
	to      [2]holder
	etag    int8 // of the source
}

type world struct {
	messages.World[actor, [4]actor, request, *actor]
	sources [2]source
	holders [2]holder
	own     [2]int8 // the changes of the holders' own writer
	clock   int8
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	names          [2]uint8
	changes        []change
	spends         int8 // the holder that the holders' own writer changes, -1 for none
	crashes, lates int8
}

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop = drop
	w := world{clock: 2, holders: [2]holder{{of: nobody}, {of: nobody}}}
	w.Crashes, w.Lates = c.crashes, c.lates
	for s, names := range c.names {
		w.sources[s] = source{1, 1, int8(s) + 1, names}
		for h := range w.holders {
			if names&(1<<h) != 0 {
				w.holders[h] = holder{int8(s), 1, 0}
			}
		}
	}
	for i, ch := range c.changes {
		if ch.pending {
			w.Messages[i] = messages.Message{State: messages.Visible, Intent: messages.Intent{Change: int8(i), Keys: 3}}
			w.sources[ch.source].names = ch.names
			continue
		}
		w.Begin(i, reads, i)
	}
	if c.spends >= 0 {
		w.Actors[spender].At, w.Actors[spender].n = sees, c.spends
	}
	w.Work(worker)
	m := messages.New(who, reads, handles, c.step, c.service)
	m.Lease, m.Wrong = c.Keeps(Lease), wrong
	m.Show = func(w world) string { return fmt.Sprintf("sources %v holders %v", w.sources, w.holders) }
	return m.Walk(w)
}

// wrong returns the violation in a state: a lost change of a holder's own writer, or, in a final state, a
// holder without the copy of the source that names it. If both sources name the holder, the one that was
// written last counts.
func wrong(w world) string {
	for h, is := range w.holders {
		if is.own != w.own[h] {
			return fmt.Sprintf("holder %d has %d changes of its own writer, not %d", h, is.own, w.own[h])
		}
		want := holder{of: nobody, own: w.own[h]}
		stamp := int8(0)
		for s, v := range w.sources {
			if v.names&(1<<h) != 0 && v.stamp > stamp {
				want, stamp = holder{int8(s), v.version, w.own[h]}, v.stamp
			}
		}
		if w.Quiet() && is != want {
			return fmt.Sprintf("holder %d is %v, not %v", h, is, want)
		}
	}
	return ""
}

// worlds returns the worlds to walk through. For each rule there is a world that needs it.
func worlds() []World {
	const a, b, both = 0, 1, 3
	at, first, second := models.At, [2]uint8{both, 0}, [2]uint8{0, both} // the source that has both holders
	renamed, taken := change{source: a, names: both}, change{source: b, names: both}
	restarts := []change{{source: a, names: both}, {source: b, names: both, version: 1}, {source: b, pending: true}}
	return []World{
		{Case: at("renamed twice", Again, Lease), names: first, spends: nobody, changes: []change{renamed, renamed}, crashes: 1, lates: 1},
		{Case: at("a holder changes", ETags, Alone), names: first, spends: 1, changes: []change{renamed}, crashes: 1, lates: 1},
		{Case: at("renamed and renamed back", Unsure), names: first, spends: nobody, changes: []change{renamed, {source: a, names: both, version: 1}}, crashes: 1, lates: 1},
		{Case: at("a source takes the holders over", Takes, After), names: first, spends: nobody, changes: []change{renamed, taken}, crashes: 1, lates: 1},
		{Case: at("a source stops, another begins"), names: first, spends: nobody, changes: []change{{source: a}, taken}, crashes: 1, lates: 1},
		{Case: at("a source begins again", New), names: second, spends: nobody, changes: restarts},
		{Case: models.Thorough("a source begins again, with crashes"), names: second, spends: nobody, changes: restarts, crashes: 1, lates: 1},
		{Case: models.Thorough("a source takes one holder over that changes"), names: first, spends: 0, changes: []change{renamed, {source: b, names: 1}}, crashes: 1, lates: 1},
	}
}
