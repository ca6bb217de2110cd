package storagetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/testrun"
)

const (
	// sweepTimeout is the default of SweepCase.Timeout; a hook in a test takes far less.
	sweepTimeout = 30 * time.Second
	// sweepAttempts is how often CallerRetries calls the operation.
	sweepAttempts = 5
	// sweepRetries is how often the SDK retries a request in those points in which it does.
	sweepRetries = 3
)

// sweep implements Sweep for any subtester. It returns the numbers that it logs.
func sweep(t subtester, c SweepCase) (points, divergences int) {
	t.Helper()
	if c.Name == "" {
		c.Name = t.Name()
	}
	c.setDefaults()
	defer testrun.CollectSeldom()()
	calls, bodies := c.baseline(t)
	all := c.points(calls, bodies)
	run := 0
	for i, p := range all {
		if i%c.Every != 0 {
			continue
		}
		run++
		if !t.run(p.String(), func(t testing.TB) { c.runPoint(t, p, strike(calls, p)) }) {
			divergences++
		}
	}
	only := ""
	if run < len(all) {
		only = fmt.Sprintf("%d of them run, ", run)
	}
	t.Logf("sweep %s: %d points, %s%d divergences (%d calls)", c.Name, len(all), only, divergences, len(calls))
	if len(all) < c.Floor {
		t.Errorf("sweep %s: %d points, where there were %d: the operation makes fewer calls than it did, or faults are missing; "+
			"if that is as it should be, set the floor to %d", c.Name, len(all), c.Floor, len(all))
	}
	return len(all), divergences
}

func (c *SweepCase) setDefaults() {
	if c.Service == nil {
		c.Service = func(t testing.TB) *Service { return Simulator(t, nil) }
	}
	if c.Faults == nil {
		c.Faults = SweepFaults()
	}
	if c.Callers == nil {
		c.Callers = []Caller{CallerGivesUp, CallerRetries, ProcessDies, ProcessRestarts}
	}
	if c.Every <= 0 {
		c.Every = 1
	}
	if c.Timeout == 0 {
		c.Timeout = sweepTimeout
	}
}

// baseline runs the operation without faults and returns its calls, and for each whether its response has a
// body. It does not run in a subtest, so that -run can choose any single point.
func (c *SweepCase) baseline(t testing.TB) (calls []Call, bodies []bool) {
	t.Helper()
	s := c.Service(t)
	w := c.world(t, s)
	notes := &answerNotes{bodies: map[int]bool{}}
	faulty, faults := s.WithRetries(0).Faulty(InjectorFunc(func(Call) Fault { return notes }))
	err := c.hook(t, func(ctx context.Context) error { return w.Operate(ctx, faulty) })
	calls = faults.Calls()
	if err != nil {
		t.Fatalf("sweep %s: the operation fails without any fault: %v", c.Name, err)
	}
	if len(calls) == 0 {
		t.Fatalf("sweep %s: the operation made no storage call: did it make its client with the ClientOptions of its Service?", c.Name)
	}
	c.recoverAndCheck(t, s, w, Ending{Attempts: 1})
	if t.Failed() {
		t.Fatalf("sweep %s: what must hold does not even hold without any fault", c.Name)
	}
	for i := range calls {
		bodies = append(bodies, notes.bodies[i])
	}
	return calls, bodies
}

func (c *SweepCase) world(t testing.TB, s *Service) World {
	t.Helper()
	w := c.World(t, s)
	if w.Operate == nil || w.Check == nil {
		t.Fatalf("sweep %s: a world needs Operate and Check", c.Name)
	}
	return w
}

// answerNotes is a fault that only records which responses have a body.
type answerNotes struct {
	mu     sync.Mutex
	bodies map[int]bool
}

func (*answerNotes) String() string { return "None" }

func (n *answerNotes) Meet(call Call, req *http.Request, send Send) (*http.Response, error) {
	resp, err := send()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bodies[call.Index] = err == nil && !bodyless(resp, req)
	return resp, err
}

