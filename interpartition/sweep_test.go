package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

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

func (c swept) sweep(k kind) storagetest.SweepCase {
	people := everybody(jones(), changed(), ward(), smith())
	return storagetest.SweepCase{Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := newWorld(t, s, k)
		p := harness.Must[*process](t)(w.start(s))
		for _, e := range c.before {
			harness.Check(t, inserts(e)(t.Context(), p.repo))
		}
		harness.Check(t, p.close(t.Context()))
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
				if err := w.agreesAlways(ctx, s, people); err != nil {
					return err
				}
				found, err := w.check(ctx, s)
				if err != nil {
					return err
				}
				return said.Fits(fmt.Sprint(slices.Sorted(maps.Values(found))), c.states)
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
			c := all[name].sweep(k)
			c.Floor = sweepFloors[name][i]
			t.Run(k.String()+"/"+name, func(t *testing.T) { storagetest.Sweep(t, c) })
		}
	}
}
