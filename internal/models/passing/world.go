package passing

import "github.com/tablepatterns/tablepatterns/internal/models"

// The rules of the protocol. A walk can drop some of them.
const (
	// Mark: the set marks a passing key before its transaction. If dropped, the set takes the key over from
	// the old owner's plain claim.
	Mark models.Rules = 1 << iota
	// OnlyOwn: only a message of the set's change writes a marked copy.
	OnlyOwn
	// Transfer: a marked key moves in one transaction. If dropped, it is released and then taken.
	Transfer
	// GiveBack: a set that was refused after a mark handles its message. If dropped, it deletes the message.
	GiveBack
	// Again: a holder reads the members again before it deletes the message.
	Again
	// Has: a holder reads the owner again before it deletes a plain copy.
	Has
	// Lease: no request arrives after another process has got the message for which it was sent.
	Lease
	// Deadline: the writer sends no transaction after the deadline of its marks, and Repair leaves them alone until then.
	Deadline
	// Taker: the mark names the member that gets the key, and Repair's intent names both.
	Taker
)

var names = []string{"Mark", "OnlyOwn", "Transfer", "GiveBack", "Again", "Has", "Lease", "Deadline", "Taker"}

// The entities, and keys that an entity can have.
const (
	x, y, z = 0, 1, 2
	keyA    = 0
	keyB    = 1
	noKey   = -1
	keep    = -2 // in a change: the member keeps its key
	nobody  = -1
)

// entity is an entity's own row: its ETag, and its unique key.
type entity struct{ version, key int8 }

// row is the copy under a key, with its claim: both are written in one transaction.
type row struct {
	owner, version   int8 // owner is nobody if the row does not exist
	reserved, passes int8 // the change that the claim names, nobody for a plain claim
}

var free = row{owner: nobody, reserved: nobody, passes: nobody}

// change is a change that a writer makes. A message of the change has its number.
type change struct {
	members uint8
	to      [3]int8
}

const (
	old       = 3 // the number of an old message, whose change was made long ago
	repairing = 4 // the slot of Repair's intent
)

type message struct {
	state         int8 // 0: does not exist, 1: held, 2: visible
	change        int8
	members, keys uint8
}

// actor is a writer, or a worker. It has a message from step prepare on.
type actor struct {
	at             step
	slot           int8
	change         int8
	members, keys  uint8
	seen           [3]entity
	n              int8  // position among members or keys
	marks, takes   uint8 // keys to mark and to reserve
	there          row   // the row as it was read
	same           bool  // the row has not been written since it was read
	taken, prepare bool
}

const (
	writers = 3
	actors  = 5
)

// request is a write.
type request struct {
	kind     kind
	slot     int8
	change   int8
	entity   int8
	key      int8
	from, to row
	etag     bool // under the ETag of the row as read, instead of its claim
	same     bool // the row has not been written since it was read
	versions [3]int8
}

type kind int8

const (
	noRequest kind = iota
	marks
	reserves
	commits
	writes
)

type world struct {
	entities [3]entity
	rows     [2]row
	messages [5]message
	actors   [actors]actor
	late     request
	over     uint8 // changes whose deadline has passed
	lates    int8
	crashes  int8
	poisons  int8
	repairs  int8
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	keys     [3]int8
	changes  []change
	workers  int
	old      bool // an old message names a for x
	lates    int8
	crashes  int8
	poisons  int8 // number of messages that can be lost while their change has a marked key
	repairs  int8
	thorough bool
	drop     models.Rules
}

func (c *World) keeps(r models.Rules) bool { return c.drop&r == 0 }

func (c *World) first() world {
	w := world{rows: [2]row{free, free}, lates: c.lates, crashes: c.crashes, poisons: c.poisons, repairs: c.repairs}
	for e, k := range c.keys {
		w.entities[e] = entity{1, k}
		if k != noKey {
			w.rows[k] = row{int8(e), 1, nobody, nobody}
		}
	}
	if c.old { // x was written since the old change, but its copy was not
		w.messages[old] = message{2, old, 1 << x, 1 << keyA}
		w.entities[x].version++
	}
	for i := range w.actors {
		switch {
		case i < len(c.changes):
			w.actors[i] = actor{at: reads, slot: int8(i), change: int8(i)}
		case i >= writers && i < writers+c.workers:
			w.actors[i] = actor{at: idle}
		}
	}
	return w
}

// quiet reports whether a state is final: no process works, no message or request is left, and Repair has nothing to do.
func (c *World) quiet(w world) bool {
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
	for _, r := range w.rows {
		if c.repairs > 0 && max(r.reserved, r.passes) != nobody {
			return false
		}
	}
	return w.late.kind == noRequest
}

// wrong returns the violation in a state, or "". In any state no two entities have one key. In a final state
// the row of a key is the copy of the entity that has it.
func (c *World) wrong(w world) string {
	for k := range w.rows {
		r, has := w.rows[k], int8(nobody)
		for e := range w.entities {
			if int(w.entities[e].key) != k {
				continue
			}
			if has != nobody {
				return "two entities have one unique key"
			}
			has = int8(e)
		}
		if !c.quiet(w) {
			continue
		}
		want := free
		if has != nobody {
			want = row{has, w.entities[has].version, nobody, nobody}
		}
		if r != want {
			return "the row of a key is not the copy of the entity that has the key"
		}
	}
	return ""
}
