package storagetest

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/toy"
)

// pair is an operation of the kind that sweeps are for: two rows that must become the same, by an intent that says
// so before the first of them is written.
func pair(_ testing.TB, _ *Service) World {
	return World{
		Operate: func(ctx context.Context, s *Service) error {
			if _, err := toy.Call(ctx, &s.ClientOptions, http.MethodPut, toy.Queue+"/1", "new"); err != nil {
				return err
			}
			return applyIntent(ctx, s)
		},
		Recover: func(ctx context.Context, s *Service) error {
			if _, err := toy.Call(ctx, &s.ClientOptions, http.MethodGet, toy.Queue+"/1", ""); err != nil {
				return nil
			}
			return applyIntent(ctx, s)
		},
		Check: same,
	}
}

// applyIntent does what the intent says, and removes it.
func applyIntent(ctx context.Context, s *Service) error {
	for _, name := range []string{"a", "b"} {
		if err := put(ctx, s, name, "new"); err != nil {
			return err
		}
		if got, err := get(ctx, s, name); err != nil || got != "new" {
			return fmt.Errorf("row %s is %q: %w", name, got, err)
		}
	}
	_, err := toy.Call(ctx, &s.ClientOptions, http.MethodDelete, toy.Queue+"/1", "")
	if err == toy.ErrRefused {
		return nil // it is gone: an earlier attempt was applied
	}
	return err
}

// same is the invariant: both rows or none, and both if the caller was told so.
func same(ctx context.Context, s *Service, end Ending) error {
	a, _ := get(ctx, s, "a")
	b, _ := get(ctx, s, "b")
	if a != b {
		return fmt.Errorf("a is %q, b is %q", a, b)
	}
	if end.Succeeded() && a != "new" {
		return fmt.Errorf("a is %q", a)
	}
	return nil
}

// careless is pair without an intent.
func careless(t testing.TB, s *Service) World {
	w := pair(t, s)
	w.Recover = nil
	w.Operate = func(ctx context.Context, s *Service) error {
		if err := put(ctx, s, "a", "new"); err != nil {
			return err
		}
		return put(ctx, s, "b", "new")
	}
	return w
}

func onToy(testing.TB) *Service { s, _ := newToy(); return s }

func TestSweep(t *testing.T) {
	// 6 calls: a put, two puts and two gets, a delete. Each has 2 callers who live × 2 kinds of retries × 6 faults, the
	// gets one fault more, and 2 × 2 deaths: 6 × 28 + 2 × 4.
	Sweep(t, SweepCase{Name: "pair", World: pair, Service: onToy, Floor: 176})
}

// sweepFor runs a sweep that may fail.
func sweepFor(t *testing.T, c SweepCase) (points, divergences int, r *recorder) {
	t.Helper()
	r = &recorder{TB: t, name: "TestSwept"}
	r.do(func() { points, divergences = sweep(r, c) })
	return points, divergences, r
}

func TestSweepFindsACarelessOperation(t *testing.T) {
	points, divergences, r := sweepFor(t, SweepCase{World: careless, Service: onToy})
	if points != 2*28 || divergences == 0 || divergences == points || !r.failed {
		t.Fatalf("%d points, %d divergences, failed: %v", points, divergences, r.failed)
	}
	said := r.said.String()
	for _, want := range []string{
		// Nothing of b is written when the process dies before it. A caller who gives up at b leaves it so, too.
		`a is "new", b is ""`,
		"alone: go test -run '^TestSwept$/^1-ReplaceEntity-DiesBefore-ProcessDies-no-retries$'",
		"alone: go test -run '^TestSwept$/^1-ReplaceEntity-NotSent-CallerGivesUp-no-retries$'",
		fmt.Sprintf("sweep TestSwept: %d points, %d divergences (2 calls)", points, divergences),
	} {
		assert.Contains(t, said, want, "the log")
	}
	for _, innocent := range []string{"0-ReplaceEntity-NotSent-CallerGivesUp-no-retries", "1-ReplaceEntity-DiesAfter-ProcessDies-no-retries",
		"1-ReplaceEntity-NotSent-CallerGivesUp-sdk-retries", "1-ReplaceEntity-NotSent-CallerRetries-no-retries", "1-ReplaceEntity-DiesBefore-ProcessRestarts"} {
		if strings.Contains(said, innocent) {
			t.Errorf("the log complains of %s:\n%s", innocent, said)
		}
	}
}

// A sweep of which only some points are run counts all of them, so that its floor is the same.
func TestSweepRunsSomePoints(t *testing.T) {
	const every = 5
	all, found, _ := sweepFor(t, SweepCase{World: careless, Service: onToy})
	points, divergences, r := sweepFor(t, SweepCase{World: careless, Service: onToy, Every: every, Floor: all + 1})
	run := (points + every - 1) / every
	if points != all || divergences == 0 || divergences >= found {
		t.Fatalf("%d points, %d divergences; %d and %d of all", points, divergences, all, found)
	}
	for _, want := range []string{fmt.Sprintf("%d points, %d of them run, %d divergences", points, run, divergences), "where there were"} {
		if said := r.said.String(); !strings.Contains(said, want) {
			t.Errorf("the log lacks %q:\n%s", want, said)
		}
	}
}