// points lists the runs of the sweep. It omits faults that cannot affect a call: a silent cut of a response
// without a body, and [Inside] for a call that is no transaction. If the process dies, no response matters,
// so there are only two faults: it dies before or after the call.
func (c *SweepCase) points(calls []Call, bodies []bool) []Point {
	var all []Point
	for i, call := range calls {
		for _, caller := range c.Callers {
			if caller == ProcessDies || caller == ProcessRestarts {
				all = append(all, Point{call, DiesBefore, caller, 0}, Point{call, DiesAfter, caller, 0})
				continue
			}
			for _, fault := range c.Faults {
				if cut, ok := fault.(Cut); ok && cut.silent && !bodies[i] {
					continue
				}
				if itself, ok := fault.(Injector); ok && itself.Inject(call) == nil {
					continue
				}
				all = append(all, Point{call, fault, caller, 0}, Point{call, fault, caller, sweepRetries})
			}
		}
	}
	return all
}

// strike injects the point's fault into its call. It finds the call by its number among the calls of its
// kind, and not by its index, because concurrent calls may come in any order.
func strike(calls []Call, p Point) Injector {
	before := 0
	for _, call := range calls[:p.Call.Index] {
		if call.Kind == p.Call.Kind {
			before++
		}
	}
	return On(p.Call.Kind, OnIndex(before, Always(p.Fault)))
}

// runPoint runs one point in its own world.
func (c *SweepCase) runPoint(t testing.TB, p Point, injector Injector) {
	t.Helper()
	s := c.Service(t)
	w := c.world(t, s)
	faulty, faults := s.WithRetries(p.Retries).Faulty(injector)
	defer func() {
		if t.Failed() {
			t.Logf("point %v of sweep %s; faults: %v; calls: %v; alone: %s", p, c.Name, faults.Met(), faults.Calls(), testrun.Alone(t))
		}
	}()
	end := Ending{Point: p}
	operate := func(s *Service, process func(context.Context) (context.Context, context.CancelFunc)) error {
		end.Attempts++
		return c.hook(t, func(ctx context.Context) error {
			ctx, cancel := process(ctx)
			defer cancel()
			return w.Operate(ctx, s)
		})
	}
	end.Err = operate(faulty, faults.Context)
	if len(faults.Met()) == 0 {
		t.Fatalf("the operation made %d calls and so never came to call %d: it makes other calls than in the run without faults",
			len(faults.Calls()), p.Call.Index)
	}
	switch p.Caller {
	case CallerRetries:
		for end.Err != nil && end.Attempts < sweepAttempts {
			end.Err = operate(faulty, faults.Context)
		}
	case ProcessDies:
		end.Err = ErrDied
	case ProcessRestarts:
		end.Err = operate(s.WithRetries(p.Retries), context.WithCancel)
	}
	c.recoverAndCheck(t, s, w, end)
}

func (c *SweepCase) recoverAndCheck(t testing.TB, s *Service, w World, end Ending) {
	t.Helper()
	if err := kinds.Check(end.Err); err != nil {
		t.Error(err)
	}
	if w.Recover != nil {
		if err := c.hook(t, func(ctx context.Context) error { return w.Recover(ctx, s) }); err != nil {
			t.Errorf("Recover: %v", err)
			return
		}
	}
	if err := c.hook(t, func(ctx context.Context) error { return w.Check(ctx, s, end) }); err != nil {
		t.Errorf("the caller was told %v, at attempt %d; Check: %v", told(end.Err), end.Attempts, err)
	}
}

func told(err error) string {
	if err == nil {
		return "that all is done"
	}
	return fmt.Sprintf("%q", err.Error())
}

// hook calls one of the functions of a World with a time limit. A panic counts as a failure of the point, so
// that the remaining points still run.
func (c *SweepCase) hook(t testing.TB, f func(ctx context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(t.Context(), c.Timeout)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			t.Error(err)
		}
	}()
	err = f(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("took longer than %v, and returned: %v", c.Timeout, err)
	}
	return err
}
