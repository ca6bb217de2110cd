package storagetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// SweepCase is an operation in which a sweep makes every storage call fail, and the conditions that must hold nevertheless.
type SweepCase struct {
	// Name is what the log calls the sweep; empty is the test's name.
	Name string
	// World makes a fresh world for one point: its tables, what is in them before, and the hooks that share them. It is
	// called once for each point, with that point's own t, and once more for the run without faults. Clients of s meet no
	// faults.
	World func(t testing.TB, s *Service) World
	// Floor is the number of points that the sweep had when it was last looked at. With fewer the test fails: an operation
	// that has lost calls, or a list that has lost faults, must not pass for one that is as well tested as before.
	Floor int
	// Every runs one in so many points only, where all of them would take too long; zero and 1 are all. Floor counts all of
	// them, run or not, and the log says how many were run. A number that has no divisor in common with the number of points
	// of a call gives each fault and each caller their turn.
	Every int
	// Service is where the worlds are; nil is a fresh [Simulator] for each. For Azurite, or an account, it is
	// func(t testing.TB) *Service { return Azurite(t) }.
	Service func(t testing.TB) *Service
	// Faults are the faults to meet; nil is [SweepFaults]. What a process dies of is no matter of this list.
	Faults []Fault
	// Callers are the ways to go on after a fault; nil is all of them.
	Callers []Caller
	// Timeout bounds each hook; zero is 30 s.
	Timeout time.Duration
}

// World is one fresh world, as closures over whatever they share. The Service that a hook gets is the one that it must
// make its clients from.
type World struct {
	// Operate is the operation under test. The client that it makes meets the fault. A repetition by the caller is another
	// call of Operate, with the same Service; after a process has died, with a new one.
	Operate func(ctx context.Context, s *Service) error
	// Recover does what the system does by itself in time: workers drain their queues, a sweeper sweeps. nil is nothing.
	Recover func(ctx context.Context, s *Service) error
	// Check tells whether all that must hold does, in whichever way the operation ended. It returns what does not.
	Check func(ctx context.Context, s *Service, end Ending) error
}

// Ending is what the caller of the operation knows at the end.
type Ending struct {
	// Err is the last answer of the operation; [ErrDied] if its process died, and nobody heard any.
	Err error
	// Attempts is how often the caller called it.
	Attempts int
	// Point is what happened; the run without faults has a nil Fault.
	Point Point
}

// Succeeded reports whether the operation returned success to its caller.
func (e Ending) Succeeded() bool { return e.Err == nil }

// Caller says what happens to the operation after its fault.
type Caller uint8

const (
	// CallerGivesUp: whatever the operation returns is the end of it.
	CallerGivesUp Caller = iota + 1
	// CallerRetries: the same process calls the operation again after an error, five times at most.
	CallerRetries
	// ProcessDies: the process dies before or after the call, and none takes its place.
	ProcessDies
	// ProcessRestarts: the process dies before or after the call, and a new one calls the operation again.
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
	// Call is the call that meets the fault, as the run without faults made it.
	Call Call
	// Fault is what the call meets.
	Fault Fault
	// Caller is what happens then.
	Caller Caller
	// Retries is how often the SDK itself repeats a failed request.
	Retries int32
}

// String is the point's name as a subtest, the same in every run.
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

// SweepFaults returns the default faults of a sweep: all that can happen to a call without ending the process.
func SweepFaults() []Fault { return FaultsOf(Batch) }

// FaultsOf returns those of [SweepFaults] that a call of this kind can meet: only a transaction can fail [Inside] its response.
func FaultsOf(kind Kind) []Fault {
	faults := []Fault{NotSent, LostAnswer, Applied500, Before500, Throttled, CutAnswerAt(0.5), CutSilentlyAt(0.5)}
	if kind == Batch {
		faults = append(faults, Inside{Status: 503, Code: "ServerBusy"}, Inside{Status: 503, Applied: true}, Inside{Status: 500, Code: "OperationTimedOut", Applied: true},
			Inside{Status: 500}, Inside{Status: 429, Code: "TooManyRequests"}, Inside{Status: 429})
	}
	return faults
}

// Sweep runs the operation once without faults, to learn which calls it makes, and then once more in a fresh world for
// each of its calls × each fault × each way to go on after it × with and without repetitions by the SDK. After each it
// recovers, and checks.
//
// Each point is a subtest; one that fails says how to run it alone, as in
//
//	go test -run '^TestInsert$/^2-PutMessage-LostAnswer-CallerGivesUp-no-retries$'
//
// The log has the number of points and of divergences. The operation must make the same number of calls whenever no fault
// has struck yet; calls that it makes at the same time may come in any order.
func Sweep(t *testing.T, c SweepCase) {
	t.Helper()
	sweep(subtests{t}, c)
}

// subtester is what a sweep needs of *testing.T; tests of the sweep have one of their own, which may fail.
type subtester interface {
	testing.TB
	run(name string, f func(t testing.TB)) bool
}

type subtests struct{ *testing.T }

func (s subtests) run(name string, f func(t testing.TB)) bool {
	return s.Run(name, func(t *testing.T) { f(t) })
}

// quickRetries repeats n times, without the waiting that is of use between two machines only.
func quickRetries(n int32) policy.RetryOptions {
	if n <= 0 {
		return policy.RetryOptions{MaxRetries: -1}
	}
	return policy.RetryOptions{MaxRetries: n, RetryDelay: time.Microsecond, MaxRetryDelay: time.Millisecond}
}
