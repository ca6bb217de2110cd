package dataseries_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// told counts what callers were told of their changes.
type told struct {
	mu              sync.Mutex
	applied, unsure int64
	said            []error
}

func (a *told) add(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = append(a.said, err)
	switch {
	case err == nil:
		a.applied++
	case errors.Is(err, tables.ErrUnknownOutcome), errors.Is(err, storagetest.ErrDied):
		a.unsure++
	}
}

func (a *told) allows(n int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n < a.applied || n > a.applied+a.unsure {
		return fmt.Errorf("counted %d times, and of the calls %d succeeded and %d may have; they said %q", n, a.applied, a.unsure, a.said)
	}
	return nil
}

// swept is an operation on a world, and what must hold of it.
type swept struct {
	before  func(ctx context.Context, c *dataseries.Counter[int64], s *storagetest.Service) error
	operate func(ctx context.Context, c *dataseries.Counter[int64]) error
	recover func(ctx context.Context, c *dataseries.Counter[int64]) error
	check   func(ctx context.Context, c *dataseries.Counter[int64], told *told) error
}

func (o swept) of(w world) storagetest.SweepCase {
	return storagetest.SweepCase{Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := w
		w.open(t, s)
		if o.before != nil {
			if err := o.before(t.Context(), assert.Must[*dataseries.Counter[int64]](t)(w.start(s)), s); err != nil {
				t.Fatal(err)
			}
		}
		var said told
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				c, err := w.start(s)
				if err == nil {
					err = o.operate(ctx, c)
				}
				said.add(err)
				return err
			},
			Recover: func(ctx context.Context, s *storagetest.Service) error {
				c, err := w.start(s)
				if err == nil && o.recover != nil {
					err = o.recover(ctx, c)
				}
				return err
			},
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				c, err := w.start(s)
				if err != nil {
					return err
				}
				return o.check(ctx, c, &said)
			},
		}
	}}
}

// shows compares a series with what it may be.
func shows(ctx context.Context, c *dataseries.Counter[int64], may ...string) error {
	v, err := c.Read(ctx, today)
	if err != nil {
		return err
	}
	for _, want := range may {
		if text(v) == want {
			return nil
		}
	}
	return fmt.Errorf("the series is %s, want one of %q", text(v), may)
}

const (
	sweptBefore = "[. 7 . . . . . . . 9]"
	sweptNone   = "[. . . . . . . . . .]"
)

func setBefore(ctx context.Context, c *dataseries.Counter[int64], _ *storagetest.Service) error {
	return c.SetMany(ctx, today, map[int]int64{1: 7, 9: 9})
}

// either is the check of a change that is made at most once, or again.
func either(before, after string) func(context.Context, *dataseries.Counter[int64], *told) error {
	return func(ctx context.Context, c *dataseries.Counter[int64], said *told) error {
		switch {
		case said.applied > 0:
			return shows(ctx, c, after)
		case said.unsure > 0:
			return shows(ctx, c, before, after)
		}
		return shows(ctx, c, before)
	}
}

// counts is the check of additions: as many as their callers were told, or could not be told.
func counts(slot int, before int64) func(context.Context, *dataseries.Counter[int64], *told) error {
	return func(ctx context.Context, c *dataseries.Counter[int64], said *told) error {
		v, err := c.Read(ctx, today)
		if err != nil {
			return err
		}
		return said.allows((v.Slots[slot].Value - before) / 5)
	}
}

// onceAfterAll repeats an operation until it is done, whatever became of it before: it counts once in all.
func onceAfterAll(slot int, want int64) func(context.Context, *dataseries.Counter[int64], *told) error {
	return func(ctx context.Context, c *dataseries.Counter[int64], said *told) error {
		v, err := c.Read(ctx, today)
		if err != nil {
			return err
		}
		n := v.Slots[slot].Value
		if n != want && (said.applied > 0 || n != want-5) {
			return fmt.Errorf("the slot holds %d; they said %q", n, said.said)
		}
		if said.applied+said.unsure == 0 && n == want {
			return fmt.Errorf("it was counted, and they said %q", said.said)
		}
		counted, err := c.AddOnce(ctx, today, slot, 5, "message 1")
		if err != nil || counted != (n != want) {
			return fmt.Errorf("repeated: %t, %w; before it was %d", counted, err, n)
		}
		if v, err = c.Read(ctx, today); err == nil && v.Slots[slot].Value != want {
			err = fmt.Errorf("repeated, the slot holds %d", v.Slots[slot].Value)
		}
		return err
	}
}

func addOnce(slot int) func(ctx context.Context, c *dataseries.Counter[int64]) error {
	return func(ctx context.Context, c *dataseries.Counter[int64]) error {
		_, err := c.AddOnce(ctx, today, slot, 5, "message 1")
		return err
	}
}

const sweptMarkers = 5

// markersBefore leaves old markers and a young one.
func markersBefore(ctx context.Context, c *dataseries.Counter[int64], s *storagetest.Service) error {
	for i := range sweptMarkers + 1 {
		if i == sweptMarkers {
			s.Wait(age + time.Minute)
		}
		if _, err := c.AddOnce(ctx, today, i, 1, fmt.Sprint("old", i)); err != nil {
			return err
		}
	}
	return nil
}

