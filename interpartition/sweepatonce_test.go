package interpartition_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// unfinished is one point of TestSweepAtOnce: a change of Jones that met a fault, and was given up.
type unfinished struct {
	*world
	name string
	said harness.Attempts
}

// updateJones moves both keys of Jones.
func updateJones(ctx context.Context, repo *patterns.Repository[employee]) error {
	_, err := repo.Update(ctx, keyOf(jones()), func(e *employee) error {
		e.Name, e.Email, e.Badge = changed().Name, changed().Email, changed().Badge
		return nil
	})
	return err
}

// TestSweepAtOnce is the part of TestSweep that can be had on any service in a few seconds: one change with unique keys,
// each of its calls with each fault, without repetitions, given up by its caller. As time there is real, all points wait for
// their messages together.
func TestSweepAtOnce(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	begin := func(name string, injector storagetest.Injector) (*unfinished, *storagetest.Faults) {
		u := &unfinished{name: name, world: newWorld(t, s, kind{unique: true})}
		u.hidden = 2 * time.Second
		if err := harness.Must[*process](t)(u.start(s)).repo.Insert(ctx, jones()); err != nil {
			t.Fatal(err)
		}
		faulty, faults := s.WithRetries(0).Faulty(injector)
		alive, cancel := faults.Context(ctx)
		defer cancel()
		u.said.Add(updateJones(alive, harness.Must[*process](t)(u.start(faulty)).repo))
		return u, faults
	}
	u, faults := begin("no fault", nil)
	points, counted := []*unfinished{u}, 1
	for _, call := range faults.Calls() {
		before := 0 // calls of its kind; those that are made at the same time come in any order
		for _, earlier := range faults.Calls()[:call.Index] {
			if earlier.Kind == call.Kind {
				before++
			}
		}
		for _, fault := range append(storagetest.FaultsOf(call.Kind), storagetest.DiesBefore, storagetest.DiesAfter) {
			if counted++; counted%harness.SweepEvery() != 0 {
				continue
			}
			u, faults := begin(fmt.Sprintf("%v of %v", fault, call), storagetest.On(call.Kind, storagetest.OnIndex(before, storagetest.Always(fault))))
			if len(faults.Met()) != 1 {
				t.Errorf("%s: met %v", u.name, faults.Met())
			}
			points = append(points, u)
		}
	}
	left := points
	for round := 0; len(left) > 0; round++ {
		if round == 5 {
			t.Fatalf("%d queues do not get empty, the first of them after %s", len(left), left[0].name)
		}
		s.Wait(3 * time.Second)
		left = slices.DeleteFunc(slices.Clone(left), func(u *unfinished) bool { return u.empty(ctx, t, s) })
	}
	divergences := 0
	for _, u := range points {
		if err := u.checkRows(ctx, s); err != nil {
			divergences++
			t.Errorf("%s: %v", u.name, err)
		}
	}
	t.Logf("sweep %s on %v: %d points, %d of them run, %d divergences", t.Name(), s, counted, len(points), divergences)
	if floor := 172; counted < floor {
		t.Errorf("%d points, where there were %d", counted, floor)
	}
}

// empty has a worker handle what is visible, and reports whether that was all.
func (u *unfinished) empty(ctx context.Context, t *testing.T, s *storagetest.Service) bool {
	p := harness.Must[*process](t)(u.start(s))
	if err := u.drainNow(ctx, p); err != nil {
		t.Fatalf("%s: %v", u.name, err)
	}
	return harness.Must[int](t)(p.queue.Length(ctx)) == 0
}

func (u *unfinished) checkRows(ctx context.Context, s *storagetest.Service) error {
	found, err := u.check(ctx, s)
	if err != nil {
		return err
	}
	states := []string{textOf(jones()), textOf(changed())}
	if got := found[keyOf(jones())]; !slices.Contains(states[u.said.Least:u.said.Most+1], got) {
		return fmt.Errorf("there is %q, and the caller was told %v", got, u.said.Said)
	}
	return nil
}
