package storagetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
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

// quickRetries retries n times, almost without delay.
func quickRetries(n int32) policy.RetryOptions {
	if n <= 0 {
		return policy.RetryOptions{MaxRetries: -1}
	}
	return policy.RetryOptions{MaxRetries: n, RetryDelay: time.Microsecond, MaxRetryDelay: time.Millisecond}
}
