package deferred

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/keys"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The rules of the protocol. A walk can drop some of them.
const (
	Wait    models.Rules = 1 << iota // the caller's next change of an entity waits for the background holder of the change before
	Again                            // the background holder reads the members again before it deletes the message
	Lease                            // a holder that has lost its lease sends no more
	Unsure                           // a holder with an unanswered request leaves the message
	Release                          // the writer removes released unique keys before it returns, not in the background
	Present                          // there is no marker for an absent entity
	Whole                            // a worker that finds another ETag than the marker writes all keys, also those that the writer had written
)

var names = []string{"Wait", "Again", "Lease", "Unsure", "Release", "Present", "Whole"}

var who = []string{"the caller", "background 1", "background 2", "background 3", "the rival", "the worker"}

const (
	x      = 0
	caller = 0 // actors: the caller, a background holder for each of its changes, a rival, a worker
	rival  = 4
	worker = 5
	rivals = 3 // the number of the rival's change, after those of the caller
)

// same compares what two reads have shown: an entity without a key does not exist, so it has no ETag.
func same(e, o keys.Entity) bool { return e == o || e.Key == keys.NoKey && o.Key == keys.NoKey }

// marker is the version of x from which the unique keys were written.
type marker struct {
	is bool
	of keys.Entity
}

type actor struct {
	keys.Holder
	rest               bool // only the plain copies remain to be written
	late               bool // only the removals remain
	reserved, lostOnce bool
}

// request writes the row of a key or a plain copy, or commits a change.
type request struct {
	kind     kind
	change   int8
	key      int8
	from, to keys.Row
	etag     bool // under the ETag of the row as read, instead of the claim in from
	same     bool // the row has not been written since it was read
	versions [3]int8
}

type kind int8

const (
	commits kind = iota
	writes
	copies
)

type world struct {
	messages.World[actor, [6]actor, request, *actor]
	entities keys.Entities // x and y
	rows     keys.Rows
	markers  [5]marker // of the messages
	plain    [2]int8   // by key: the version of x in its plain copy, 0 for none; used only with the marker
	own      [2]int8   // the version that the caller has written last, 0 if its change failed
	failed   bool      // a change of the caller failed at a key, although no other process was at work
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	changes        []keys.Change // of the caller
	rival          keys.Change
	marker         bool // the writer leaves the plain copies to a worker, with a marker
	crashes, lates int8
}

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop = drop
	w := world{entities: keys.New([3]int8{0, keys.NoKey, keys.NoKey})}
	if w.rows, w.Crashes, w.Lates = w.entities.Copies(), c.crashes, c.lates; c.marker {
		w.plain[0] = 1
	}
	w.Begin(caller, begins, 0)
	if c.rival.Members != 0 {
		w.Begin(rival, reads, rivals)
	}
	w.Work(worker)
	m := messages.New(who, messages.Never, handles, c.step, c.service)
	m.After, m.Lease, m.Wrong = c.processDies, c.Keeps(Lease), c.wrong
	m.Show = func(w world) string {
		return fmt.Sprintf("entities %v rows %v plain %v", w.entities[:2], w.rows[:2], w.plain)
	}
	return m.Walk(w)
}

// wrong returns the violation in a state: two owners of a unique key, or, in a final state, a wrong copy.
// While only the caller's process is at work, a copy that does not match the caller's last change is also a
// violation, and so is a change of the caller that was refused.
func (c *World) wrong(w world) string {
	if clash := w.rows.Wrong(&w.entities, false); clash != "" {
		return clash
	}
	if w.failed {
		return "a key that a change of the caller had released was refused to its next change"
	}
	if w.Quiet() {
		return c.differs(&w)
	}
	if at := w.Actors[caller].At; c.alone(&w) && (at == begins || at == messages.Done) {
		for e := range w.own {
			if w.own[e] != w.entities[e].Version && w.entities[e].Version != 1 {
				return ""
			}
		}
		if d := w.rows.Wrong(&w.entities, true); d != "" {
			return "the caller does not read its own write: " + d
		}
	}
	return ""
}

// alone reports whether only the caller's process is at work, and no other process has work left.
func (c *World) alone(w *world) bool {
	for i := range w.Messages {
		if w.Messages[i].State == messages.Visible {
			return false
		}
	}
	return !w.Waits && w.Actors[rival].At <= reads && w.Actors[worker].At <= messages.Idle && w.Crashes == c.crashes && w.Lates == c.lates
}

// differs returns the row or plain copy that is wrong, or "".
func (c *World) differs(w *world) string {
	if d := w.rows.Wrong(&w.entities, true); d != "" {
		return d
	}
	for k := range w.plain {
		want := int8(0)
		if int(w.entities[x].Key) == k && c.marker {
			want = w.entities[x].Version
		}
		if w.plain[k] != want {
			return fmt.Sprintf("the plain copy of key %d is of version %d, not %d", k, w.plain[k], want)
		}
	}
	return ""
}

// worlds returns the worlds to walk through; at first x has the key a, and y has none. For each rule there is a world that needs it.
func worlds() []World {
	const a, b, none, keep, out = 0, 1, keys.NoKey, keys.Keep, keys.Out
	at, set, edit := models.At, keys.Set, keys.Set(keep)
	return []World{
		{Case: at("contents", Wait, Again), changes: []keys.Change{edit, edit}, rival: edit, crashes: 1},
		{Case: at("three changes", Wait), changes: []keys.Change{set(b), edit, set(a)}, crashes: 1},
		{Case: at("a request without an answer", Unsure, Lease), changes: []keys.Change{set(b)}, rival: edit, crashes: 1, lates: 1},
		{Case: at("another entity takes the released key", Release), changes: []keys.Change{set(b), set(out, a)}, crashes: 1, lates: 1},
		{Case: at("two members", Again), changes: []keys.Change{set(keep, b), set(out, none)}, rival: edit, crashes: 1},
		{Case: at("marker", Whole), marker: true, changes: []keys.Change{set(b)}, rival: edit, crashes: 1},
		{Case: at("marker of an absent entity", Present), marker: true, changes: []keys.Change{set(none), set(a), set(none)}, crashes: 1},
		{Case: models.Thorough("contents"), changes: []keys.Change{edit, set(b)}, rival: edit, crashes: 1, lates: 1},
		{Case: models.Thorough("marker"), marker: true, changes: []keys.Change{set(b), edit}, rival: set(a), crashes: 1},
		{Case: models.Thorough("two members"), changes: []keys.Change{set(b, keep), set(out, a)}, rival: edit, crashes: 1, lates: 1},
	}
}