// A point that is run alone is the same one, and a sweep of which -run chose one point does not fall below its floor.
func TestSweepRunsOnePointAlone(t *testing.T) {
	const name = "1-ReplaceEntity-NotSent-CallerGivesUp-no-retries"
	r := &recorder{TB: t, name: "TestSwept", filter: regexp.MustCompile("^" + regexp.QuoteMeta(name) + "$").MatchString}
	r.do(func() {
		if points, divergences := sweep(r, SweepCase{World: careless, Service: onToy, Floor: 56}); points != 56 || divergences != 1 {
			t.Errorf("%d points, %d divergences", points, divergences)
		}
	})
	if !r.failed || strings.Contains(r.said.String(), "floor") {
		t.Errorf("failed %v: %s", r.failed, r.said.String())
	}
}

func TestSweepBelowItsFloorFails(t *testing.T) {
	points, divergences, r := sweepFor(t, SweepCase{World: pair, Service: onToy, Floor: 177})
	if points != 176 || divergences != 0 || !r.failed || !strings.Contains(r.said.String(), "set the floor to 176") {
		t.Errorf("%d points, %d divergences: %s", points, divergences, r.said.String())
	}
}

func TestSweepsThatCannotWork(t *testing.T) {
	broken := func(change func(*World)) func(testing.TB, *Service) World {
		return func(t testing.TB, s *Service) World {
			w := pair(t, s)
			change(&w)
			return w
		}
	}
	runs := 0
	for name, c := range map[string]struct {
		world func(testing.TB, *Service) World
		want  string
	}{
		"no operation":  {broken(func(w *World) { w.Operate = nil }), "needs Operate and Check"},
		"no check":      {broken(func(w *World) { w.Check = nil }), "needs Operate and Check"},
		"fails always":  {broken(func(w *World) { w.Operate = func(context.Context, *Service) error { return toy.ErrRefused } }), "fails without any fault"},
		"makes no call": {broken(func(w *World) { w.Operate = func(context.Context, *Service) error { return nil } }), "made no storage call"},
		"never holds":   {broken(func(w *World) { w.Check = func(context.Context, *Service, Ending) error { return toy.ErrRefused } }), "does not even hold without any fault"},
		"panics": {broken(func(w *World) {
			operate := w.Operate
			w.Operate = func(ctx context.Context, s *Service) error {
				if err := operate(ctx, s); err != nil {
					panic("at the disco")
				}
				return nil
			}
		}), "panic: at the disco"},
		"other calls in every run": {func(t testing.TB, s *Service) World {
			runs++
			if runs == 1 {
				return pair(t, s)
			}
			return careless(t, s)
		}, "made 2 calls and so never came to call 5"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, r := sweepFor(t, SweepCase{World: c.world, Service: onToy})
			if !r.failed || !strings.Contains(r.said.String(), c.want) {
				t.Errorf("failed: %v, said: %s", r.failed, r.said.String())
			}
		})
	}
}

func TestSweepBoundsEachHook(t *testing.T) {
	world := func(t testing.TB, s *Service) World {
		w := pair(t, s)
		w.Recover = func(ctx context.Context, _ *Service) error { <-ctx.Done(); return nil }
		return w
	}
	_, _, r := sweepFor(t, SweepCase{World: world, Service: onToy, Timeout: time.Millisecond})
	if !r.failed || !strings.Contains(r.said.String(), "took longer than 1ms") {
		t.Error(r.said.String())
	}
}

// What the callers do, seen by the checks.
func TestSweepCallers(t *testing.T) {
	seen := map[Caller]map[string]bool{}
	world := func(t testing.TB, s *Service) World {
		w := pair(t, s)
		w.Check = func(_ context.Context, _ *Service, end Ending) error {
			if seen[end.Point.Caller] == nil {
				seen[end.Point.Caller] = map[string]bool{}
			}
			seen[end.Point.Caller][fmt.Sprintf("%d %v", end.Attempts, end.Err == nil)] = true
			if (end.Err == ErrDied) != (end.Point.Caller == ProcessDies) {
				return fmt.Errorf("%v ended in %v", end.Point, end.Err)
			}
			return nil
		}
		return w
	}
	Sweep(t, SweepCase{World: world, Service: onToy})
	for caller, want := range map[Caller][]string{
		0:               {"1 true"},
		CallerGivesUp:   {"1 false", "1 true"}, // true where the SDK repeats the call
		CallerRetries:   {"1 true", "2 true"},
		ProcessDies:     {"1 false"},
		ProcessRestarts: {"2 true"},
	} {
		got := make([]string, 0, 2)
		for k := range seen[caller] {
			got = append(got, k)
		}
		slices.Sort(got)
		assert.Slices(t, got, want, caller)
	}
}

// The context of a process ends with it.
func TestSweepDeathEndsTheContext(t *testing.T) {
	world := func(t testing.TB, s *Service) World {
		w := pair(t, s)
		operate := w.Operate
		w.Operate = func(ctx context.Context, s *Service) error {
			err := operate(ctx, s)
			if err != nil {
				<-ctx.Done()
			}
			return err
		}
		return w
	}
	Sweep(t, SweepCase{World: world, Service: onToy, Callers: []Caller{ProcessDies}, Floor: 12, Timeout: 5 * time.Second})
}
