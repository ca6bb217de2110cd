package explore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// walker walks depth first and remembers the states that it has visited.
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

// maxWalkers limits the number of processes and workers of a walk. A walk with more of them would have too
// many states anyway.
const maxWalkers = 6

// walkState is a state of the service and all actors. It is exact: equal states have equal successors.
type walkState struct {
	service         int32
	at              [maxWalkers]int32 // by actor: its moment, or gone
	crashes, pauses uint8
}

// maxLately limits the number of steps in an error: a walk that does not end has a very long schedule.
const maxLately = 60

// gone is the moment of a process that has ended or died. For a worker it means that a next run can start.
const gone = -1

// visit is a state on the current path, with the steps that lead out of it.
type visit struct {
	state walkState
	came  way // the step that led to it
	ways  []way
	next  int
}

// way is one step from a state to another.
type way struct {
	to    walkState
	kind  wayKind
	actor int  // the actor; unused for pauses
	step  step // index of a call
}

type wayKind uint8

const (
	wayCall wayKind = iota
	wayDeath
	wayPause
	wayRedeliver // hidden messages become visible, since nothing else can happen
)

// newWalker builds the stage.
func newWalker(t *testing.T, c *InterleavingCase) *walker {
	t.Helper()
	seedRandomness(t, 0)
	s := storagetest.Simulator(t, nil)
	sim := s.ClientOptions.Transport.(*simulator.Simulator)
	sim.Clock().Stand()
	w := &walker{c: c, stage: c.Stage(t, s), seen: map[walkState]struct{}{}}
	actors := append(append([]Actor(nil), w.stage.Processes...), w.stage.Workers...)
	if len(actors) == 0 || len(actors) > maxWalkers || w.stage.Check == nil {
		t.Fatalf("interleavings %s: a stage needs Check, and 1 to %d Processes and Workers", c.Name, maxWalkers)
	}
	w.histories = histories{t: t, of: s, actors: actors, processes: len(w.stage.Processes), idle: c.Idle, pause: c.Pause, next: map[step]int32{}, begins: map[life]int32{}}
	w.world = newWalkWorld(s, sim, w.stage.Queues)
	return w
}

// worker reports whether an actor starts again after it has ended.
func (w *walker) worker(actor int) bool { return actor >= len(w.stage.Processes) }

// walk visits all states, or stops at the first divergence.
func (w *walker) walk() error {
	// Use a real timer, since no time passes in a bubble that does not come to rest.
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

// enter visits a state, unless it was visited before.
func (w *walker) enter(from way) error {
	if _, seen := w.seen[from.to]; seen {
		return nil
	}
	if len(w.seen) == w.c.MaxStates {
		return fmt.Errorf("the walk has more than %d states; the steps to the last one:\n%s", w.c.MaxStates, w.lately())
	}
	w.seen[from.to] = struct{}{}
	n := len(w.stack)
	if n < cap(w.stack) {
		w.stack = w.stack[:n+1] // reuses the ways slice of an earlier visit
	} else {
		w.stack = append(w.stack, visit{})
	}
	v := &w.stack[n]
	v.state, v.came, v.next = from.to, from, 0
	var err error
	if v.ways, err = w.ways(v.ways[:0], &from.to, from.actor); err != nil {
		return fmt.Errorf("%w\nthe steps to this state:\n%s", err, w.lately())
	}
	if len(v.ways) == 0 {
		w.end(&from.to)
	}
	return nil
}

// end checks a final state.
func (w *walker) end(s *walkState) {
	w.ends++
	if err := w.world.check(w.histories.t.Context(), s.service, w.stage.Check); err != nil {
		w.diverged = &Divergence{Schedule: w.schedule(), Err: err}
	}
}

// schedule returns the steps to the current state.
func (w *walker) schedule() []string {
	var steps []string
	for _, v := range w.stack[1:] {
		steps = append(steps, w.describe(v.came))
	}
	return steps
}

// lately returns the last steps of the schedule, for the error of a walk that cannot continue.
func (w *walker) lately() string {
	steps := w.schedule()
	return strings.Join(steps[max(0, len(steps)-maxLately):], "\n")
}

func (w *walker) describe(from way) string {
	switch from.kind {
	case wayPause:
		return fmt.Sprintf("%v pass", w.c.Pause)
	case wayRedeliver:
		return "time passes until all messages are visible"
	case wayDeath:
		m := &w.histories.moments[from.step.from]
		return fmt.Sprintf("%s dies before %v", w.histories.name(m.life), w.histories.requests.all[m.calls[0]])
	}
	return w.histories.describe(from.step)
}

// found returns the result so far.
func (w *walker) found() Walk {
	found := Walk{States: len(w.seen), Ends: w.ends, Replays: w.histories.replays, Returned: map[string]int{}, Divergence: w.diverged}
	for i := range w.histories.moments {
		if m := &w.histories.moments[i]; m.ended {
			found.Returned[m.returned]++
		}
	}
	return found
}
