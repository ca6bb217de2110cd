package deferred

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
)

// The rules of the protocol. A walk can drop some of them.
const (
	// Wait: the caller's next change of an entity waits for the background holder of the change before.
	Wait models.Rules = 1 << iota
	// Again: the background holder reads the members again before it deletes the message.
	Again
	// Lease: a holder that has lost its lease sends no more.
	Lease
	// Unsure: a holder with an unanswered request leaves the message.
	Unsure
	// Release: the writer removes released unique keys before it returns, not in the background.
	Release
	// Present: there is no marker for an absent entity.
	Present
	// Whole: a worker that finds another ETag than the marker writes all keys, also those that the writer had written.
	Whole
)

var names = []string{"Wait", "Again", "Lease", "Unsure", "Release", "Present", "Whole"}

const (
	x, y    = 0, 1
	noKey   = -1
	keep    = -2
	nobody  = -1
	caller  = 0 // actors: the caller, a background holder for each of its changes, a rival, a worker
	rival   = 4
	worker  = 5
	actors  = 6
	changes = 3 // number of changes of the caller; the rival's change has the next number
)

// entity is an entity's ETag and its unique key; without a key it does not exist.
type entity struct{ version, key int8 }

// same compares what two reads have shown: an entity that does not exist has no ETag.
func (e entity) same(o entity) bool { return e == o || e.key == noKey && o.key == noKey }

// row is a unique key's row. reserved is the change that has reserved it.
type row struct{ owner, version, reserved int8 }

var free = row{nobody, 0, nobody}

type change struct {
	members uint8
	to      [2]int8
}

type message struct {
	state         int8 // 0: does not exist, 1: held, 2: visible
	members, keys uint8
	marked        bool
	marker        entity // the version from which the unique keys were written
}

type actor struct {
	at                 step
	change             int8
	members, keys      uint8
	seen               [2]entity
	n                  int8
	there              row
	same               bool
	rest               bool // only the plain copies remain to be written
	late               bool // only the removals remain
	taken, unsure      bool
	reserved, lostOnce bool
}

type request struct {
	kind     kind
	change   int8
	entity   int8
	key      int8
	from, to row
	etag     bool
	same     bool
	versions [2]int8
}

type kind int8

const (
	noRequest kind = iota
	reserves
	commits
	writes
	copies
)

type world struct {
	entities [2]entity
	rows     [2]row
	plain    [2]int8 // by key: the version of x in its plain copy, 0 for none; used only with the marker
	messages [changes + 1]message
	actors   [actors]actor
	own      [2]int8 // the version that the caller has written last, 0 if its change failed
	late     request
	crashes  int8
	lates    int8
	failed   bool // a change of the caller failed at a key, although no other process was at work
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	keys     [2]int8
	changes  []change // of the caller
	rival    change
	marker   bool // the writer leaves the plain copies to a worker, with a marker
	crashes  int8
	lates    int8
	thorough bool
	drop     models.Rules
}

func (c *World) keeps(r models.Rules) bool { return c.drop&r == 0 }

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.drop = drop
	w := world{rows: [2]row{free, free}, crashes: c.crashes, lates: c.lates}
	for e, k := range c.keys {
		w.entities[e] = entity{1, k}
		if k != noKey {
			w.rows[k] = row{int8(e), 1, nobody}
			if c.marker && e == x {
				w.plain[k] = 1
			}
		}
	}
	w.actors[caller].at, w.actors[worker].at = begins, idle
	if c.rival.members != 0 {
		w.actors[rival] = actor{at: reads, change: changes}
	}
	show := func(w world) string { return fmt.Sprintf("entities %v rows %v plain %v", w.entities, w.rows, w.plain) }
	return models.Model[world]{Start: w, Next: c.next, Wrong: c.wrong, Quiet: quiet, Show: show, MaxStates: 20_000_000}.Walk()
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
	return w.late.kind == noRequest
}

// wrong returns the violation in a state: two owners of a unique key, or, in a final state, a wrong copy.
// While only the caller's process is at work, a copy that does not match the caller's last change is also a
// violation, and so is a change of the caller that was refused.
func (c *World) wrong(w world) string {
	if k := w.entities[x].key; k != noKey && k == w.entities[y].key {
		return "two entities have one unique key"
	}
	if w.failed {
		return "a key that a change of the caller had released was refused to its next change"
	}
	if quiet(w) {
		return c.differs(&w, true)
	}
	if c.alone(&w) && (w.actors[caller].at == begins || w.actors[caller].at == done) {
		for e := range w.own {
			if w.own[e] != w.entities[e].version && w.entities[e].version != 1 {
				return ""
			}
		}
		if d := c.differs(&w, false); d != "" {
			return "the caller does not read its own write: " + d
		}
	}
	return ""
}

// alone reports whether only the caller's process is at work, and no other process has work left.
func (c *World) alone(w *world) bool {
	for i := range w.messages {
		if w.messages[i].state == 2 {
			return false
		}
	}
	return w.late.kind == noRequest && w.actors[rival].at <= reads && w.actors[worker].at <= idle && w.crashes == c.crashes && w.lates == c.lates
}

// differs returns the row that is wrong, or "".
func (c *World) differs(w *world, all bool) string {
	for k := range w.rows {
		want, plain := free, int8(0)
		for e, v := range w.entities {
			if int(v.key) == k {
				want = row{int8(e), v.version, nobody}
				if e == x && c.marker {
					plain = v.version
				}
			}
		}
		if w.rows[k] != want {
			return fmt.Sprintf("the row of key %d is %v, not %v", k, w.rows[k], want)
		}
		if all && w.plain[k] != plain {
			return fmt.Sprintf("the plain copy of key %d is of version %d, not %d", k, w.plain[k], plain)
		}
	}
	return ""
}
