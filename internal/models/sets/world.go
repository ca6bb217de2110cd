package sets

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/keys"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The rules of the protocol. A walk can drop some of them.
const (
	Claims   models.Rules = 1 << iota // each row of a joint write has its own claim as condition
	OneByOne                          // rows that the service refuses together are written one by one
	Anew                              // a later round also reconciles the rows that the first round has written together
	All                               // the closing read reads every member. If dropped, it reads only the first member.
	Handle                            // a set that was refused after it has reserved keys handles its message
	Own                               // a holder frees only reservations of its own change
	Lease                             // no request arrives after another process has got the message for which it was sent
	Unsure                            // a holder with an unanswered request leaves the message
)

var names = []string{"Claims", "OneByOne", "Anew", "All", "Handle", "Own", "Lease", "Unsure"}

var who = []string{"writer 1", "writer 2", "writer 3", "the worker"}

const worker = 3

type actor struct {
	keys.Holder
	left, placed uint8 // keys still to reserve; keys that were written together
	reserved     bool
}

// request writes the rows of several keys, or commits a set.
type request struct {
	commits  bool
	change   int8
	keys     uint8
	from, to keys.Rows
	etag     bool // under the ETag of the row as read, instead of the claim in from
	blind    bool // without any condition
	same     bool // the row has not been written since it was read
	versions [3]int8
}

type world struct {
	messages.World[actor, [4]actor, request, *actor]
	entities keys.Entities
	rows     keys.Rows
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	keys           [3]int8
	changes        []keys.Change
	crashes, lates int8
	plain          bool // the keys are not unique, so they are not reserved; a change ends if it reads that another entity has its key
}

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop = drop
	w := world{entities: keys.New(c.keys)}
	w.rows, w.Crashes, w.Lates = w.entities.Copies(), c.crashes, c.lates
	for i := range c.changes {
		w.Begin(i, reads, i)
	}
	w.Work(worker)
	m := messages.New(who, reads, handles, c.step, c.service)
	m.Lease = c.Keeps(Lease)
	m.Wrong = func(w world) string { return w.rows.Wrong(&w.entities, w.Quiet()) }
	m.Show = func(w world) string { return fmt.Sprintf("entities %v rows %v", w.entities, w.rows) }
	return m.Walk(w)
}

// worlds returns the worlds to walk through. For each rule there is a world that needs it.
func worlds() []World {
	const a, b, c, keep, out, none = 0, 1, 2, keys.Keep, keys.Out, keys.NoKey
	at, set, nowhere := models.At, keys.Set, [3]int8{none, none, none}
	both, moved := set(a, b), [3]int8{c, none, none}
	return []World{
		{Case: at("a member changes", Anew, All), keys: nowhere, changes: []keys.Change{both, set(out, keep)}, crashes: 1, lates: 1},
		{Case: at("the first member gives up its key", Handle, Lease, Unsure), keys: nowhere, changes: []keys.Change{both, set(none)}, crashes: 1, lates: 1},
		{Case: at("another entity takes a key", Own), keys: nowhere, changes: []keys.Change{both, set(a), set(out, out, a)}, crashes: 1},
		{Case: at("keys that are not unique", Claims), plain: true, keys: nowhere, changes: []keys.Change{both, set(out, none), set(out, out, b)}},
		{Case: at("a key that another entity has given up", OneByOne), plain: true, keys: [3]int8{none, none, b}, changes: []keys.Change{both, set(out, out, none)}, crashes: 1},
		{Case: at("moves", Unsure), keys: moved, changes: []keys.Change{both, set(keep)}, crashes: 1, lates: 1},
		{Case: models.Thorough("two sets"), keys: moved, changes: []keys.Change{both, set(out, keep, a), set(keep)}, crashes: 1, lates: 1},
	}
}
