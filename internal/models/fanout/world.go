package fanout

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
)

// The rules of the protocol. A walk can drop some of them.
const (
	// ETags: the transaction has the ETag of each holder as condition.
	ETags models.Rules = 1 << iota
	// Alone: a holder that is refused is read and written by itself.
	Alone
	// Again: the source is read again after the holders were written.
	Again
	// New: a holder that the source begins to name is written even if it is correct.
	New
	// Takes: a holder is taken over from another source only if the other source does not name it, or was
	// written earlier.
	Takes
	// After: the sources are read after the holders. If dropped, the holder uses the sources as it read them
	// in an earlier round.
	After
	// Lease: no request arrives after another process has got the message for which it was sent.
	Lease
	// Unsure: an actor whose transaction got no answer leaves the message.
	Unsure
)

var names = []string{"ETags", "Alone", "Again", "New", "Takes", "After", "Lease", "Unsure"}

const (
	nobody  = -1
	spender = 2 // actors: two or more writers of sources in 0 and 1, a holder's own writer, a worker
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

type message struct {
	state      int8 // 0: does not exist, 1: held, 2: visible
	names, new uint8
}

type actor struct {
	at         step
	change     int8
	names, new uint8 // of the message
	seen       source
	n          int8
	group      uint8 // the holders that are being read and written
	write      uint8 // the holders of the group that remain to be written
	alone      uint8 // the holders that must be read and written alone
	rows       [2]holder
	same       uint8 // the rows that have not changed since they were read
	known      uint8 // the sources that were read after the holders
	sources    [2]source
}

// request writes holders, or commits a source or a holder's own change.
type request struct {
	commits bool
	spends  bool
	change  int8
	write   uint8
	same    uint8
	blind   bool
	to      [2]holder
	etag    int8 // of the source
}

type world struct {
	sources        [2]source
	holders        [2]holder
	own            [2]int8 // the changes of the holders' own writer
	messages       [3]message
	actors         [4]actor
	clock          int8
	late           request
	waits          bool // late is under way
	crashes, lates int8
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	names    [2]uint8
	changes  []change
	spends   int8 // the holder that the holders' own writer changes, -1 for none
	crashes  int8
	lates    int8
	thorough bool
	drop     models.Rules
}

func (c *World) keeps(r models.Rules) bool { return c.drop&r == 0 }

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.drop = drop
	w := world{clock: 2, crashes: c.crashes, lates: c.lates}
	for h := range w.holders {
		w.holders[h] = holder{of: nobody}
	}
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
			w.messages[i] = message{2, 3, 0}
			w.sources[ch.source].names = ch.names
			continue
		}
		w.actors[i] = actor{at: reads, change: int8(i)}
	}
	if c.spends >= 0 {
		w.actors[spender] = actor{at: sees, n: c.spends}
	}
	w.actors[worker].at = idle
	show := func(w world) string { return fmt.Sprintf("sources %v holders %v", w.sources, w.holders) }
	return models.Model[world]{Start: w, Next: c.next, Wrong: wrong, Quiet: quiet, Show: show, MaxStates: 20_000_000}.Walk()
}

// quiet reports whether a state is final.
func quiet(w world) bool {
	for i := range w.actors {
		if w.actors[i].at > idle {
			return false
		}
	}
	for i := range w.messages {
		if w.messages[i].state != 0 {
			return false
		}
	}
	return !w.waits
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
		if quiet(w) && is != want {
			return fmt.Sprintf("holder %d is %v, not %v", h, is, want)
		}
	}
	return ""
}

// Cases returns the worlds to walk through, the large ones only if thorough. For each rule there is a world that needs it.
func Cases(thorough bool) (all []models.Case) {
	const a, b, both = 0, 1, 3
	at := func(name string, shows ...models.Rules) models.Case { return models.Case{Name: name, Shows: shows} }
	for _, w := range []World{
		{Case: at("renamed twice", Again, Lease), names: [2]uint8{both, 0}, spends: nobody, changes: []change{{source: a, names: both}, {source: a, names: both}}, crashes: 1, lates: 1},
		{Case: at("a holder changes", ETags, Alone), names: [2]uint8{both, 0}, spends: 1, changes: []change{{source: a, names: both}}, crashes: 1, lates: 1},
		{Case: at("renamed and renamed back", Unsure), names: [2]uint8{both, 0}, spends: nobody, changes: []change{{source: a, names: both}, {source: a, names: both, version: 1}}, crashes: 1, lates: 1},
		{Case: at("a source takes the holders over", Takes, After), names: [2]uint8{both, 0}, spends: nobody, changes: []change{{source: a, names: both}, {source: b, names: both}}, crashes: 1, lates: 1},
		{Case: at("a source stops, another begins"), names: [2]uint8{both, 0}, spends: nobody, changes: []change{{source: a}, {source: b, names: both}}, crashes: 1, lates: 1},
		{Case: at("a source begins again", New), names: [2]uint8{0, both}, spends: nobody,
			changes: []change{{source: a, names: both}, {source: b, names: both, version: 1}, {source: b, pending: true}}},
		{Case: at("thorough: a source begins again, with crashes"), thorough: true, names: [2]uint8{0, both}, spends: nobody,
			changes: []change{{source: a, names: both}, {source: b, names: both, version: 1}, {source: b, pending: true}}, crashes: 1, lates: 1},
		{Case: at("thorough: a source takes one holder over that changes"), thorough: true, names: [2]uint8{both, 0}, spends: 0, changes: []change{{source: a, names: both}, {source: b, names: 1}}, crashes: 1, lates: 1},
	} {
		if w.thorough && !thorough {
			continue
		}
		w.Case.Walk = w.Walk
		all = append(all, w.Case)
	}
	return all
}
