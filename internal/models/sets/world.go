package sets

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
)

// The rules of the protocol. A walk can drop some of them.
const (
	// Claims: each row of a joint write has its own claim as condition.
	Claims models.Rules = 1 << iota
	// OneByOne: rows that the service refuses together are written one by one.
	OneByOne
	// Anew: a later round also reconciles the rows that the first round has written together.
	Anew
	// All: the closing read reads every member. If dropped, it reads only the first member.
	All
	// Handle: a set that was refused after it has reserved keys handles its message.
	Handle
	// Own: a holder frees only reservations of its own change.
	Own
	// Lease: no request arrives after another process has got the message for which it was sent.
	Lease
	// Unsure: a holder with an unanswered request leaves the message.
	Unsure
)

var names = []string{"Claims", "OneByOne", "Anew", "All", "Handle", "Own", "Lease", "Unsure"}

const (
	x, y, z = 0, 1, 2
	noKey   = -1
	keep    = -2
	nobody  = -1
	worker  = 3 // actors: three writers, a worker
)

// entity is an entity's ETag and its unique key.
type entity struct{ version, key int8 }

// row is the row of a key, with its claim. reserved is the change that has reserved it.
type row struct{ owner, version, reserved int8 }

var free = row{nobody, 0, nobody}

type change struct {
	members uint8
	to      [3]int8
}

type message struct {
	state         int8 // 0: does not exist, 1: held, 2: visible
	members, keys uint8
}

type actor struct {
	at            step
	change        int8
	members, keys uint8
	left, placed  uint8 // keys still to reserve; keys that were written together
	seen          [3]entity
	n             int8
	there         row
	same          bool
	taken, unsure bool
	reserved      bool
}

// request writes the rows of several keys, or commits a set.
type request struct {
	commits  bool
	change   int8
	keys     uint8
	from, to [3]row
	etag     bool
	blind    bool
	same     bool
	versions [3]int8
}

type world struct {
	entities       [3]entity
	rows           [3]row
	messages       [3]message
	actors         [4]actor
	late           request
	waits          bool // late is under way
	crashes, lates int8
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	keys     [3]int8
	changes  []change
	crashes  int8
	lates    int8
	plain    bool // the keys are not unique, so they are not reserved; a change ends if it reads that another entity has its key
	thorough bool
	drop     models.Rules
}

func (c *World) keeps(r models.Rules) bool { return c.drop&r == 0 }

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.drop = drop
	w := world{rows: [3]row{free, free, free}, crashes: c.crashes, lates: c.lates}
	for e, k := range c.keys {
		w.entities[e] = entity{1, k}
		if k != noKey {
			w.rows[k] = row{int8(e), 1, nobody}
		}
	}
	for i := range c.changes {
		w.actors[i] = actor{at: reads, change: int8(i)}
	}
	w.actors[worker].at = idle
	show := func(w world) string { return fmt.Sprintf("entities %v rows %v", w.entities, w.rows) }
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

// wrong returns the violation in a state: two owners of a key, or, in a final state, a row that is not the
// copy of its owner.
func wrong(w world) string {
	for k := range w.rows {
		want, owners := free, 0
		for e, v := range w.entities {
			if int(v.key) == k {
				want = row{int8(e), v.version, nobody}
				owners++
			}
		}
		if owners > 1 {
			return "two entities have one unique key"
		}
		if quiet(w) && w.rows[k] != want {
			return fmt.Sprintf("the row of key %d is %v, not %v", k, w.rows[k], want)
		}
	}
	return ""
}

// Cases returns the worlds to walk through, the large ones only if thorough. For each rule there is a world that needs it.
func Cases(thorough bool) (all []models.Case) {
	const a, b, c = 0, 1, 2
	at := func(name string, shows ...models.Rules) models.Case { return models.Case{Name: name, Shows: shows} }
	one := func(e int, to int8) change {
		ch := change{1 << e, [3]int8{keep, keep, keep}}
		ch.to[e] = to
		return ch
	}
	set := change{1<<x | 1<<y, [3]int8{a, b, keep}}
	none := [3]int8{noKey, noKey, noKey}
	for _, w := range []World{
		{Case: at("a member changes", Anew, All), keys: none, changes: []change{set, one(y, keep)}, crashes: 1, lates: 1},
		{Case: at("the first member gives up its key", Handle, Lease, Unsure), keys: none, changes: []change{set, one(x, noKey)}, crashes: 1, lates: 1},
		{Case: at("another entity takes a key", Own), keys: none, changes: []change{set, one(x, a), one(z, a)}, crashes: 1},
		{Case: at("keys that are not unique", Claims), plain: true, keys: none, changes: []change{set, one(y, noKey), one(z, b)}},
		{Case: at("a key that another entity has given up", OneByOne), plain: true, keys: [3]int8{noKey, noKey, b}, changes: []change{set, one(z, noKey)}, crashes: 1},
		{Case: at("moves", Unsure), keys: [3]int8{c, noKey, noKey}, changes: []change{set, one(x, keep)}, crashes: 1, lates: 1},
		{Case: at("thorough: two sets"), thorough: true, keys: [3]int8{c, noKey, noKey}, changes: []change{set, {1<<y | 1<<z, [3]int8{keep, keep, a}}, one(x, keep)}, crashes: 1, lates: 1},
	} {
		if w.thorough && !thorough {
			continue
		}
		w.Case.Walk = w.Walk
		all = append(all, w.Case)
	}
	return all
}
