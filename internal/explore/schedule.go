package explore

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/testrun"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// ScheduleCase is a set of actors that get in each other's way, in as many orders as there are seeds.
type ScheduleCase struct {
	// Name is what the log calls the schedules; empty is the test's name.
	Name string
	// Seeds is how many schedules to run: those of the seeds 0 to Seeds-1.
	Seeds int
	// Stage makes a fresh world and its actors, once for each seed. Clients of s are outside the schedule.
	Stage func(t testing.TB, s *storagetest.Service) Stage
	// Service is where the worlds are; nil is a fresh [storagetest.Simulator] for each. It must be in memory: a call over a network
	// cannot be told from one that hangs.
	Service func(t testing.TB) *storagetest.Service
	// Pauses are lengths of time of which one may pass while all calls under way are held up, for the service and the
	// actors alike: longer than a message's invisibility, say. Without any, time stands still while an actor can go on.
	Pauses []time.Duration
	// Idle is how much time passes at once when all actors wait for time to pass; zero is 2 s, more than the library's
	// own waiting between two attempts, so that the randomness in that does not change the order of calls.
	Idle time.Duration
	// Steps bounds the calls of one schedule; zero is 10,000. More is a failure: the actors keep each other busy for ever.
	Steps int
}

// Stage is one fresh world with its actors.
type Stage struct {
	// Actors run at the same time, each one on a process of its own. The Service that an actor gets is the one that it must
	// make its clients from; [storagetest.Service.Faulty] on it adds faults, and deaths. Workers that do not end by themselves belong
	// into Workers.
	Actors []Actor
	// Workers run until all Actors have ended; then their context ends, and what they return is not looked at.
	Workers []Actor
	// Check tells whether all that must hold does, once everybody has ended. errs are what the Actors returned.
	Check func(ctx context.Context, s *storagetest.Service, errs []error) error
}

// Actor is one process.
type Actor func(ctx context.Context, s *storagetest.Service) error

// Schedules runs the actors once for each seed. Each of their storage calls is one step: it is held back until the
// scheduler lets it go, and the scheduler lets one go at a time, chosen by the seed, when all actors have come to rest. So
// the same seed makes the same order of calls.
//
// Each seed is a subtest; one that fails says which calls came in which order, and how to run it alone, as in
//
//	go test -run '^TestRivals$/^seed=17$'
//
// A schedule runs in a bubble of testing/synctest: time is not real and costs nothing, and crypto/rand is seeded. The
// rules of that package hold: the stage's t cannot run subtests, and no goroutine may wait for a sync.Mutex that another
// one holds over a storage call. An actor that makes several calls at once makes them in an order that their addresses
// decide, not their bodies. Tests that use Schedules cannot run in parallel with others.
func Schedules(t *testing.T, c ScheduleCase) {
	t.Helper()
	if c.Name == "" {
		c.Name = t.Name()
	}
	c.setDefaults()
	if c.Stage == nil || c.Seeds <= 0 {
		t.Fatalf("schedules %s: Stage and Seeds must be set", c.Name)
	}
	defer testrun.CollectSeldom()()
	failed, steps := 0, 0
	for seed := range c.Seeds {
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c.run(t, uint64(seed), func(trace []string) { steps += len(trace) })
		})
		if !ok {
			failed++
		}
	}
	t.Logf("schedules %s: %d seeds, %d steps, %d failed", c.Name, c.Seeds, steps, failed)
}

func (c *ScheduleCase) setDefaults() {
	if c.Service == nil {
		c.Service = func(t testing.TB) *storagetest.Service { return storagetest.Simulator(t, nil) }
	}
	if c.Idle == 0 {
		c.Idle = 2 * time.Second
	}
	if c.Steps == 0 {
		c.Steps = 10_000
	}
}

// run is the schedule of one seed. report gets the steps in their order, also of a schedule that fails, after which run does
// not return.
func (c *ScheduleCase) run(t *testing.T, seed uint64, report func(trace []string)) {
	seedRandomness(t, seed)
	// A real timer, outside: in a bubble that cannot come to rest, no time passes.
	stuck := time.AfterFunc(stuckTime, func() {
		panic(fmt.Sprintf("%s does not come to rest: a goroutine waits for a sync.Mutex that another holds over a storage call, or for something outside of the test", t.Name()))
	})
	defer stuck.Stop()
	var trace []string
	defer func() {
		report(trace)
		if t.Failed() {
			t.Logf("schedules %s, seed %d; alone: %s", c.Name, seed, testrun.Alone(t))
			for i, step := range trace {
				t.Logf("step %d: %s", i, step)
			}
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		trace = c.bubble(t, seed)
	})
}

// stuckTime is how long one schedule may take in real time; it takes some milliseconds.
const stuckTime = 2 * time.Minute
