package explore

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// seedRandomness makes ids that the actors draw the same in every run of one seed.
func seedRandomness(t *testing.T, seed uint64) { cryptotest.SetGlobalRandom(t, seed) }

// retries is how often the SDK repeats a request of an actor.
const retries = 3

// callNamer names the call that a request makes, as [storagetest.Service.CallNamer] does.
type callNamer = func(req *http.Request) (storagetest.Call, *http.Request, error)

// scheduler holds calls back and lets them go, one at a time.
type scheduler struct {
	heldCalls[*parkedCall]
	active int // actors that have not ended
}

// parkedCall is a call that waits for its turn.
type parkedCall struct {
	actor string
	order int // of the actor
	call  storagetest.Call
	turn  chan struct{}
}

// turnstile is the transport of one actor.
type turnstile struct {
	scheduler *scheduler
	inner     policy.Transporter
	locate    callNamer
	actor     string
	order     int
}

// Do is policy.Transporter: it waits for its turn, or for the end of its context.
func (g *turnstile) Do(req *http.Request) (*http.Response, error) {
	call, req, err := g.locate(req)
	if err != nil {
		return nil, err
	}
	p := &parkedCall{actor: g.actor, order: g.order, call: call, turn: make(chan struct{})}
	if g.scheduler.hold(p) {
		select {
		case <-p.turn:
		case <-req.Context().Done():
			g.scheduler.leave(p)
			return refuse(req)
		}
	}
	if req.Context().Err() != nil {
		return refuse(req)
	}
	return g.inner.Do(req)
}

// Behind puts another transport behind the turnstile, not in front: which call meets which fault is decided in the order of the
// turns, and a call that is never sent has its turn, too. [storagetest.Service.Faulty] calls it.
func (g *turnstile) Behind(wrap func(inner policy.Transporter) policy.Transporter) policy.Transporter {
	behind := *g
	behind.inner = wrap(g.inner)
	return &behind
}

func (s *scheduler) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}

// choose takes one of the calls that wait, by the random source, and nothing else: the order in which they came is that of
// the goroutines, which nobody decides.
func (s *scheduler) choose(rng *rand.Rand) (next *parkedCall, active int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) == 0 || s.active == 0 {
		return nil, s.active // a worker's call that waits in the end is for release
	}
	slices.SortStableFunc(s.calls, func(a, b *parkedCall) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.call.Path, b.call.Path), cmp.Compare(a.call.Kind, b.call.Kind))
	})
	// First the actor, then the call: one that makes many calls at once is not to have all the turns.
	actors := slices.CompactFunc(slices.Clone(s.calls), func(a, b *parkedCall) bool { return a.order == b.order })
	actor := actors[rng.IntN(len(actors))].order
	of := slices.DeleteFunc(slices.Clone(s.calls), func(p *parkedCall) bool { return p.order != actor })
	next = of[rng.IntN(len(of))]
	s.calls = slices.DeleteFunc(s.calls, func(p *parkedCall) bool { return p == next })
	return next, s.active
}

// bubble is the schedule, inside its bubble.
func (c *ScheduleCase) bubble(t *testing.T, seed uint64) (trace []string) {
	s := c.Service(t)
	stage := c.Stage(t, s)
	if len(stage.Actors) == 0 || stage.Check == nil {
		t.Fatalf("schedules %s: a stage needs Actors and Check", c.Name)
	}
	sched := &scheduler{active: len(stage.Actors)}
	errs := make([]error, len(stage.Actors))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var everybody sync.WaitGroup
	for i, actor := range stage.Actors {
		everybody.Go(func() {
			defer sched.ended()
			errs[i] = actor(ctx, sched.service(s, fmt.Sprintf("actor %d", i), i))
		})
		synctest.Wait() // up to its first call, so that they draw random numbers in a fixed order
	}
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	for i, worker := range stage.Workers {
		everybody.Go(func() {
			_ = worker(working, sched.service(s, fmt.Sprintf("worker %d", i), len(stage.Actors)+i))
		})
		synctest.Wait()
	}
	trace, err := c.steps(sched, s, seed)
	stopWorking()
	if err != nil {
		cancel()
		t.Error(err)
	}
	sched.release(func(p *parkedCall) { close(p.turn) }) // all go on without being held
	everybody.Wait()
	if err != nil {
		return trace
	}
	if err := stage.Check(t.Context(), s, errs); err != nil {
		t.Errorf("seed %d: the actors returned %v; Check: %v", seed, errs, err)
	}
	return trace
}

// service is s as one actor gets it.
func (s *scheduler) service(of *storagetest.Service, actor string, order int) *storagetest.Service {
	return of.WithRetries(retries).WithTransport(func(inner policy.Transporter) policy.Transporter {
		return &turnstile{scheduler: s, inner: inner, locate: of.CallNamer(), actor: actor, order: order}
	})
}

const (
	// pauseOdds is one in how many steps a pause comes before, where there are pauses.
	pauseOdds = 8
	// idleLimit is how often in a row nobody may make a call, before the schedule is given up.
	idleLimit = 1000
)

// steps lets the calls go until all actors have ended.
func (c *ScheduleCase) steps(sched *scheduler, s *storagetest.Service, seed uint64) (trace []string, err error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for idle := 0; len(trace) < c.Steps; {
		synctest.Wait()
		if len(c.Pauses) > 0 && rng.IntN(pauseOdds) == 0 {
			pause := c.Pauses[rng.IntN(len(c.Pauses))]
			pass(s, pause)
			trace = append(trace, fmt.Sprintf("%v pass", pause))
			synctest.Wait()
		}
		next, active := sched.choose(rng)
		switch {
		case active == 0:
			return trace, nil
		case next == nil && idle == idleLimit:
			return trace, fmt.Errorf("not done, and nobody has made a call for %v", idleLimit*c.Idle)
		case next == nil:
			pass(s, c.Idle)
			idle++
			continue
		}
		idle = 0
		trace = append(trace, fmt.Sprintf("%s: %s %s", next.actor, next.call.Kind, next.call.Path))
		close(next.turn)
	}
	return trace, fmt.Errorf("not done after %d steps", len(trace))
}

// pass lets time pass for the actors and, where it has a clock of its own, for the service.
func pass(s *storagetest.Service, d time.Duration) {
	if s.Clock != nil {
		s.Clock.Advance(d)
	}
	time.Sleep(d)
}
