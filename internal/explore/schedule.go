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

// ScheduleCase is a set of concurrent actors, whose calls run in a different order for each seed.
type ScheduleCase struct {
	// Name names the schedules in the log; empty means the test's name.
	Name string
	// Seeds is the number of schedules to run: seeds 0 to Seeds-1.
	Seeds int
	// Stage makes a fresh world and its actors, once for each seed. Calls of clients that are made from s are not part
	// of the schedule.
	Stage func(t testing.TB, s *storagetest.Service) Stage
	// Service holds the worlds; nil means a fresh [storagetest.Simulator] for each. It must be in memory: a call over a
	// network looks like one that hangs.
	Service func(t testing.TB) *storagetest.Service
	// Pauses are the possible lengths of pauses. A pause lets time pass for the service and the actors while all calls
	// are held, for example longer than a message's visibility timeout. Without Pauses, time passes only when no actor
	// can make a call.
	Pauses []time.Duration
	// Idle is how much time passes at once when all actors wait for timers (default 2 s). The default is longer than
	// the library's delay between two attempts, so that its jitter does not change the order of calls.
	Idle time.Duration
	// Steps limits the calls of one schedule (default 10,000). A longer schedule fails, because the actors probably
	// keep each other busy forever.
	Steps int
}

// Stage is one fresh world with its actors.
type Stage struct {
	// Actors run concurrently, each as a process of its own. An actor must make its clients from the Service that it
	// gets; call [storagetest.Service.Faulty] on it to add faults and deaths. Put workers that do not return by
	// themselves into Workers.
	Actors []Actor
	// Workers run until all Actors have returned; then their context ends, and their results are ignored.
	Workers []Actor
	// Check checks the service after all Actors and Workers have ended. errs are the results of the Actors.
	Check func(ctx context.Context, s *storagetest.Service, errs []error) error
}

// Actor is one process.
type Actor func(ctx context.Context, s *storagetest.Service) error

// Schedules runs the actors once for each seed. Each storage call is one step: the scheduler holds it back until all
// actors are at rest, and then lets one call go, chosen by the seed. So the same seed always gives the same order of
// calls.
//
// Each seed is a subtest. If it fails, it logs the order of calls and how to run it alone, as in
//
//	go test -run '^TestConcurrentWriters$/^seed=17$'
//
// A schedule runs in a bubble of testing/synctest: time is simulated and costs nothing, and crypto/rand is
// seeded. The rules of that package hold: the stage's t cannot run subtests, and no goroutine may wait for a
// sync.Mutex that another goroutine holds during a storage call. If an actor makes several calls at once,
// the scheduler orders them by path and kind, not by body. Tests that use Schedules cannot run in
// parallel with others.
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

// run runs the schedule of one seed. It passes each step to report in order, also if the schedule fails and run does
// not return.
func (c *ScheduleCase) run(t *testing.T, seed uint64, report func(trace []string)) {
	seedRandomness(t, seed)
	// Use a real timer outside of the bubble, since no time passes in a bubble that does not come to rest.
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

// stuckTime is the limit of real time for one schedule, which normally takes a few milliseconds.
const stuckTime = 2 * time.Minute
