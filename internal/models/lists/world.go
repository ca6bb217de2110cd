package lists

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
)

// The rules of the protocol. A walk can drop some of them.
const (
	// ETags: a row is replaced or deleted under its ETag.
	ETags models.Rules = 1 << iota
	// Fresh: a row is inserted only if no row has its key.
	Fresh
	// OneByOne: a list whose transaction is refused is written row by row.
	OneByOne
	// Everywhere: a member leaves all rows that have it.
	Everywhere
	// Enter: members enter their lists before they leave others.
	Enter
	// All: the closing read reads every member. If dropped, it reads only the first member.
	All
	// Again: the lists are written again if a member has changed.
	Again
	// Lease: no request arrives after another process has got the message for which it was sent.
	Lease
	// Unsure: a holder with an unanswered request leaves the message.
	Unsure
)

var names = []string{"ETags", "Fresh", "OneByOne", "Everywhere", "Enter", "All", "Again", "Lease", "Unsure"}

const (
	x, y, z = 0, 1, 2
	none    = -1 // no list
	keep    = -2
	worker  = 3 // actors: three writers, a worker
	room    = 2 // number of members that a row can hold
)

// entity is an entity's ETag and its list.
type entity struct{ version, list int8 }

// row is a row of a list: the members in it. A row without members does not exist.
type row uint8

// list has two rows.
type list [2]row

func (l list) members() uint8 { return uint8(l[0] | l[1]) }

type change struct {
	members uint8
	to      [3]int8
}

type message struct {
	state          int8 // 0: does not exist, 1: held, 2: visible
	members, lists uint8
}

type actor struct {
	at             step
	change         int8
	members, lists uint8
	seen           [3]entity
	n              int8 // the member or row that is read next
	leaving        bool // the members have entered their lists
	list           int8
	rows           list
	same           uint8 // the rows that have not changed since they were read
	alone          bool  // the service has refused the transaction with all rows of the list
	unsure         bool
}

// request writes rows of a list, or commits a set.
type request struct {
	commits  bool
	change   int8
	list     int8
	write    uint8
	same     uint8
	to       list
	inserts  uint8 // rows that must not exist
	versions [3]int8
}

type world struct {
	entities       [3]entity
	lists          [2]list
	messages       [3]message
	actors         [4]actor
	late           request
	waits          bool // late is under way
	crashes, lates int8
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	of       [3]int8 // the lists of the entities
	lists    [2]list
	changes  []change
	crashes  int8
	lates    int8
	findable uint8 // the members that must be in some list in every state
	thorough bool
	drop     models.Rules
}

func (c *World) keeps(r models.Rules) bool { return c.drop&r == 0 }

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.drop = drop
	w := world{lists: c.lists, crashes: c.crashes, lates: c.lates}
	for e, l := range c.of {
		w.entities[e] = entity{1, l}
	}
	for i := range c.changes {
		w.actors[i] = actor{at: reads, change: int8(i)}
	}
	w.actors[worker].at = idle
	show := func(w world) string { return fmt.Sprintf("entities %v lists %b", w.entities, w.lists) }
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
	return !w.waits
}

// wrong returns the violation in a state: a member that is in no list, or, in a final state, a list that does
// not have exactly its members.
func (c *World) wrong(w world) string {
	if all := w.lists[0].members() | w.lists[1].members(); c.findable&^all != 0 {
		return fmt.Sprintf("no list has the members %b", c.findable&^all)
	}
	if !quiet(w) {
		return ""
	}
	for i, l := range w.lists {
		want := uint8(0)
		for e, v := range w.entities {
			if int(v.list) == i {
				want |= 1 << e
			}
		}
		if l.members() != want {
			return fmt.Sprintf("list %d has the members %b, not %b", i, l.members(), want)
		}
	}
	return ""
}

// Cases returns the worlds to walk through, the large ones only if thorough. For each rule there is a world that needs it.
func Cases(thorough bool) (all []models.Case) {
	const a, b = 0, 1
	at := func(name string, shows ...models.Rules) models.Case { return models.Case{Name: name, Shows: shows} }
	one := func(e int, to int8) change {
		ch := change{1 << e, [3]int8{keep, keep, keep}}
		ch.to[e] = to
		return ch
	}
	enter, move := change{1<<x | 1<<y, [3]int8{a, a, keep}}, change{1<<x | 1<<y, [3]int8{b, b, keep}}
	nowhere := [3]int8{none, none, none}
	spread := [2]list{{1<<x | 1<<y, 1 << z}}
	for _, w := range []World{
		{Case: at("two enter, both leave again", Unsure), of: nowhere, changes: []change{enter, {1<<x | 1<<y, [3]int8{none, none, keep}}}, crashes: 1, lates: 1},
		{Case: at("two enter, one leaves again", All, Again, Lease), of: nowhere, changes: []change{enter, one(y, none)}, crashes: 1, lates: 1},
		{Case: at("two enter beside a third", Fresh, OneByOne), of: nowhere, changes: []change{enter, one(z, a)}, crashes: 1},
		{Case: at("two of a list with two rows leave, one enters", ETags), of: [3]int8{a, a, none}, lists: [2]list{{1 << x, 1 << y}},
			changes: []change{{1<<x | 1<<y, [3]int8{none, none, keep}}, one(z, a)}, crashes: 1},
		{Case: at("a member that has two rows", Everywhere), of: [3]int8{a, a, a}, lists: [2]list{{1<<x | 1<<y, 1<<x | 1<<z}},
			changes: []change{{1<<x | 1<<z, [3]int8{none, none, none}}}, crashes: 1, lates: 1},
		{Case: at("two move", Enter), of: [3]int8{a, a, a}, lists: spread, findable: 7, changes: []change{move}, crashes: 1, lates: 1},
		{Case: at("thorough: two move beside a third"), thorough: true, of: [3]int8{a, a, a}, lists: spread, changes: []change{move, one(z, b)}, crashes: 1, lates: 1},
		{Case: at("thorough: two sets"), thorough: true, of: [3]int8{a, none, none}, lists: [2]list{{1 << x}},
			changes: []change{move, {1<<y | 1<<z, [3]int8{keep, a, b}}}, crashes: 1},
	} {
		if w.thorough && !thorough {
			continue
		}
		w.Case.Walk = w.Walk
		all = append(all, w.Case)
	}
	return all
}
