package holder

import (
	"fmt"
	"strings"
)

// Walk is the result of a walk through a world.
type Walk struct {
	States, Ends int
	// Divergence is the shortest path to a final state that violates a requirement, or "" if there is none.
	Divergence string
}

// visit is a reached state and the step by which it was first reached. from is the index of the previous state.
type visit struct {
	world world
	from  int
	how   string
}

// Walk visits every state that can be reached, in the order of the number of steps, and stops at the first violation.
func (c *World) Walk() Walk {
	first := c.first()
	seen, queue := map[world]bool{first: true}, []visit{{world: first, from: -1}}
	found := Walk{}
	for at := 0; at < len(queue); at++ {
		found.States++
		quiet := true
		c.moves(queue[at].world, func(how string, to world) {
			quiet = false
			if !seen[to] {
				seen[to] = true
				queue = append(queue, visit{to, at, how})
			}
		})
		if !quiet {
			continue
		}
		found.Ends++
		if wrong := c.wrong(&queue[at].world); wrong != "" {
			found.Divergence = way(queue, at) + wrong
			return found
		}
	}
	return found
}

// moves calls visit with each state that one step can reach.
func (c *World) moves(w world, visit func(how string, to world)) {
	if w.late.is {
		arrived := w
		arrived.late = write{}
		c.rewrite(&arrived, w.late)
		visit("a late write of the holder arrives", arrived)
	}
	for i, a := range w.actors {
		if a.at == done {
			continue
		}
		visit(fmt.Sprintf("actor %d does step %d", i, a.at), c.next(w, i))
		if w.crashes > 0 && !c.inside {
			visit(fmt.Sprintf("actor %d dies at step %d", i, a.at), c.dies(w, i))
		}
	}
}

// dies returns the world after an actor has crashed. Another process that gets the actor's message continues.
func (c *World) dies(w world, i int) world {
	a := &w.actors[i]
	w.crashes--
	if (a.at == fanWrite || a.at == ownWrite) && !c.keeps(Lease) {
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

// way returns the path to a state, a line for each step.
func way(queue []visit, at int) string {
	var lines []string
	for ; queue[at].from >= 0; at = queue[at].from {
		lines = append(lines, fmt.Sprintf("%s: source %+v, holder %+v\n", queue[at].how, queue[at].world.sources[1:], queue[at].world.holder))
	}
	var b strings.Builder
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString(lines[i])
	}
	return b.String()
}

// Worlds returns the worlds to walk through. For each rule there is a world that needs it.
func Worlds() []World {
	x, y := int8(1), int8(2)
	to := func(content int8) actor { return actor{kind: changeSource, source: 1, content: content} }
	other := actor{kind: changeSource, source: 2, content: 4}
	insert, move := actor{kind: insertHolder, source: 1}, actor{kind: moveHolder, source: 2}
	edit, remove := actor{kind: editHolder}, actor{kind: deleteHolder}
	elsewhere := []World{
		{Name: "inserted while the source changes twice", before: [3]int8{0, x}, crashes: 1, actors: []actor{insert, to(y), to(x)},
			Shows: []Rules{Intent, SourceAgain, RoundAgain, FanOutAgain, Lease}},
		{Name: "inserted while the source is inserted and deleted", crashes: 1, actors: []actor{insert, to(y), to(none)}, Shows: []Rules{Intent, SourceAgain}},
		{Name: "moved and edited while the source changes", before: [3]int8{0, x, 3}, exists: true, crashes: 1, actors: []actor{move, edit, to(y)},
			Shows: []Rules{Condition}},
		{Name: "moved while both sources change", before: [3]int8{0, x, 3}, exists: true, actors: []actor{move, to(y), other}},
		{Name: "deleted and inserted again", before: [3]int8{0, x}, exists: true, crashes: 1, actors: []actor{remove, insert, to(y)}},
		{Name: "inserted while the source begins to name it", naming: true, before: [3]int8{0, silent}, crashes: 1, actors: []actor{insert, to(y)},
			Shows: []Rules{Named}},
		{Name: "edited while the source stops naming it", naming: true, before: [3]int8{0, x}, exists: true, crashes: 1, actors: []actor{edit, to(silent), to(y)}},
		{Name: "found by an index", index: true, before: [3]int8{0, x, 3}, exists: true, crashes: 1, actors: []actor{move, other, edit},
			Shows: []Rules{IndexFirst}},
	}
	inside := []World{
		{Name: "inside, inserted while the source changes", inside: true, naming: true, before: [3]int8{0, x}, actors: []actor{insert, to(y), to(silent)},
			Shows: []Rules{Touch, SourceFirst}},
		{Name: "inside, inserted while the source is inserted and deleted", inside: true, naming: true, actors: []actor{insert, to(y), to(none)},
			Shows: []Rules{Touch, Required}},
		{Name: "inside, deleted, inserted again and edited", inside: true, naming: true, before: [3]int8{0, x}, exists: true, actors: []actor{remove, insert, edit, to(y)},
			Shows: []Rules{Touch}},
	}
	return append(elsewhere, inside...)
}