func sweepMarkers(ctx context.Context, c *dataseries.Counter[int64]) error {
	_, err := c.SweepMarkers(ctx, age, nil)
	return err
}

// onlyOldSwept repeats all operations: those whose markers were old count again.
func onlyOldSwept(ctx context.Context, c *dataseries.Counter[int64], _ *told) error {
	if err := shows(ctx, c, "[1 1 1 1 1 1 . . . .]"); err != nil {
		return err
	}
	for i := range sweptMarkers + 1 {
		if counted, err := c.AddOnce(ctx, today, i, 1, fmt.Sprint("old", i)); err != nil || counted != (i < sweptMarkers) {
			return fmt.Errorf("operation %d: %t, %w", i, counted, err)
		}
	}
	return nil
}

// sweeps are the operations to break.
func sweeps() map[string]swept {
	return map[string]swept{
		"Set": {before: setBefore, check: either(sweptBefore, "[. 8 . . . . . . . 9]"),
			operate: func(ctx context.Context, c *dataseries.Counter[int64]) error { return c.Set(ctx, today, 1, 8) }},
		"SetMany": {before: setBefore, check: either(sweptBefore, "[. 8 . 3 . . . . . 10]"),
			operate: func(ctx context.Context, c *dataseries.Counter[int64]) error {
				return c.SetMany(ctx, today, map[int]int64{1: 8, 3: 3, 9: 10})
			}},
		"Add": {before: setBefore, check: counts(1, 7),
			operate: func(ctx context.Context, c *dataseries.Counter[int64]) error { return c.Add(ctx, today, 1, 5) }},
		"AddNew": {check: counts(9, 0),
			operate: func(ctx context.Context, c *dataseries.Counter[int64]) error { return c.Add(ctx, today, 9, 5) }},
		"AddOnce":    {before: setBefore, operate: addOnce(1), check: onceAfterAll(1, 12)},
		"AddOnceNew": {operate: addOnce(9), check: onceAfterAll(9, 5)},
		"Delete": {before: setBefore, check: either(sweptBefore, sweptNone),
			operate: func(ctx context.Context, c *dataseries.Counter[int64]) error {
				err := c.Delete(ctx, today)
				if errors.Is(err, tables.ErrNotFound) && !errors.Is(err, tables.ErrUnknownOutcome) {
					return nil // a caller that repeats it, or starts over, may have deleted it before
				}
				return err
			}},
		"SweepMarkers": {before: markersBefore, operate: sweepMarkers, recover: sweepMarkers, check: onlyOldSwept},
	}
}

// TestSweep breaks every change at every storage call, in every way.
func TestSweep(t *testing.T) {
	floors := map[place]map[string]int{
		inRow:  {"Set": 60, "SetMany": 60, "Add": 60, "AddNew": 60, "AddOnce": 88, "AddOnceNew": 88, "Delete": 28, "SweepMarkers": 120},
		inRows: {"Set": 60, "SetMany": 120, "Add": 60, "AddNew": 60, "AddOnce": 88, "AddOnceNew": 88, "Delete": 88, "SweepMarkers": 120},
		inBlob: {"Set": 60, "SetMany": 60, "Add": 60, "AddNew": 60, "AddOnce": 60, "AddOnceNew": 60, "Delete": 28, "SweepMarkers": 92},
	}
	for _, p := range places {
		for name, o := range sweeps() {
			if race.Enabled && (p == inRows && name != "SetMany" && name != "Delete" || p == inBlob && name != "AddOnce" && name != "SweepMarkers") {
				continue // much the same calls in the same order, and the detector makes them slow
			}
			c := o.of(world{place: p})
			c.Floor = floors[p][name]
			t.Run(string(p)+"/"+name, func(t *testing.T) { storagetest.Sweep(t, c) })
		}
	}
}

// TestSweepStaged breaks a transaction of the caller's own: the row and the count are there together, or neither.
func TestSweepStaged(t *testing.T) {
	message := tables.Key{Partition: today.Partition, Row: "message_1"}
	o := swept{
		before: setBefore,
		operate: func(ctx context.Context, c *dataseries.Counter[int64]) error {
			x := c.Table().NewTransaction()
			staged, err := c.StageAddOnce(ctx, x, today, 1, 5, "message 1")
			if err != nil || !staged {
				return err
			}
			x.Insert(&tables.Entity{Key: message})
			_, err = x.Commit(ctx)
			return err
		},
		check: func(ctx context.Context, c *dataseries.Counter[int64], said *told) error {
			_, err := c.Table().Entities().Get(ctx, message)
			there := err == nil
			if there != (shows(ctx, c, "[. 12 . . . . . . . 9]") == nil) || there == (shows(ctx, c, sweptBefore) == nil) {
				return fmt.Errorf("the row is there: %t, and the count is another", there)
			}
			return onceAfterAll(1, 12)(ctx, c, said)
		},
	}
	for _, p := range []place{inRow, inRows} {
		c := o.of(world{place: p})
		c.Floor = 120
		t.Run(string(p), func(t *testing.T) { storagetest.Sweep(t, c) })
	}
}
