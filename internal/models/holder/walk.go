package holder

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models"
)

// names are the rules' names, from the lowest bit.
var names = []string{"Intent", "Named", "SourceAgain", "IndexFirst", "RoundAgain", "Condition", "FanOutAgain", "Lease", "Touch", "Required", "SourceFirst"}

// maxStates limits a walk; the largest world has some 230,000 states.
const maxStates = 1_000_000

// Walk visits every state that can be reached without some of the rules.
func (c World) Walk(drop models.Rules) models.Result {
	c.Drop = drop
	return models.Model[world]{Start: c.first(), Next: c.moves, Wrong: c.violated, Quiet: quiet, Show: show, MaxStates: maxStates}.Walk()
}

// quiet reports whether a state is final: all actors are done, and no write is under way.
func quiet(w world) bool {
	for _, a := range w.actors {
		if a.at != done {
			return false
		}
	}
	return !w.late.is
}

func show(w world) string { return fmt.Sprintf("source %+v, holder %+v", w.sources[1:], w.holder) }

// violated returns which requirement a final state violates, or "".
func (c *World) violated(w world) string {
	if !quiet(w) {
		return ""
	}
	return c.wrong(&w)
}

var (
	actorNames = [...]string{"actor 0", "actor 1", "actor 2", "actor 3"}
	stepNames  = [...]string{"begins", "reads the other end", "puts its message", "commits", "reads the source", "finds the holder", "reads the holder",
		"writes the copy", "reads the source again", "reads its holder", "writes the index row", "reads its source again", "reads its holder to write it",
		"asks the source", "writes its copy", "reads its holder again", "deletes its message"}
	deathNames = [...]string{"dies before it begins", "dies before it reads the other end", "dies before it puts its message", "dies before it commits",
		"dies before it reads the source", "dies before it finds the holder", "dies before it reads the holder", "dies before it writes the copy",
		"dies before it reads the source again", "dies before it reads its holder", "dies before it writes the index row",
		"dies before it reads its source again", "dies before it reads its holder to write it", "dies before it asks the source",
		"dies before it writes its copy", "dies before it reads its holder again", "dies before it deletes its message"}
)

// moves emits each state that one step can reach.
func (c *World) moves(w world, emit func(to world, who, what string)) {
	if w.late.is {
		arrived := w
		arrived.late = write{}
		c.rewrite(&arrived, w.late)
		emit(arrived, "a late write of the holder", "arrives")
	}
	for i, a := range w.actors {
		if a.at == done {
			continue
		}
		emit(c.next(w, i), actorNames[i], stepNames[a.at])
		if w.crashes > 0 && !c.inside {
			emit(c.dies(w, i), actorNames[i], deathNames[a.at])
		}
	}
}

// dies returns the world after an actor has crashed. Another process that gets the actor's message continues.
func (c *World) dies(w world, i int) world {
	a := &w.actors[i]
	w.crashes--
	if (a.at == fanWrite || a.at == ownWrite) && !c.Keeps(Lease) {
		w.late = c.writing(a)
	}
	switch {
	case !a.put:
		a.at = done
	case a.kind == changeSource:
		a.at = fanRead
	default:
		a.at = ownRead
	}
	a.seen, a.holder = source{}, row{}
	return w
}

// worlds returns the worlds to walk through. For each rule there is a world that needs it.
func worlds() []World {
	at := models.At
	x, y := int8(1), int8(2)
	to := func(content int8) actor { return actor{kind: changeSource, source: 1, content: content} }
	other := actor{kind: changeSource, source: 2, content: 4}
	insert, move := actor{kind: insertHolder, source: 1}, actor{kind: moveHolder, source: 2}
	edit, remove := actor{kind: editHolder}, actor{kind: deleteHolder}
	elsewhere := []World{
		{Case: at("inserted while the source changes twice", Intent, SourceAgain, RoundAgain, FanOutAgain, Lease), before: [3]int8{0, x}, crashes: 1, actors: []actor{insert, to(y), to(x)}},
		{Case: at("inserted while the source is inserted and deleted", Intent, SourceAgain), crashes: 1, actors: []actor{insert, to(y), to(none)}},
		{Case: at("moved and edited while the source changes", Condition), before: [3]int8{0, x, 3}, exists: true, crashes: 1, actors: []actor{move, edit, to(y)}},
		{Case: at("moved while both sources change"), before: [3]int8{0, x, 3}, exists: true, actors: []actor{move, to(y), other}},
		{Case: at("deleted and inserted again"), before: [3]int8{0, x}, exists: true, crashes: 1, actors: []actor{remove, insert, to(y)}},
		{Case: at("inserted while the source begins to name it", Named), naming: true, before: [3]int8{0, silent}, crashes: 1, actors: []actor{insert, to(y)}},
		{Case: at("edited while the source stops naming it"), naming: true, before: [3]int8{0, x}, exists: true, crashes: 1, actors: []actor{edit, to(silent), to(y)}},
		{Case: at("found by an index", IndexFirst), index: true, before: [3]int8{0, x, 3}, exists: true, crashes: 1, actors: []actor{move, other, edit}},
	}
	inside := []World{
		{Case: at("inside, inserted while the source changes", Touch, SourceFirst), inside: true, naming: true, before: [3]int8{0, x}, actors: []actor{insert, to(y), to(silent)}},
		{Case: at("inside, inserted while the source is inserted and deleted", Touch, Required), inside: true, naming: true, actors: []actor{insert, to(y), to(none)}},
		{Case: at("inside, deleted, inserted again and edited", Touch), inside: true, naming: true, before: [3]int8{0, x}, exists: true, actors: []actor{remove, insert, edit, to(y)}},
	}
	return append(elsewhere, inside...)
}
