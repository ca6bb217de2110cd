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

// SweepCase is an operation in which a sweep makes every storage call fail, and the conditions that must hold
// afterwards.
type SweepCase struct {
	// Name is the sweep's name in the log (default: the test's name).
	Name string
	// World sets up one run, with its tables and their initial contents, and returns the functions that use
	// them. It is called once for each point, with that point's own t, and once for the run without faults.
	// Clients of s meet no faults.
	World func(t testing.TB, s *Service) World
	// Floor is the minimum number of points; set it to the number at the last check. With fewer points the test
	// fails, because the operation makes fewer calls or the list has fewer faults than it was tested with.
	Floor int
	// Every runs only every nth point, for sweeps that would take too long; 0 and 1 run all. Floor counts all points,
	// run or not, and the log says how many were run. Choose a number that has no divisor in common with the number
	// of points for one call: then every fault and every caller is tested.
	Every int
	// Service returns the service of a run; nil means a fresh [Simulator] for each. For Azurite, or an
	// account, set it to func(t testing.TB) *Service { return Azurite(t) }.
	Service func(t testing.TB) *Service
	// Faults are the faults to inject (default [SweepFaults]). The death of a process is not a fault here: choose it
	// with Callers.
	Faults []Fault
	// Callers are the ways to continue after a fault (default: all of them).
	Callers []Caller
	// Timeout limits each call of a function of a World (default 30 s).
	Timeout time.Duration
}

// World is the set-up of one run, as functions that share it. Each function must make its clients from the
// Service that it gets.
type World struct {
	// Operate is the operation under test. The calls of its clients meet the fault. If the caller retries,
	// Operate is called again with the same Service; after the process has died, with a new one.
	Operate func(ctx context.Context, s *Service) error
	// Recover does the work that the system does by itself later, for example by running workers until their
	// queues are empty. It may be nil.
	Recover func(ctx context.Context, s *Service) error
	// Check returns an error if a condition that must hold after every run is violated, whatever result the
	// operation has returned.
	Check func(ctx context.Context, s *Service, end Ending) error
}

// Ending describes the end of a run for Check: what the caller of the operation knows.
type Ending struct {
	// Err is the error of the last call of the operation, or [ErrDied] if its process died before the call
	// returned.
	Err error
	// Attempts is how often the caller called the operation.
	Attempts int
	// Point identifies the run; in the run without faults, Point.Fault is nil.
	Point Point
}

// Succeeded reports whether the operation returned success to its caller.
func (e Ending) Succeeded() bool { return e.Err == nil }

// Caller says how a run continues after the fault.
type Caller uint8

const (
	// CallerGivesUp calls the operation once, whatever it returns.
	CallerGivesUp Caller = iota + 1
	// CallerRetries calls the operation again in the same process after an error, five times at most.
	CallerRetries
	// ProcessDies ends the process before or after the call, and no other process replaces it.
	ProcessDies
	// ProcessRestarts ends the process before or after the call, and a new process calls the operation again.
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
	// Call is the call that gets the fault, as recorded in the run without faults.
	Call Call
	// Fault is the fault that the call gets.
	Fault Fault
	// Caller is how the run continues after the fault.
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

// SweepFaults returns the default faults of a sweep: every fault that does not end the process.
func SweepFaults() []Fault { return FaultsOf(Batch) }

// FaultsOf returns those of [SweepFaults] that a call of this kind can meet: [Inside] applies only to a transaction.
func FaultsOf(kind Kind) []Fault {
	faults := []Fault{NotSent, LostAnswer, Applied500, Before500, Throttled, CutAnswerAt(0.5), CutSilentlyAt(0.5)}
	if kind == Batch {
		faults = append(faults, Inside{Status: 503, Code: "ServerBusy"}, Inside{Status: 503, Applied: true}, Inside{Status: 500, Code: "OperationTimedOut", Applied: true},
			Inside{Status: 500}, Inside{Status: 429, Code: "TooManyRequests"}, Inside{Status: 429})
	}
	return faults
}

// Sweep runs the operation once without faults, to learn which calls it makes, and then once more in a fresh World
// for each of its calls × each fault × each [Caller] × with and without retries by the SDK. After each run it calls
// Recover and Check.
//
// Each point is a subtest. A failed point logs how to run it alone, as in
//
//	go test -run '^TestInsert$/^2-PutMessage-LostAnswer-CallerGivesUp-no-retries$'
//
// The log has the numbers of points and of failed points. Up to the fault, the operation must make the same
// calls in every run; concurrent calls may come in any order.
func Sweep(t *testing.T, c SweepCase) {
	t.Helper()
	sweep(subtests{t}, c)
}

// subtester is the part of *testing.T that a sweep needs; tests of the sweep have their own implementation, which may
// fail.
type subtester interface {
	testing.TB
	run(name string, f func(t testing.TB)) bool
}

type subtests struct{ *testing.T }

func (s subtests) run(name string, f func(t testing.TB)) bool {
	return s.Run(name, func(t *testing.T) { f(t) })
}

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
