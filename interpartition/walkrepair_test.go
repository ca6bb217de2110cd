package interpartition_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// These tests walk through every order of the calls of concurrent writers, a worker and Repair. Reservations have a term that is shorter
// than a message is hidden, so that a writer whose message is still its own, and who renews it, can come too late.

const (
	walkTerm = 20 * time.Second
	// overTerm is longer than the term and the grace of a reservation, and shorter than a holder has its message without renewing it:
	// after one pause Repair may free what was reserved before it, after two the holder has renewed its message.
	overTerm = 28 * time.Second
)

// repairs says who runs Repair in a walk.
type repairs uint8

const (
	nobody repairs = iota
	first          // the last writer, before it writes
	beside         // a process of its own
)

// briefly is an index whose reservations have a term of their own.
type briefly struct {
	*interpartition.Index[employee]
	term time.Duration
}

func (b briefly) Attach(host driver.Host[employee]) (driver.Implementation[employee], error) {
	implementation, err := b.Index.Attach(host)
	implementation.Outside.ReservationTerm = b.term
	return implementation, err
}

// repair is a process that runs Repair, with a Lag that is as short as callers can make it.
func (w *walked) repair(ctx context.Context, s *storagetest.Service) error {
	p, err := w.start(s)
	if err != nil {
		return err
	}
	all, err := harness.Findings(lease.Waive(ctx, w.rash), p.repo.Repair, &patterns.JobOptions{Lag: 1, Concurrency: 1})
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.NotRepaired != nil {
			return r.NotRepaired
		}
	}
	return nil
}

// TestWalkRepair: concurrent writers, a worker, and Repair, before the last writer or beside all; deaths, and pauses after which a
// reservation's term is over while its writer still holds its message, which it has renewed after two of them.
func TestWalkRepair(t *testing.T) {
	onePause := walkSize{workers: 1, pauses: 1, pause: overTerm}
	cases := []struct {
		scene walkScene
		who   repairs
		size  walkSize
	}{{sceneInserts, first, onePause}}
	if harness.Thorough() {
		cases = append(cases, []struct {
			scene walkScene
			who   repairs
			size  walkSize
		}{
			{sceneInserts, first, walkSize{workers: 1, crashes: 1, pauses: 1, pause: overTerm}},
			{sceneRace, first, walkSize{workers: 1, crashes: 1, pauses: 1, pause: overTerm}},
			{sceneInserts, first, walkSize{workers: 1, pauses: 2, pause: overTerm}},
			{sceneInserts, beside, onePause},
		}...)
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s, %v", c.scene.name, c.size), func(t *testing.T) {
			w := &walked{kind: unique, walkScene: c.scene, repairs: c.who, term: walkTerm}
			found := w.walk(t, c.size)
			found.MustConverge(t)
			if late := came(found, "have passed: the term"); late == 0 {
				t.Errorf("no writer comes too late: %v", found.Returned)
			}
		})
	}
}

// came counts the histories that ended with an error that holds a text.
func came(w explore.Walk, text string) (n int) {
	for returned, times := range w.Returned {
		if strings.Contains(returned, text) {
			n += times
		}
	}
	return n
}

// TestWalkRepairWithoutARule: both halves of the rule, the writer's and Repair's, are needed, and a walk finds what happens without
// one. That Repair deletes under ETags is a second safeguard, which no walk can tell from the first: the reservation's claim goes
// in the same transaction, and is not there any more where the row has changed.
func TestWalkRepairWithoutARule(t *testing.T) {
	for name, w := range map[string]*walked{
		"a writer that does not look at its clock": {waive: lease.Terms},
		"a Repair that does not wait":              {rash: lease.Terms},
	} {
		if !harness.Thorough() && w.rash == 0 {
			continue // the longest of the walks that find what they look for
		}
		t.Run(name, func(t *testing.T) {
			w.kind, w.walkScene, w.repairs, w.term = unique, sceneInserts, first, walkTerm
			found := w.walk(t, walkSize{workers: 1, pauses: 1, pause: overTerm})
			found.MustDiverge(t)
			t.Logf("%v", found.Divergence)
		})
	}
}
