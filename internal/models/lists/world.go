package lists

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/keys"
	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// The rules of the protocol. A walk can drop some of them.
const (
	ETags      models.Rules = 1 << iota // a row is replaced or deleted under its ETag
	Fresh                               // a row is inserted only if no row has its key
	OneByOne                            // a list whose transaction is refused is written row by row
	Everywhere                          // a member leaves all rows that have it
	Enter                               // members enter their lists before they leave others
	All                                 // the closing read reads every member. If dropped, it reads only the first member.
	Again                               // the lists are written again if a member has changed
	Lease                               // no request arrives after another process has got the message for which it was sent
	Unsure                              // a holder with an unanswered request leaves the message
)

var names = []string{"ETags", "Fresh", "OneByOne", "Everywhere", "Enter", "All", "Again", "Lease", "Unsure"}

var who = []string{"writer 1", "writer 2", "writer 3", "the worker"}

const (
	worker = 3
	room   = 2 // number of members that a row can hold
)

// row is a row of a list: the members in it. A row without members does not exist.
type row uint8

// list has two rows.
type list [2]row

func (l list) members() uint8 { return uint8(l[0] | l[1]) }

// actor is a process. The key of an entity is its list, and N is the member or row that the actor reads next.
type actor struct {
	keys.Reader
	leaving bool // the members have entered their lists
	list    int8
	rows    list
	same    uint8 // the rows that have not changed since they were read
	alone   bool  // the service has refused the transaction with all rows of the list
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
	messages.World[actor, [4]actor, request, *actor]
	entities keys.Entities
	lists    [2]list
}

// World is an initial state and the parameters of a model.
type World struct {
	models.Case
	of             [3]int8 // the lists of the entities
	lists          [2]list
	changes        []keys.Change
	crashes, lates int8
	findable       uint8 // the members that must be in some list in every state
}

// Walk explores the world without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop = drop
	w := world{entities: keys.New(c.of), lists: c.lists}
	w.Crashes, w.Lates = c.crashes, c.lates
	for i := range c.changes {
		w.Begin(i, reads, i)
	}
	w.Work(worker)
	m := messages.New(who, reads, handles, c.step, c.service)
	m.Wrong, m.Lease = c.wrong, c.Keeps(Lease)
	m.Show = func(w world) string { return fmt.Sprintf("entities %v lists %b", w.entities, w.lists) }
	return m.Walk(w)
}

// wrong returns the violation in a state: a member that is in no list, or, in a final state, a list that does
// not have exactly its members.
func (c *World) wrong(w world) string {
	if all := w.lists[0].members() | w.lists[1].members(); c.findable&^all != 0 {
		return fmt.Sprintf("no list has the members %b", c.findable&^all)
	}
	if !w.Quiet() {
		return ""
	}
	for i, l := range w.lists {
		want := uint8(0)
		for e, v := range w.entities {
			if int(v.Key) == i {
				want |= 1 << e
			}
		}
		if l.members() != want {
			return fmt.Sprintf("list %d has the members %b, not %b", i, l.members(), want)
		}
	}
	return ""
}

// worlds returns the worlds to walk through. For each rule there is a world that needs it.
func worlds() []World {
	const a, b, none, out = 0, 1, keys.NoKey, keys.Out
	const x, y, z = 1, 2, 4 // the entities, as members of a row
	at, set, nowhere, all := models.At, keys.Set, [3]int8{none, none, none}, [3]int8{a, a, a}
	enter, leave, move, zEnters := set(a, a), set(none, none), set(b, b), set(out, out, a)
	spread := [2]list{{x | y, z}}
	return []World{
		{Case: at("two enter, both leave again", Unsure), of: nowhere, changes: []keys.Change{enter, leave}, crashes: 1, lates: 1},
		{Case: at("two enter, one leaves again", All, Again, Lease), of: nowhere, changes: []keys.Change{enter, set(out, none)}, crashes: 1, lates: 1},
		{Case: at("two enter beside a third", Fresh, OneByOne), of: nowhere, changes: []keys.Change{enter, zEnters}, crashes: 1},
		{Case: at("two of a list with two rows leave, one enters", ETags), of: [3]int8{a, a, none}, lists: [2]list{{x, y}}, changes: []keys.Change{leave, zEnters}, crashes: 1},
		{Case: at("a member that has two rows", Everywhere), of: all, lists: [2]list{{x | y, x | z}}, changes: []keys.Change{set(none, out, none)}, crashes: 1, lates: 1},
		{Case: at("two move", Enter), of: all, lists: spread, findable: x | y | z, changes: []keys.Change{move}, crashes: 1, lates: 1},
		{Case: models.Thorough("two move beside a third"), of: all, lists: spread, changes: []keys.Change{move, set(out, out, b)}, crashes: 1, lates: 1},
		{Case: models.Thorough("two sets"), of: [3]int8{a, none, none}, lists: [2]list{{x}}, changes: []keys.Change{move, set(out, a, b)}, crashes: 1},
	}
}
