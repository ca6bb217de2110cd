package storagetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/kinds"
	"github.com/tablepatterns/tablepatterns/internal/testrun"
)

// SweepCase is an operation whose storage calls a sweep makes fail, and what must hold afterwards.
type SweepCase struct {
	// Name is for the log (default: the test's name).
	Name string
	// World sets up one run: once for each point, with its own t, and once without faults. Clients of s meet no faults.
	World func(t testing.TB, s *Service) World
	// Floor is the minimum number of points: that of the last check. Fewer fail the test: the operation makes fewer calls, or there are fewer
	// faults than were tested.
	Floor int
	// Every runs only every nth point; 0 and 1 run all. Floor counts all. Choose a number without a common divisor with the number of points for
	// one call, so that every fault and every caller is tested.
	Every int
	// Service returns the service of a run (default a fresh [Simulator] for each). For Azurite, or an account: func(t testing.TB) *Service { return
	// Azurite(t) }.
	Service func(t testing.TB) *Service
	// Faults are the faults to inject (default [SweepFaults]). Callers choose the death of a process.
	Faults []Fault
	// Callers are the ways to continue after a fault (default all).
	Callers []Caller
	// Timeout limits each call of a function of a World (default 30 s).
	Timeout time.Duration
}

// World is the set-up of one run. Each function must make its clients from its Service.
type World struct {
	// Operate is the operation under test, whose calls meet the fault. A retry has the same Service; after the process has died, a new one.
	Operate func(ctx context.Context, s *Service) error
	// Recover does what the system does by itself later, such as running workers until their queues are empty; nil for nothing.
	Recover func(ctx context.Context, s *Service) error
	// Check returns an error if a condition that must hold after every run is violated, whatever the operation returned.
	Check func(ctx context.Context, s *Service, end Ending) error
}

// Ending is what the caller of the operation knows at the end of a run.
type Ending struct {
	// Err is the error of the last call of the operation, or [ErrDied] if its process died before.
	Err error
	// Attempts counts the calls of the operation.
	Attempts int
	// Point is the run; without faults, Point.Fault is nil.
	Point Point
}

// Succeeded reports whether the operation returned success.
func (e Ending) Succeeded() bool { return e.Err == nil }

// Caller says how a run continues after the fault.
type Caller uint8

const (
	// CallerGivesUp calls the operation once.
	CallerGivesUp Caller = iota + 1
	// CallerRetries repeats it in the same process after an error, five times at most.
	CallerRetries
	// ProcessDies ends the process before or after the call, without another in its place.
	ProcessDies
	// ProcessRestarts ends the process before or after the call; a new one calls the operation again.
	ProcessRestarts
)

var callerNames = [...]string{"Caller(0)", "CallerGivesUp", "CallerRetries", "ProcessDies", "ProcessRestarts"}

// String is the constant's name.
func (c Caller) String() string {
	if int(c) < len(callerNames) {
		return callerNames[c]
	}
	return fmt.Sprintf("Caller(%d)", uint8(c))
}

// Point is one run of a sweep.
type Point struct {
	// Call gets the fault; as recorded in the run without faults.
	Call   Call
	Fault  Fault
	Caller Caller
	// Retries is how often the SDK retries a failed request.
	Retries int32
}

// String returns the point's name as a subtest, the same in every run.
func (p Point) String() string {
	if p.Fault == nil {
		return "no fault"
	}
	retries := "no-retries"
	if p.Retries > 0 {
		retries = "sdk-retries"
	}
	fault := strings.NewReplacer("(", "", ")", "", " ", "-").Replace(p.Fault.String())
	return fmt.Sprintf("%d-%s-%s-%s-%s", p.Call.Index, p.Call.Kind, fault, p.Caller, retries)
}

// SweepFaults returns every fault that does not end the process.
func SweepFaults() []Fault { return FaultsOf(Batch) }

// FaultsOf returns those of [SweepFaults] that a call of this kind can meet: [Inside] only for a transaction.
func FaultsOf(kind Kind) []Fault {
	faults := []Fault{NotSent, LostAnswer, Applied500, Before500, Throttled, CutAnswerAt(0.5), CutSilentlyAt(0.5)}
	if kind == Batch {
		faults = append(faults, Inside{Status: 503, Code: "ServerBusy"}, Inside{Status: 503, Applied: true}, Inside{Status: 500, Code: "OperationTimedOut", Applied: true},
			Inside{Status: 500}, Inside{Status: 429, Code: "TooManyRequests"}, Inside{Status: 429})
	}
	return faults
}

// Sweep runs the operation once without faults, to learn its calls, and then in a fresh World for each call × each fault × each [Caller] × with and
// without retries by the SDK, each time with Recover and Check.
//
// Each point is a subtest. A failed point logs how to run it alone, as in
//
//	go test -run '^TestInsert$/^2-PutMessage-LostAnswer-CallerGivesUp-no-retries$'
//
// The log has the numbers of points and of failed points. Up to the fault, the operation must make the same calls in every run; concurrent calls
// may come in any order.
func Sweep(t *testing.T, c SweepCase) {
	t.Helper()
	sweep(subtests{t}, c)
}

// subtester is the part of *testing.T that a sweep needs, so that tests of the sweep may see failures.
type subtester interface {
	testing.TB
	run(name string, f func(t testing.TB)) bool
}

type subtests struct{ *testing.T }

func (s subtests) run(name string, f func(t testing.TB)) bool {
	return s.Run(name, func(t *testing.T) { f(t) })
}

const (
	sweepTimeout = 30 * time.Second
	// sweepAttempts is for CallerRetries.
	sweepAttempts = 5
	// sweepRetries is for points with retries.
	sweepRetries = 3
)

// sweep is Sweep for any subtester, and returns the numbers that it logs.
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

// baseline returns the calls without faults, and which responses have a body. It is no subtest, so that -run can choose any single point.
func (c *SweepCase) baseline(t testing.TB) (calls []Call, bodies []bool) {
	t.Helper()
	s := c.Service(t)
	w := c.World(t, s)
	if w.Operate == nil || w.Check == nil {
		t.Fatalf("sweep %s: a world needs Operate and Check", c.Name)
	}
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

// answerNotes records which responses have a body.
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

// points omits faults without effect: a silent cut of a response without a body, and [Inside] for a call that is no transaction. If the process
// dies, no response matters: it dies before or after the call.
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

// strike finds the point's call by its number among those of its kind, because concurrent calls may come in any order.
func strike(calls []Call, p Point) Injector {
	before := 0
	for _, call := range calls[:p.Call.Index] {
		if call.Kind == p.Call.Kind {
			before++
		}
	}
	return On(p.Call.Kind, OnIndex(before, Always(p.Fault)))
}

func (c *SweepCase) runPoint(t testing.TB, p Point, injector Injector) {
	t.Helper()
	s := c.Service(t)
	w := c.World(t, s)
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
		told := "that all is done"
		if end.Err != nil {
			told = strconv.Quote(end.Err.Error())
		}
		t.Errorf("the caller was told %v, at attempt %d; Check: %v", told, end.Attempts, err)
	}
}

// hook limits the time of a World's function. A panic fails the point, so that the others still run.
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
