package explore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// walker walks depth first, and keeps the states that it has seen.
type walker struct {
	c         *InterleavingCase
	stage     InterleavingStage
	histories histories
	world     *walkWorld
	seen      map[walkState]struct{}
	stack     []visit
	ends      int
	diverged  *Divergence
}

// maxWalkers bounds the processes and workers of a walk. All states of all of them are walked through: the number is out of
// reach long before this one is.
const maxWalkers = 6

// walkState is a state of everything. It is exact: two states that are equal go on alike.
type walkState struct {
	service         int32
	at              [maxWalkers]int32 // the moment of each actor, or gone
	crashes, pauses uint8
}

// maxLately bounds the steps that an error shows: a walk without end has a way without end.
const maxLately = 60

// gone is the moment of a process that has ended or died. A worker's is the beginning of its next life.
const gone = -1

// visit is a state that the walk is in, with the ways from it.
type visit struct {
	state walkState
	came  way // to it
	ways  []way
	next  int
}

// way is one step from a state to another.
type way struct {
	to    walkState
	kind  wayKind
	actor int  // who makes it, but for waits
	step  step // of a call
}

type wayKind uint8

const (
	wayCall wayKind = iota
	wayDeath
	wayPause
	waySettle // messages that are hidden become visible, since nobody has anything else to do
)

// newWalker sets the stage.
func newWalker(t *testing.T, c *InterleavingCase) *walker {
	t.Helper()
	seedRandomness(t, 0)
	sim, err := simulator.New(simulator.Options{Orderless: true})
	if err != nil {
		t.Fatal(err)
	}
	s := storagetest.OverSimulator(sim)
	w := &walker{c: c, stage: c.Stage(t, s), seen: map[walkState]struct{}{}}
	actors := append(append([]Actor(nil), w.stage.Processes...), w.stage.Workers...)
	if len(actors) == 0 || len(actors) > maxWalkers || w.stage.Check == nil {
		t.Fatalf("interleavings %s: a stage needs Check, and 1 to %d Processes and Workers", c.Name, maxWalkers)
	}
	w.histories = histories{t: t, of: s, actors: actors, processes: len(w.stage.Processes), idle: c.Idle, pause: c.Pause, next: map[step]int32{}, begins: map[life]int32{}}
	w.world = newWalkWorld(s, sim, w.stage.Queues)
	return w
}

// worker tells whether an actor begins again when it has ended.
func (w *walker) worker(actor int) bool { return actor >= len(w.stage.Processes) }

// walk goes everywhere, or up to the first divergence.
func (w *walker) walk() error {
	// A real timer: in a bubble that cannot come to rest, no time passes.
	stuck := time.AfterFunc(stuckTime, func() { panic(w.c.Name + " does not come to rest: see the rules of Schedules") })
	defer stuck.Stop()
	start := walkState{service: w.world.current()}
	for actor := range start.at {
		start.at[actor] = gone
		if actor < len(w.histories.actors) {
			id, err := w.histories.begin(life{actor: int32(actor)})
			if err != nil {
				return err
			}
			if start.at[actor], err = w.arrive(id); err != nil {
				return err
			}
		}
	}
	if err := w.enter(way{to: start, actor: -1}); err != nil {
		return err
	}
	for len(w.stack) > 0 && w.diverged == nil {
		stuck.Reset(stuckTime)
		top := &w.stack[len(w.stack)-1]
		if top.next == len(top.ways) {
			w.stack = w.stack[:len(w.stack)-1]
			continue
		}
		next := top.ways[top.next]
		top.next++
		if err := w.enter(next); err != nil {
			return err
		}
	}
	stuck.Reset(stuckTime)
	return w.histories.verify()
}

// enter goes into a state, unless it has been seen.
func (w *walker) enter(from way) error {
	if _, seen := w.seen[from.to]; seen {
		return nil
	}
	if len(w.seen) == w.c.MaxStates {
		return fmt.Errorf("more than %d states; the way to the last of them:\n%s", w.c.MaxStates, w.lately())
	}
	w.seen[from.to] = struct{}{}
	n := len(w.stack)
	if n < cap(w.stack) {
		w.stack = w.stack[:n+1] // with the ways' memory of an earlier visit
	} else {
		w.stack = append(w.stack, visit{})
	}
	v := &w.stack[n]
	v.state, v.came, v.next = from.to, from, 0
	var err error
	if v.ways, err = w.ways(v.ways[:0], &from.to, from.actor); err != nil {
		return fmt.Errorf("%w\nthe way there:\n%s", err, w.lately())
	}
	if len(v.ways) == 0 {
		w.end(&from.to)
	}
	return nil
}

// end is a quiet end.
func (w *walker) end(s *walkState) {
	w.ends++
	if err := w.world.check(w.histories.t.Context(), s.service, w.stage.Check); err != nil {
		w.diverged = &Divergence{Schedule: w.schedule(), Err: err}
	}
}

// schedule is the way to the state that the walk is in.
func (w *walker) schedule() []string {
	var steps []string
	for _, v := range w.stack[1:] {
		steps = append(steps, w.describe(v.came))
	}
	return steps
}

// lately is the end of the schedule, for a walk that cannot go on.
func (w *walker) lately() string {
	steps := w.schedule()
	return strings.Join(steps[max(0, len(steps)-maxLately):], "\n")
}

func (w *walker) describe(from way) string {
	switch from.kind {
	case wayPause:
		return fmt.Sprintf("%v pass", w.c.Pause)
	case waySettle:
		return "time passes until all messages are visible"
	case wayDeath:
		m := &w.histories.moments[from.step.from]
		return fmt.Sprintf("%s dies before %v", w.histories.name(m.life), w.histories.requests.all[m.calls[0]])
	}
	return w.histories.describe(from.step)
}

// found is what the walk has seen so far.
func (w *walker) found() Walk {
	found := Walk{States: len(w.seen), Ends: w.ends, Replays: w.histories.replays, Returned: map[string]int{}, Divergence: w.diverged}
	for i := range w.histories.moments {
		if m := &w.histories.moments[i]; m.ended {
			found.Returned[m.returned]++
		}
	}
	return found
}
