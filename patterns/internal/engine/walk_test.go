package engine_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/marks"
)

// The cards at the beginning.
var (
	noCards  = [][2]string(nil)
	onlyA    = [][2]string{{"a", "1"}}
	bIdle    = [][2]string{{"a", "1"}, {"b", ""}}
	bothIdle = [][2]string{{"a", ""}, {"b", ""}}
	aIdle    = [][2]string{{"a", ""}}
	bothHave = [][2]string{{"a", "1"}, {"b", "2"}}
)

// setOfBoth gives the first card a number, and writes the second one, too.
var setOfBoth = inOneSet([2]string{"a", "1"}, [2]string{"b", ""})

// markedScenes are the worlds to walk through, as the model in internal/models/marks has them.
func markedScenes() map[string]markedScene {
	passes, swaps := inOneSet([2]string{"a", withdrawn}, [2]string{"b", "1"}), inOneSet([2]string{"a", "2"}, [2]string{"b", "1"})
	of := func(cards [][2]string, tasks ...task) markedScene { return markedScene{cards: cards, tasks: tasks} }
	left := func(c markedScene) markedScene { c.left = true; return c }
	bare := func(c markedScene) markedScene { c.bare = true; return c }
	return map[string]markedScene{
		"a move, and a reader":                           of(onlyA, takes("a", "2"), finds("1", false)),
		"a change, and a reader":                         of(onlyA, touches("a"), finds("1", true)),
		"an insert, and a reader":                        of(noCards, issues("a", "1"), finds("1", false)),
		"an insert, and a delete":                        of(noCards, issues("a", "1"), withdraws("a")),
		"two changes of a card":                          of(onlyA, touches("a"), touches("a")),
		"a card gives its number up, and changes":        of(onlyA, takes("a", ""), touches("a")),
		"two cards take a number":                        of(bothIdle, takes("a", "1"), takes("b", "1")),
		"two cards are issued with a number":             of(noCards, issues("a", "1"), issues("b", "1")),
		"a card takes a number twice":                    of(aIdle, takes("a", "1"), takes("a", "1")),
		"a card gives a number up, and another takes it": of(bIdle, takes("a", "2"), takes("b", "1")),
		"the same, and a reader":                         of(bIdle, takes("a", "2"), takes("b", "1"), finds("1", false)),
		"two inserts of a card, and a delete":            of(noCards, issues("a", "1"), issues("a", "1"), withdraws("a")),
		"an insert of a card that is there, its delete, and another takes the number": of(bothIdle, issues("a", "1"), takes("b", "1"), withdraws("a")),
		"a delete, an insert, and another takes the number":                           of(bIdle, withdraws("a"), issues("a", "1"), takes("b", "1")),
		"a number passes, and a reader":                                               of(bIdle, passes, finds("1", true)),
		"the same, the row was left marked":                                           left(of(bIdle, passes, finds("1", true))),
		"a number passes, and the giver changes":                                      of(bIdle, passes, touches("a")),
		"a swap, and a reader":                                                        of(bothHave, swaps, finds("1", true)),
		"a card takes a number, and a set that fails":                                 of(bothIdle, takes("a", "1"), setOfBoth, touches("b")),
		"two swaps": of(bothHave, swaps, inOneSet([2]string{"a", "1"}, [2]string{"b", "2"})),
		"a number passes, the giver is deleted and inserted":  of(bIdle, inOneSet([2]string{"a", ""}, [2]string{"b", "1"}), withdraws("a"), issues("a", "1")),
		"a change of a card whose row is missing, and Repair": bare(of(onlyA, touches("a"), repairs)),
		"a move beside Repair":                                of(onlyA, takes("a", "2"), repairs),
		"an insert beside Repair":                             of(noCards, issues("a", "1"), repairs),
		"a swap beside Repair":                                of(bothHave, swaps, repairs),
	}
}

// walk walks through a scene. crashes is how many of its processes may die.
func (c markedScene) walk(t *testing.T, crashes, pauses int) explore.Walk {
	t.Helper()
	return explore.Interleavings(t, explore.InterleavingCase{Stage: c.stage, Crashes: crashes, Pauses: pauses, Pause: marks.Term + marks.Grace + time.Second, MaxStates: 3_000_000})
}

// TestMarkedWalk walks through every order of requests and deaths of the processes of small worlds. As all of them may die at any request, what holds
// at the end holds after each request.
func TestMarkedWalk(t *testing.T) {
	all := markedScenes()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			c := all[name]
			crashes, pauses := len(c.tasks), 0
			switch {
			case harness.Shortened():
				crashes = 1
			case harness.Thorough():
				pauses = 2
			}
			found := c.walk(t, crashes, pauses)
			t.Logf("%q", reasons(found))
			found.MustConverge(t)
			if misled(found) > 0 || found.Returned[""] == 0 {
				t.Errorf("%q", reasons(found))
			}
		})
	}
}
