package deferred

import (
	"fmt"
	"math/bits"

	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The rules of the protocol. A walk can drop some of them.
const (
	Intent models.Rules = 1 << iota // the message is put before anything is written
	Named                           // a holder writes only the rows that its message names
	ETags                           // a row is written together with the number of its parent, under the number's ETag
	Again                           // the holder reads the members again before it deletes the message
	Wait                            // the caller's next change of an entity waits for the background holder of the change before
	Whole                           // a worker writes all rows that the message names, also those that the writer has written
	Lease                           // a holder that has lost its lease sends no more, and no process gets a message while a request for it is on its way
	Unsure                          // a holder with an unanswered request leaves the message
)

var names = []string{"Intent", "Named", "ETags", "Again", "Wait", "Whole", "Lease", "Unsure"}

var who = []string{"the caller", "background 1", "background 2", "background 3", "the rival", "the worker"}

const (
	x, y   = 0, 1
	caller = 0 // actors: the caller, a background holder for each of its changes, a rival, a worker
	rival  = 4
	worker = 5
	rivals = 3 // the number of the rival's first change, after those of the caller
)

const (
	parents = 3  // the number of parents
	none    = -1 // the parent of an entity that does not exist
	out     = -2 // in a change: the entity is no member
)

// entity is an entity's ETag and its parent.
type entity struct{ version, parent int8 }

// same compares what two reads have shown: an entity that does not exist has no ETag.
func (e entity) same(o entity) bool { return e == o || e.parent == none && o.parent == none }

// change is a change of one or both entities, or a job that changes none: the parents that x and y get.
type change struct {
	to  [2]int8
	job bool
}

func move(x, y int8) change { return change{to: [2]int8{x, y}} }

// list is what a parent has: a row for each entity, and their number.
type list struct {
	rows   uint8
	number int8
}

type actor struct {
	messages.Actor
	seen    [2]entity
	open    uint8 // the members that may have changed since the actor wrote their rows
	n       int8  // the next member or row
	has     bool  // the row exists, as the actor has read it
	number  int8  // as the actor has read it
	same    bool  // the number has not been written since then
	expired bool  // the lease is lost
}

// request adds or removes a row, or commits a change.
type request struct {
	commits bool
	change  int8
	seen    [2]entity
	row     int8
	adds    bool
	number  int8
	same    bool
}

type world struct {
	messages.World[actor, [6]actor, request, *actor]
	entities [2]entity
	lists    [2 * parents]list
	own      [2]int8 // the version that the caller has written last, 0 if its change failed
	found    bool    // the job has put a message that names what is wrong, or has found nothing
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	changes        []change // of the caller
	rivals         []change // of another process, which closes its intents before it returns
	async          bool     // a second pattern, whose lists the writers leave to workers; then x is the only entity
	damaged        bool     // at first, x has a row at another parent, and none at its own
	crashes, lates int8
}

// A message names rows by numbers: those of x and then those of y or, with async, those of x in the second pattern.

func (c *World) of(row int8) (entity int8) {
	if c.async {
		return x
	}
	return row / parents
}

// at returns the list with a row.
func (c *World) at(w *world, row int8) *list {
	if c.async {
		return &w.lists[row]
	}
	return &w.lists[row%parents]
}

func (c *World) has(w *world, row int8) bool { return c.at(w, row).rows&(1<<c.of(row)) != 0 }

// needs reports whether an entity, as it was read, has a row.
func (c *World) needs(seen *[2]entity, row int8) bool {
	return seen[c.of(row)].parent == row%parents
}

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop = drop
	w := world{entities: [2]entity{{1, 0}, {1, none}}}
	w.Crashes, w.Lates = c.crashes, c.lates
	for row := range int8(2 * parents) {
		if c.needs(&w.entities, row) != (c.damaged && row < 2) {
			*c.at(&w, row) = list{1, 1}
		}
	}
	w.Begin(caller, begins, 0)
	if len(c.rivals) > 0 {
		w.Begin(rival, reads, rivals)
	}
	w.Work(worker)
	m := messages.New(who, messages.Never, handles, c.step, c.service)
	m.After, m.Lease, m.Wrong = c.processDies, c.Keeps(Lease), c.wrong
	m.Show = func(w world) string { return fmt.Sprintf("entities %v lists %v", w.entities, w.lists) }
	return m.Walk(w)
}

// wrong returns the violation in a state: a wrong number, or, in a final state, a wrong row. While only the caller's process is at
// work, a row that does not match the caller's last change is also a violation.
func (c *World) wrong(w world) string {
	for i, l := range w.lists {
		if bits.OnesCount8(l.rows) != int(l.number) {
			return fmt.Sprintf("list %d has %d rows, and its number is %d", i, bits.OnesCount8(l.rows), l.number)
		}
	}
	at := w.Actors[caller].At
	final, alone := w.Quiet() && (!c.damaged || w.found), c.alone(&w) && !c.damaged && (at == begins || at == messages.Done)
	for row := range int8(2 * parents) {
		e := c.of(row)
		if c.has(&w, row) == c.needs(&w.entities, row) {
			continue
		}
		if final {
			return fmt.Sprintf("row %d is wrong", row)
		}
		if alone && w.own[e] == w.entities[e].version {
			return fmt.Sprintf("the caller does not read its own write: row %d is wrong", row)
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

// worlds returns the worlds to walk through; at first x is at parent 0, and y does not exist. For each rule there is a world that needs it.
func worlds() []World {
	at, large := models.At, models.Thorough
	there, back, away := []change{move(1, out)}, []change{move(0, out)}, []change{move(2, out)}
	job := []change{{job: true}}
	return []World{
		{Case: at("moved, and moved back by another process", Intent, Again), changes: there, rivals: back, crashes: 1},
		{Case: at("the same, a request gets no answer", Lease, Unsure), changes: there, rivals: back, crashes: 1, lates: 1},
		{Case: at("three changes", Wait), changes: []change{move(1, out), move(0, out), move(1, out)}, crashes: 1},
		{Case: at("moved to a third parent and away", Named), changes: there, rivals: []change{move(2, out), move(0, out)}, crashes: 1},
		{Case: at("two entities come to a parent", ETags), changes: there, rivals: []change{move(out, 1)}, crashes: 1, lates: 1},
		{Case: at("a set of both entities", Again), changes: []change{move(1, 0)}, rivals: []change{move(out, 2)}, crashes: 1},
		{Case: at("deleted, and inserted again"), changes: []change{move(none, out), move(0, out)}, rivals: []change{move(none, out)}, crashes: 1},
		{Case: at("some rows are left to a worker", Whole), async: true, changes: there, rivals: back, crashes: 1},
		{Case: at("Rebuild, and a change", Intent, Again), damaged: true, changes: away, rivals: job, crashes: 1},
		{Case: at("Rebuild, and two changes"), damaged: true, changes: []change{move(1, out), move(0, out)}, rivals: job, crashes: 1},
		{Case: large("moved there and back"), changes: []change{move(1, out), move(0, out)}, rivals: away, crashes: 1, lates: 1},
		{Case: large("a set of both entities"), changes: []change{move(1, 0), move(out, none)}, rivals: []change{move(2, out)}, crashes: 1, lates: 1},
		{Case: large("some rows are left to a worker"), async: true, changes: []change{move(1, out), move(2, out)}, rivals: back, crashes: 1, lates: 1},
		{Case: large("Rebuild"), damaged: true, changes: []change{move(1, out), move(0, out)}, rivals: job, crashes: 1, lates: 1},
	}
}
