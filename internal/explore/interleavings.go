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

// InterleavingCase is a small world whose processes are to be run in every order that there is.
type InterleavingCase struct {
	// Name is what the log calls the walk; empty is the test's name.
	Name string
	// Stage builds the world, once, and says who is in it. Clients of s are outside the walk.
	Stage func(t testing.TB, s *storagetest.Service) InterleavingStage
	// Crashes is how many processes may die in one run, each one anywhere.
	Crashes int
	// Pauses is how often, in one run, Pause may pass while all calls under way are held up, for the service and the
	// processes alike.
	Pauses int
	// Pause is how long a pause is; longer than a message's invisibility, say.
	Pause time.Duration
	// Idle is how much time passes at once for a process that waits for time to pass, and makes no call; for this process
	// alone, since such waits come between two attempts, and are short. Zero is 2 s.
	Idle time.Duration
	// MaxStates bounds the walk; zero is 5 million. A larger one fails: what it has not seen, it cannot vouch for.
	MaxStates int
}

// InterleavingStage is who is in the world, and what must hold in the end.
type InterleavingStage struct {
	// Processes run once, to their end or to their death.
	Processes []Actor
	// Workers do what there is to do and end, as a drain of a queue does. A worker that has ended, or died, starts again, as
	// a new process, whenever a message is visible in one of Queues.
	Workers []Actor
	// Queues are the queues that the workers work for; nil is all. A queue of which nobody takes the messages away, such as
	// one of poison messages, must not be among them: its workers would begin for ever.
	Queues []string
	// Check tells whether all that must hold does, in a quiet end: all processes have ended, no message is left, and no
	// worker is at work. Messages that are hidden when everybody else is done become visible first. It is asked once for
	// each content of the service, and must depend on nothing else.
	Check func(ctx context.Context, s *storagetest.Service) error
}

// Walk is what a walk has seen.
type Walk struct {
	// States is how many states of the world there were, Ends in how many of them it was quiet, Replays how often a
	// process was run to find out what it does next.
	States, Ends, Replays int
	// Returned are the texts of the errors that processes and workers returned, and from how many of their histories; "" is
	// no error. A walk in which nobody succeeds proves nothing.
	Returned map[string]int
	// Divergence is the first quiet end whose Check failed; nil if all of them hold.
	Divergence *Divergence
}

// Divergence is a quiet end in which not all holds that must.
type Divergence struct {
	// Schedule is a way to it, step by step.
	Schedule []string
	// Err is what Check returned.
	Err error
}

// String is the schedule, a line for each step, and the error.
func (d *Divergence) String() string {
	var b strings.Builder
	for i, step := range d.Schedule {
		fmt.Fprintf(&b, "step %d: %s\n", i, step)
	}
	fmt.Fprintf(&b, "then: %v", d.Err)
	return b.String()
}

// MustAgree fails the test unless all quiet ends, one at least, passed their Check.
func (w Walk) MustAgree(t testing.TB) {
	t.Helper()
	switch {
	case w.Divergence != nil:
		t.Fatalf("diverged after %d states:\n%v", w.States, w.Divergence)
	case w.Ends == 0:
		t.Fatalf("%d states, and no quiet end: nothing was checked", w.States)
	}
}

// MustDiverge fails the test unless a quiet end failed its Check: for a walk of code that is known to be wrong, which tells
// that the walk can find it.
func (w Walk) MustDiverge(t testing.TB) {
	t.Helper()
	if w.Divergence == nil {
		t.Fatalf("%d states, %d quiet ends, and no divergence", w.States, w.Ends)
	}
}

// Interleavings walks through every state that the world can come to: at each moment any process may have its next storage
// call served, die, or be held up while time passes. The walk is over when there is no state left that it has not seen, or
// at the first divergence. It fails the test only where it cannot go on; what it found, the caller judges.
//
// This is the real code on the simulator, and exhaustive all the same, because code is deterministic once it has its
// answers: what a process asks next is found once for each history of answers, and what the service answers once for each
// of its states. So an actor must depend on nothing but its answers, its clock and crypto/rand, which is seeded: not on
// math/rand, on maps' order, on goroutines that race, or on what actors share; it makes its clients itself, from the
// Service that it gets. Code that asks for something else in the same history is caught when that is run again.
//
// What one death means: the calls that were served stay, the one under way is not sent. A call that was served and whose
// answer is lost with the process is the death one step later. A pause befalls whoever has begun; one that is still to
// begin may do so before it or after it. Where several messages are visible, each is once the first to be handed out.
//
// The service's clock stands still but for pauses. ETags, message ids and receipts do not tell in which order unrelated
// requests came, so that such orders lead to one state.
//
// Not walked: answers that are lost to a process that lives on, and failures of the service ([storagetest.Sweep] has those); and time that
// passes for one process while a call of its own is under way, but in pauses.
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
