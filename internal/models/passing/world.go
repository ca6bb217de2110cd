package passing

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/keys"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The rules of the protocol. A walk can drop some of them.
const (
	Mark     models.Rules = 1 << iota // the set marks a passing key before its transaction. If dropped, the set takes the key over from the old owner's plain claim.
	OnlyOwn                           // only a message of the set's change writes a marked copy
	Transfer                          // a marked key moves in one transaction. If dropped, it is released and then taken.
	GiveBack                          // a set that was refused after a mark handles its message. If dropped, it deletes the message.
	Again                             // a holder reads the members again before it deletes the message
	Has                               // a holder reads the owner again before it deletes a plain copy
	Lease                             // no request arrives after another process has got the message for which it was sent
	Deadline                          // the writer sends no transaction after the deadline of its marks, and Repair leaves them alone until then
	Taker                             // the mark names the member that gets the key, and Repair's intent names both
)

var names = []string{"Mark", "OnlyOwn", "Transfer", "GiveBack", "Again", "Has", "Lease", "Deadline", "Taker"}

var who = []string{"writer 1", "writer 2", "writer 3", "worker 1", "worker 2"}

const (
	x, keyA   = 0, 0
	writers   = 3
	old       = 3 // the number of an old message, whose change was made long ago
	repairing = 4 // the number of the message that is Repair's intent
)

type actor struct {
	keys.Holder
	marks, takes uint8 // keys to mark and to reserve
	prepared     bool  // the writer has marked or reserved a key
}

// request is a write of a row, or commits a set.
type request struct {
	commits  bool
	marks    bool // only adds the mark to the row
	change   int8
	key      int8
	from, to keys.Row
	etag     bool // under the ETag of the row as read, instead of its claim
	same     bool // the row has not been written since it was read
	versions [3]int8
}

type world struct {
	messages.World[actor, [5]actor, request, *actor]
	entities keys.Entities
	rows     keys.Rows
	over     uint8 // changes whose deadline has passed
	poisons  int8
	repairs  int8
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	keys           [3]int8
	changes        []keys.Change
	workers        int
	old            bool // an old message names a for x
	crashes, lates int8
	poisons        int8 // number of messages that can be lost while their change has a marked key
	repairs        int8
}

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop = drop
	w := world{entities: keys.New(c.keys), poisons: c.poisons, repairs: c.repairs}
	w.rows, w.Crashes, w.Lates = w.entities.Copies(), c.crashes, c.lates
	if c.old { // x was written since the old change, but its copy was not
		w.Messages[old] = messages.Message{State: messages.Visible, Intent: messages.Intent{Change: old, Members: 1 << x, Keys: 1 << keyA}}
		w.entities[x].Version++
	}
	for i := range c.changes {
		w.Begin(i, reads, i)
	}
	for i := range c.workers {
		w.Work(writers + i)
	}
	m := messages.New(who, messages.Idle, handles, c.step, c.service)
	m.After, m.Lease, m.Quiet = c.others, c.Keeps(Lease), c.quiet
	m.Wrong = func(w world) string { return w.rows.Wrong(&w.entities, c.quiet(w)) }
	m.Show = func(w world) string { return fmt.Sprintf("entities %v rows %v", w.entities, w.rows[:2]) }
	return m.Walk(w)
}

// quiet reports whether a state is final and Repair has nothing to do.
func (c *World) quiet(w world) bool {
	for _, r := range w.rows {
		if c.repairs > 0 && max(r.Reserved, r.Passes) != keys.Nobody {
			return false
		}
	}
	return w.Quiet()
}

// worlds returns the worlds to walk through. For each rule there is a world that needs it.
func worlds() []World {
	const keyB, none, keep, out = 1, keys.NoKey, keys.Keep, keys.Out
	at, set := models.At, keys.Set
	pass, back, swap, take := set(none, keyA), set(keyA, none), set(keyB, keyA), set(out, out, keyA)
	editX, editY, releaseX, releaseY := set(keep), set(out, keep), set(none), set(out, none)
	a, swapped := [3]int8{keyA, none, none}, [3]int8{keyA, keyB, none}
	return []World{
		{Case: at("passes while an old message names it", Again), keys: a, changes: []keys.Change{pass, editX}, workers: 1, old: true, crashes: 1},
		{Case: at("passes while another entity wants it", GiveBack, Lease), keys: a, changes: []keys.Change{pass, take, editY}, workers: 1, lates: 1},
		{Case: at("passes while an old message names it and another entity wants it", Mark), keys: a, changes: []keys.Change{pass, take}, workers: 1, old: true, lates: 1},
		{Case: at("given up meanwhile", OnlyOwn, Lease), keys: a, changes: []keys.Change{pass, releaseX, take}, workers: 1, crashes: 1, lates: 1},
		{Case: at("passes and back", Has), keys: a, changes: []keys.Change{pass, back, take}, workers: 1, crashes: 1, lates: 1},
		{Case: at("two keys swap", Transfer), keys: swapped, changes: []keys.Change{swap, editY, take}, workers: 1, crashes: 1, lates: 1},
		{Case: at("its message is lost", Deadline, Taker), keys: a, changes: []keys.Change{pass, take}, workers: 1, crashes: 1, poisons: 1, repairs: 1},
		{Case: models.Thorough("its message is lost"), keys: a, changes: []keys.Change{pass, releaseY, take}, workers: 2, crashes: 1, lates: 1, poisons: 1, repairs: 1},
		{Case: models.Thorough("passes while another entity wants it"), keys: a, changes: []keys.Change{pass, take, editY}, workers: 1, old: true, crashes: 1, lates: 1},
		{Case: models.Thorough("two workers"), keys: a, changes: []keys.Change{pass, editX, take}, workers: 2, old: true, crashes: 1, lates: 1},
		{Case: models.Thorough("swaps and back"), keys: swapped, changes: []keys.Change{swap, swap, take}, workers: 2, crashes: 1, lates: 1},
	}
}
