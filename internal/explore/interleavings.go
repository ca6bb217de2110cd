package explore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/testrun"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// InterleavingCase is a small world: a simulated service with processes, which are run in every possible
// order of their calls.
type InterleavingCase struct {
	// Name names the walk in the log; empty means the test's name.
	Name string
	// Stage builds the world once and returns its processes. Calls of clients that are made from s are not part of the
	// walk.
	Stage func(t testing.TB, s *storagetest.Service) InterleavingStage
	// Crashes is the largest number of processes that die in one run, each at any call.
	Crashes int
	// Pauses is the largest number of pauses in one run. A pause lets Pause pass for the service and the processes
	// while all calls are held.
	Pauses int
	// Pause is the length of a pause, for example longer than a message's visibility timeout.
	Pause time.Duration
	// Idle is how much time passes at once for a process that only waits for a timer (default 2 s). Time
	// passes for that process alone, because such waits are short delays between two attempts.
	Idle time.Duration
	// MaxStates limits the number of states (default 5 million). A walk that reaches the limit fails, because it has
	// not checked all states.
	MaxStates int
}

// InterleavingStage lists the processes of a world, and what must hold in its final states.
type InterleavingStage struct {
	// Processes run once, until they return or die.
	Processes []Actor
	// Workers handle the available messages and return, as Drain does. A worker that has returned or died starts again,
	// as a new process, whenever a message is visible in one of Queues.
	Workers []Actor
	// Queues are the queues that the workers handle; nil means all. Leave out a queue that no worker empties, such as a
	// poison queue: workers would start again forever.
	Queues []string
	// Check checks a final state: all processes have ended, no message is left, and no worker is running. If all others
	// have ended, hidden messages first become visible. Check runs once for each content of the service, and must
	// depend on nothing else.
	Check func(ctx context.Context, s *storagetest.Service) error
}

// Walk is the result of a walk.
type Walk struct {
	// States is the number of states of the world, Ends the number of final ones, Replays the number of times a process
	// was run to find its next calls.
	States, Ends, Replays int
	// Returned counts histories by the text of the error that a process or worker returned in them, "" for
	// none. A walk in which no process succeeds proves nothing.
	Returned map[string]int
	// Divergence is the first final state whose Check failed; nil if none did.
	Divergence *Divergence
}

// Divergence is a final state whose Check failed.
type Divergence struct {
	// Schedule lists the steps that lead to it.
	Schedule []string
	// Err is what Check returned.
	Err error
}

// String returns the schedule, one step on each line, and the error.
func (d *Divergence) String() string {
	var b strings.Builder
	for i, step := range d.Schedule {
		fmt.Fprintf(&b, "step %d: %s\n", i, step)
	}
	fmt.Fprintf(&b, "then: %v", d.Err)
	return b.String()
}

// MustConverge fails the test unless the walk has a final state and all of them passed Check.
func (w Walk) MustConverge(t testing.TB) {
	t.Helper()
	switch {
	case w.Divergence != nil:
		t.Fatalf("diverged after %d states:\n%v", w.States, w.Divergence)
	case w.Ends == 0:
		t.Fatalf("%d states, and no quiet end: nothing was checked", w.States)
	}
}

// MustDiverge fails the test unless a final state failed Check. Use it with code that is known to be wrong, to show
// that the walk finds the error.
func (w Walk) MustDiverge(t testing.TB) {
	t.Helper()
	if w.Divergence == nil {
		t.Fatalf("%d states, %d quiet ends, and no divergence", w.States, w.Ends)
	}
}

// Interleavings visits every state that the world can reach: at each moment the next storage call of any process may be
// served, any process may die, and time may pass while all calls are held. The walk ends when it has visited every
// state, or at the first divergence. It fails the test only if it cannot continue; the caller checks the result.
//
// The walk runs the real code on the simulator. It is exhaustive because code is deterministic if the answers
// to its calls are fixed. So the walk determines the next calls of a process once for each history of
// answers, and the service's answer once for each state of the service. An actor must depend only on its
// answers, its clock and crypto/rand, which is seeded. It must not depend on math/rand, on the order of maps,
// on racing goroutines, or on memory shared with other actors; it makes its own clients from the Service that
// it gets. When a history is replayed and the code makes other calls, the walk fails.
//
// When a process dies, the calls that were served keep their effects, and the call under way is not sent. A
// call that was served and whose response was lost with the process is covered by a death one step later. A
// pause affects only processes that have started; the others may start before or after it. If several
// messages are visible, each of them is handed out first in one branch.
//
// The service's clock moves only in pauses. ETags, message ids and receipts do not reveal the order of unrelated
// requests, so that such orders lead to the same state.
//
// The walk does not cover lost responses to a process that continues, and failures of the service;
// [storagetest.Sweep] covers both. It also does not cover time that passes, outside of pauses, for one
// process while one of its calls is under way.
//
// As in [Schedules], a process runs in a bubble of testing/synctest, and the rules of that package hold. Tests that use
// Interleavings cannot run in parallel with others.
func Interleavings(t *testing.T, c InterleavingCase) Walk {
	t.Helper()
	defer testrun.CollectSeldom()()
	if c.Name == "" {
		c.Name = t.Name()
	}
	if c.Idle == 0 {
		c.Idle = 2 * time.Second
	}
	if c.MaxStates == 0 {
		c.MaxStates = 5_000_000
	}
	if c.Stage == nil || c.Pauses > 0 && c.Pause <= 0 {
		t.Fatalf("interleavings %s: Stage must be set, and Pause where there are Pauses", c.Name)
	}
	w := newWalker(t, &c)
	defer w.histories.close()
	began := time.Now()
	err := w.walk()
	took := time.Since(began)
	found := w.found()
	t.Logf("interleavings %s: %d states, %d quiet ends, %d replays (%d calls), %d states of the service, in %v",
		c.Name, found.States, found.Ends, found.Replays, w.histories.fed, len(w.world.states), took.Round(time.Millisecond))
	if err != nil {
		t.Fatalf("interleavings %s: %v", c.Name, err)
	}
	return found
}
