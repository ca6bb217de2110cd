package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// swept is a change of the employees that are there before it, as texts before and after it.
type swept struct {
	before []*employee
	change change
	states []string
}

func statesOf(states ...[]*employee) (all []string) {
	for _, state := range states {
		found := texts(state, textOf)
		slices.Sort(found)
		all = append(all, fmt.Sprint(found))
	}
	return all
}

// sweeps are the changes to break.
func sweeps() map[string]swept {
	one, two := []*employee{jones()}, []*employee{jones(), ward()}
	of := func(before []*employee, do change, after ...*employee) swept {
		return swept{before, do, statesOf(before, after)}
	}
	return map[string]swept{
		"Insert":      of(nil, inserts(jones()), jones()),
		"Update":      of(one, becomes(changed()), changed()),
		"Update same": of(one, becomes(renamed()), renamed()),
		"Upsert":      of(one, upserts(changed()), changed()),
		"Delete":      of(one, goes(jones())),
		"Swap": of(two, together(becoming(keyed(jones(), ward())), becoming(keyed(ward(), jones()))),
			keyed(jones(), ward()), keyed(ward(), jones())),
		"Pass": of(two, together(becoming(changed()), becoming(keyed(ward(), jones()))), changed(), keyed(ward(), jones())),
		"Heir": of(two, together(going(jones()), becoming(keyed(ward(), jones()))), keyed(ward(), jones())),
		"Set":  of(two, together(becoming(changed()), inserting(smith()), going(ward())), changed(), smith()),
	}
}

// sweep breaks the change; atOnce leaves out what holds after the marks' term.
func (c swept) sweep(k kind, atOnce bool) storagetest.SweepCase {
	people := everybody(jones(), changed(), ward(), smith())
	return storagetest.SweepCase{Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := newWorld(t, s, k)
		p := assert.Must[*process](t)(w.start(s))
		for _, e := range c.before {
			assert.Check(t, inserts(e)(t.Context(), p.repo))
		}
		assert.Check(t, p.close(t.Context()))
		var said harness.Attempts
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.start(s)
				if err == nil {
					err = c.change(ctx, p.repo)
				}
				said.Add(err)
				if p != nil {
					err = errors.Join(err, p.close(ctx))
				}
				return err
			},
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				p, err := w.agreesNow(ctx, s, people)
				if err != nil {
					return err
				}
				all, err := p.everybody(ctx)
				if err != nil {
					return err
				}
				if err := said.Fits(statesOf(all)[0], c.states); err != nil || atOnce {
					return err
				}
				if err := w.agreesAlways(ctx, s, people); err != nil {
					return err
				}
				_, err = w.check(ctx, s)
				return err
			},
		}
	}}
}

var sweepKinds = [...]kind{{unique: true}, {}, {unique: true, background: true}, {spread: true}}

// sweepFloors are the numbers of points of each change, in the order of sweepKinds.
var sweepFloors = map[string][4]int{
	"Delete":      {172, 172, 172, 172},
	"Heir":        {440, 344, 440, 400},
	"Insert":      {140, 140, 140, 140},
	"Pass":        {440, 344, 440, 456},
	"Set":         {344, 344, 344, 456},
	"Swap":        {536, 344, 536, 456},
	"Update":      {284, 284, 284, 284},
	"Update same": {172, 172, 172, 172},
	"Upsert":      {284, 284, 284, 284},
}

// TestSweep breaks every request of every kind of change, in every way. Immediately afterwards every reader is right, whatever was written.
func TestSweep(t *testing.T) {
	all := sweeps()
	for i, k := range sweepKinds {
		if i > 1 && !harness.Thorough() {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			c := all[name].sweep(k, false)
			c.Floor = sweepFloors[name][i]
			t.Run(k.String()+"/"+name, func(t *testing.T) { storagetest.Sweep(t, c) })
		}
	}
}

// TestSweepOnAzurite does the same on the other implementation, with fewer faults. There, time passes: only what readers see at once is compared.
func TestSweepOnAzurite(t *testing.T) {
	storagetest.AzuriteOnly(t)
	all := sweeps()
	for name, floor := range map[string]int{"Insert": 10, "Set": 10, "Pass": 10} {
		c := all[name].sweep(kind{unique: true}, true)
		c.Every, c.Floor = 1, floor
		c.Service = func(t testing.TB) *storagetest.Service { return storagetest.Azurite(t) }
		c.Faults = []storagetest.Fault{storagetest.LostAnswer, storagetest.CutSilentlyAt(0.5)}
		c.Callers = []storagetest.Caller{storagetest.CallerRetries, storagetest.ProcessRestarts}
		t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
	}
}
