package heterogeneous_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// attempts counts what callers were told of their changes.
type attempts struct {
	mu          sync.Mutex
	least, most int
}

func (a *attempts) add(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.least, a.most = a.least+1, a.most+1
	case harness.OutcomeUnknown(err):
		a.most++
	}
}

// swept is an operation on an employee of version 1, or of the current one, and what it may leave of visits.
func swept(floor int, version1 bool, more func() []patterns.Pattern[employee], operate func(ctx context.Context, p *program) error, counts bool) storagetest.SweepCase {
	return storagetest.SweepCase{Floor: floor, World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		name, p := newTable(t, s, more()...)
		if version1 {
			v1 := assert.Must[*program](t)(startOld(s, name)).v1
			assert.Check(t, v1.Insert(t.Context(), old(1)))
			if !counts { // others are upgraded with it, some in its change set
				for id := range 2 {
					assert.Check(t, v1.Insert(t.Context(), old(id+2)))
				}
				for _, department := range []string{"Legal", "Marketing"} {
					e := old(1)
					e.Department = department
					assert.Check(t, v1.Insert(t.Context(), e))
				}
			}
		} else {
			assert.Check(t, p.employees.Insert(t.Context(), current(1)))
		}
		var said attempts
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				p, err := start(s, name, more()...)
				if err == nil {
					err = operate(ctx, p)
				}
				said.add(err)
				return err
			},
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				p, err := start(s, name, more()...)
				if err != nil {
					return err
				}
				e, err := p.employees.Get(ctx, keyOf("Sales", 1))
				if err != nil {
					return err
				}
				wanted := *current(1)
				if counts {
					wanted.Visits = e.Visits
					if n := e.Visits - 1; n < said.least || n > said.most {
						return fmt.Errorf("%d visits, of %d to %d", n, said.least, said.most)
					}
				}
				if text(e) != text(&wanted) {
					return fmt.Errorf("there is %s", text(e))
				}
				bag, err := p.table.Entities().Get(ctx, e.Key())
				if err != nil {
					return err
				}
				if version, _ := bag.Get("EntityType").Text(); version == "Employee@1" {
					if said.least > 0 {
						return errors.New("it is still of version 1")
					}
					return nil // the old program knows of no index
				}
				if !counts { // the next upgrade finds what an incomplete one has left
					left, err := p.employee.Upgrade(ctx, nil)
					if err != nil || left.Written != left.Read || said.least > 0 && left.Read > 0 {
						return fmt.Errorf("%d upgrades were complete, and another one finds %v, %v", said.least, left, err)
					}
				}
				return harness.Clean(ctx, p.employees.Verify, nil)
			},
		}
	}}
}

// TestSweep breaks Modify and Upgrade at every storage call, in every way.
func TestSweep(t *testing.T) {
	none := func() []patterns.Pattern[employee] { return nil }
	indexed := func() []patterns.Pattern[employee] { return []patterns.Pattern[employee]{byVisits()} }
	modify := func(ctx context.Context, p *program) error { return p.registry.Modify(ctx, keyOf("Sales", 1), visit) }
	upgrade := func(ctx context.Context, p *program) error { _, err := p.employee.Upgrade(ctx, nil); return err }
	for name, c := range map[string]storagetest.SweepCase{
		"Modify/plain":   swept(60, false, none, modify, true),
		"Modify/indexed": swept(152, false, indexed, modify, true),
		"Modify/old":     swept(184, true, indexed, modify, true),
		"Upgrade":        swept(92, true, none, upgrade, false),
		"Upgrade/index":  swept(152, true, indexed, upgrade, false),
	} {
		t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
	}
}

// TestSchedule: two who modify without knowing, an old program, a new one and an upgrade, all of one entity. No visit is
// lost, and in the end it is of the current version unless the old program came first to a row that was not upgraded yet.
func TestSchedule(t *testing.T) {
	seeds := 300
	if testing.Short() || race.Enabled {
		seeds = 40
	}
	explore.Schedules(t, explore.ScheduleCase{Seeds: seeds, Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
		name, _ := newTable(t, s)
		assert.Check(t, assert.Must[*program](t)(startOld(s, name)).v1.Insert(t.Context(), old(1)))
		key := keyOf("Sales", 1)
		const each = 3
		var mu sync.Mutex
		visits := 1
		counted := func(err error) error {
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				visits++
			}
			return err
		}
		actor := func(do func(ctx context.Context, p *program) error) explore.Actor {
			return func(ctx context.Context, s *storagetest.Service) error {
				p, err := start(s, name)
				for n := 0; err == nil && n < each; n++ {
					if err = counted(do(ctx, p)); errors.Is(err, tables.ErrConflict) {
						err = nil
					}
				}
				return err
			}
		}
		modify := func(ctx context.Context, p *program) error { return p.registry.Modify(ctx, key, visit) }
		return explore.Stage{
			Actors: []explore.Actor{actor(modify), actor(modify),
				actor(func(ctx context.Context, p *program) error {
					_, err := p.employees.Update(ctx, key, func(e *employee) error { e.Visits++; return nil })
					return err
				}),
				func(ctx context.Context, s *storagetest.Service) error {
					p, err := startOld(s, name)
					if err == nil {
						_, err = p.v1.Update(ctx, key, func(e *employeeV1) error { e.Visits++; return nil })
					}
					if errors.Is(err, tables.ErrGarbled) {
						return nil // it is of a later version by now
					}
					return counted(err)
				},
				func(ctx context.Context, s *storagetest.Service) error {
					p, err := start(s, name)
					if err == nil {
						_, err = p.employee.Upgrade(ctx, nil)
					}
					return err
				}},
			Check: func(ctx context.Context, s *storagetest.Service, errs []error) error {
				p, err := start(s, name)
				if err := errors.Join(append(errs, err)...); err != nil {
					return err
				}
				e, err := p.employees.Get(ctx, key)
				if err != nil {
					return err
				}
				want := *current(1)
				if want.Visits = visits; text(e) != text(&want) {
					return fmt.Errorf("there is %s, want %s", text(e), text(&want))
				}
				bag, err := p.table.Entities().Get(ctx, key)
				if err != nil {
					return err
				}
				if version, _ := bag.Get("EntityType").Text(); version != "Employee@3" {
					return fmt.Errorf("it is stored as %s", version)
				}
				return nil
			},
		}
	}})
}
