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

// seedRandomness makes the actors draw the same ids in every run of a seed.
func seedRandomness(t *testing.T, seed uint64) { cryptotest.SetGlobalRandom(t, seed) }

// retries is the number of retries of an actor's SDK clients.
const retries = 3

// callNamer returns the name of a request's call, as [storagetest.Service.CallNamer] does.
type callNamer = func(req *http.Request) (storagetest.Call, *http.Request, error)

// scheduler holds calls back and lets one go at a time.
type scheduler struct {
	heldCalls[*parkedCall]
	active int // actors that have not ended
}

// parkedCall is a call that the scheduler holds back.
type parkedCall struct {
	actor string
	order int // position of the actor among all actors
	call  storagetest.Call
	turn  chan struct{}
}

// turnstile is the transport of one actor; it passes calls to the scheduler.
type turnstile struct {
	scheduler *scheduler
	inner     policy.Transporter
	locate    callNamer
	actor     string
	order     int
}

// Do implements policy.Transporter: it waits until the scheduler lets the call go, or until the request's context ends.
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

// Behind inserts a transport behind the turnstile, so that the order of the schedule decides which call gets
// which fault, and a call that is never sent is also a step. [storagetest.Service.Faulty] calls it.
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

// choose picks one of the held calls with the random source. It ignores the order of their arrival, which the Go
// scheduler decides.
func (s *scheduler) choose(rng *rand.Rand) (next *parkedCall, active int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) == 0 || s.active == 0 {
		return nil, s.active // release will let the held calls of workers go
	}
	slices.SortStableFunc(s.calls, func(a, b *parkedCall) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.call.Path, b.call.Path), cmp.Compare(a.call.Kind, b.call.Kind))
	})
	// Choose the actor first, then its call: an actor with many concurrent calls must not crowd out the others.
	actors := slices.CompactFunc(slices.Clone(s.calls), func(a, b *parkedCall) bool { return a.order == b.order })
	actor := actors[rng.IntN(len(actors))].order
	of := slices.DeleteFunc(slices.Clone(s.calls), func(p *parkedCall) bool { return p.order != actor })
	next = of[rng.IntN(len(of))]
	s.calls = slices.DeleteFunc(s.calls, func(p *parkedCall) bool { return p == next })
	return next, s.active
}

// bubble runs the schedule inside its bubble.
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
		synctest.Wait() // start the actors one after another, each until its first call, so that they draw random numbers in a fixed order
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
	sched.release(func(p *parkedCall) { close(p.turn) }) // calls are no longer held
	everybody.Wait()
	if err != nil {
		return trace
	}
	if err := stage.Check(t.Context(), s, errs); err != nil {
		t.Errorf("seed %d: the actors returned %v; Check: %v", seed, errs, err)
	}
	return trace
}

// service returns s for one actor.
func (s *scheduler) service(of *storagetest.Service, actor string, order int) *storagetest.Service {
	return of.WithRetries(retries).WithTransport(func(inner policy.Transporter) policy.Transporter {
		return &turnstile{scheduler: s, inner: inner, locate: of.CallNamer(), actor: actor, order: order}
	})
}

const (
	// pauseOdds is the average number of steps between two pauses, if there are Pauses.
	pauseOdds = 8
	// idleLimit is how many times in a row time may pass without a call before the schedule fails.
	idleLimit = 1000
)

// steps lets calls go until all actors have ended.
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
			return trace, fmt.Errorf("the schedule is not done, but no actor has made a call for %v", idleLimit*c.Idle)
		case next == nil:
			pass(s, c.Idle)
			idle++
			continue
		}
		idle = 0
		trace = append(trace, fmt.Sprintf("%s: %s %s", next.actor, next.call.Kind, next.call.Path))
		close(next.turn)
	}
	return trace, fmt.Errorf("the schedule is not done after %d steps; raise ScheduleCase.Steps if it needs more", len(trace))
}

// pass lets time pass for the actors and, if it has its own clock, for the service.
func pass(s *storagetest.Service, d time.Duration) {
	if s.Clock != nil {
		s.Clock.Advance(d)
	}
	time.Sleep(d)
}
