package denormalization_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// swept is an operation on Jones, who manages department A before it, or is not there.
func swept(p placement, before *employee, states []string, operate func(ctx context.Context, p *process) error) storagetest.SweepCase {
	return storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := newWorld(t, s, p)
		own := must[*process](t)(w.start(s))
		for _, name := range []string{"A", "B"} {
			check(t, own.departments.Insert(t.Context(), &department{Site: "Sales", Name: name, Budget: 5}))
		}
		if before != nil {
			copied := *before
			check(t, own.employees.Insert(t.Context(), &copied), drainNow(t.Context(), own.queue))
		}
		var said harness.Attempts
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.start(s)
				if err == nil {
					err = operate(ctx, p)
				}
				said.Add(err)
				return err
			},
			Recover: w.drain,
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				found, err := w.read(ctx, s)
				if err != nil {
					return err
				}
				if err := found.agree(); err != nil {
					return err
				}
				for _, d := range found.departments {
					if d.Budget != 5 {
						return fmt.Errorf("department %s has a budget of %d", d.Name, d.Budget)
					}
				}
				return said.Fits(textOf(found.employees[jones().key()]), states)
			},
		}
	}}
}

func (e *employee) key() patterns.Key { return employeeKey(e.Site, e.ID) }

func textOf(e *employee) string {
	if e == nil {
		return ""
	}
	return e.Email + " " + e.Manages
}

// moved is Jones after the swept change: details and department are others.
func moved() *employee {
	e := jones()
	e.Email, e.Manages = "j@contoso.com", "B"
	return e
}

// TestSweep breaks every change of a manager at every storage call, in every way, wherever the departments are.
func TestSweep(t *testing.T) {
	old, now := textOf(jones()), textOf(moved())
	for _, p := range placements() {
		for name, c := range map[string]storagetest.SweepCase{
			"Insert": swept(p, nil, []string{"", old}, func(ctx context.Context, p *process) error {
				return p.employees.Insert(ctx, jones())
			}),
			"Update": swept(p, jones(), []string{old, now}, func(ctx context.Context, p *process) error {
				_, err := p.employees.Update(ctx, jones().key(), func(e *employee) error {
					e.Email, e.Manages = moved().Email, moved().Manages
					return nil
				})
				return err
			}),
			"Upsert": swept(p, jones(), []string{old, now}, func(ctx context.Context, p *process) error {
				return p.employees.Upsert(ctx, moved())
			}),
			"Delete": swept(p, jones(), []string{old, ""}, func(ctx context.Context, p *process) error {
				return p.employees.DeleteUnconditional(ctx, jones().key())
			}),
			"Refresh": sweptRefresh(p),
		} {
			name = string(p) + "/" + name
			c.Floor, c.Every = sweepFloors()[name], harness.SweepEvery()
			t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
		}
	}
}

// sweptRefresh is the refresh of a department that somebody wrote with other details.
func sweptRefresh(p placement) storagetest.SweepCase {
	return storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := newWorld(t, s, p)
		own := must[*process](t)(w.start(s))
		check(t, own.employees.Insert(t.Context(), jones()), drainNow(t.Context(), own.queue))
		check(t, own.departments.Insert(t.Context(), &department{Site: "Sales", Name: "A", ManagerSite: "Sales", ManagerID: jones().ID, ManagerName: "?"}))
		var said harness.Attempts
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.start(s)
				if err == nil {
					err = p.details.Refresh(ctx, departmentKey("Sales", "A"))
				}
				said.Add(err)
				return err
			},
			Recover: w.drain,
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				found, err := w.read(ctx, s)
				if err != nil || found.departments[departmentKey("Sales", "A")].ManagerName == "?" && said.Least == 0 {
					return err
				}
				return found.agree()
			},
		}
	}}
}

// sweepFloors are the numbers of points.
func sweepFloors() map[string]int {
	return map[string]int{
		"in-partition/Insert": 64, "in-partition/Update": 128, "in-partition/Upsert": 128, "in-partition/Delete": 96, "in-partition/Refresh": 128,
		"anywhere/Insert": 64, "anywhere/Update": 128, "anywhere/Upsert": 128, "anywhere/Delete": 96, "anywhere/Refresh": 128,
		"elsewhere/Insert": 184, "elsewhere/Update": 280, "elsewhere/Upsert": 280, "elsewhere/Delete": 216, "elsewhere/Refresh": 248,
		"async/Insert": 88, "async/Update": 120, "async/Upsert": 120, "async/Delete": 120, "async/Refresh": 152,
		"nested/Insert": 308, "nested/Update": 528, "nested/Upsert": 528, "nested/Delete": 340, "nested/Refresh": 372,
	}
}

// TestSweepFanOut breaks a change of an office with five members.
func TestSweepFanOut(t *testing.T) {
	storagetest.Sweep(t, storagetest.SweepCase{Floor: 484, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := newOffices(t, s, 5)
		own := must[*officeProcess](t)(w.start(s))
		check(t, own.offices.Insert(t.Context(), &office{Code: "L", City: "London"}))
		var said harness.Attempts
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.start(s)
				if err == nil {
					err = p.offices.Upsert(ctx, &office{Code: "L", City: "Leeds"})
				}
				said.Add(err)
				return err
			},
			Recover: w.drain,
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				cities, err := w.agree(ctx, s)
				if err != nil {
					return err
				}
				return said.Fits(fmt.Sprint(cities), []string{"map[London:5]", "map[Leeds:5]"})
			},
		}
	}})
}
