package denormalization_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// swept is an operation on Jones, who manages department A before it, or is not there.
func swept(p placement, before *employee, states []string, operate func(ctx context.Context, p *process) error) storagetest.SweepCase {
	return storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := newWorld(t, s, p)
		own := assert.Must[*process](t)(w.start(s))
		for _, name := range []string{"A", "B"} {
			assert.Check(t, own.departments.Insert(t.Context(), &department{Site: "Sales", Name: name, Budget: 5}))
		}
		if before != nil {
			copied := *before
			assert.Check(t, own.employees.Insert(t.Context(), &copied), drainNow(t.Context(), own.queue))
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
				if err := found.checkCopies(); err != nil {
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

func (e *employee) key() tables.Key { return employeeKey(e.Site, e.ID) }

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
		cases := map[string]storagetest.SweepCase{
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
		}
		maps.Copy(cases, holderSweeps(p))
		for name, c := range cases {
			name = string(p) + "/" + name
			c.Floor, c.Every = sweepFloors()[name], harness.SweepEvery()
			t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
		}
	}
}

// sweptHolder is an operation on department C, which is not there before it; Jones manages A, and Kwok B.
func sweptHolder(p placement, states []string, operate func(ctx context.Context, p *process) error) storagetest.SweepCase {
	return storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := newWorld(t, s, p)
		own := assert.Must[*process](t)(w.start(s))
		assert.Check(t, own.departments.Insert(t.Context(), &department{Site: "Sales", Name: "A", Budget: 5}))
		june, ken := jones(), kwok()
		ken.ManagesSite, ken.Manages = "Sales", "B"
		assert.Check(t, own.employees.Insert(t.Context(), june), own.employees.Insert(t.Context(), ken), drainNow(t.Context(), own.queue))
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
				state := ""
				for _, name := range []string{"A", "B"} {
					if d := found.departments[departmentKey("Sales", name)]; d != nil {
						state += fmt.Sprintf("%s %d ", name, d.Budget)
					}
				}
				return errors.Join(found.checkCopies(), said.Fits(state, states))
			},
		}
	}}
}

// holderSweeps are changes of holders that need a copy: one that is inserted after its source, and one whose copy its writer
// has overwritten.
func holderSweeps(p placement) map[string]storagetest.SweepCase {
	return map[string]storagetest.SweepCase{
		"HolderInsert": sweptHolder(p, []string{"A 5 ", "A 5 B 7 "}, func(ctx context.Context, p *process) error {
			return p.departments.Insert(ctx, &department{Site: "Sales", Name: "B", Budget: 7, ManagerSite: "Sales", ManagerID: kwok().ID})
		}),
		"HolderUpsert": sweptHolder(p, []string{"A 5 ", "A 6 "}, func(ctx context.Context, p *process) error {
			return p.departments.Upsert(ctx, &department{Site: "Sales", Name: "A", Budget: 6, ManagerName: "?"})
		}),
	}
}

// sweepFloors are the numbers of points.
func sweepFloors() map[string]int {
	return map[string]int{
		"in-partition/Insert": 88, "in-partition/Update": 152, "in-partition/Upsert": 152, "in-partition/Delete": 120,
		"anywhere/Insert": 208, "anywhere/Update": 272, "anywhere/Upsert": 272, "anywhere/Delete": 240,
		"elsewhere/Insert": 208, "elsewhere/Update": 272, "elsewhere/Upsert": 272, "elsewhere/Delete": 240,
		"async/Insert": 88, "async/Update": 120, "async/Upsert": 120, "async/Delete": 120,
		"nested/Insert": 264, "nested/Update": 384, "nested/Upsert": 384, "nested/Delete": 296,
		"in-partition/HolderInsert": 88, "in-partition/HolderUpsert": 120, "anywhere/HolderInsert": 212, "anywhere/HolderUpsert": 244,
		"elsewhere/HolderInsert": 212, "elsewhere/HolderUpsert": 244, "async/HolderInsert": 148, "async/HolderUpsert": 180,
		"nested/HolderInsert": 268, "nested/HolderUpsert": 300,
	}
}

// TestSweepFanOut breaks a change of an office with five members.
func TestSweepFanOut(t *testing.T) {
	storagetest.Sweep(t, storagetest.SweepCase{Floor: 240, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := newOffices(t, s, 5)
		own := assert.Must[*officeProcess](t)(w.start(s))
		assert.Check(t, own.offices.Insert(t.Context(), &office{Code: "L", City: "London"}))
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
				cities, err := w.checkCopies(ctx, s)
				if err != nil {
					return err
				}
				return said.Fits(fmt.Sprint(cities), []string{"map[London:5]", "map[Leeds:5]"})
			},
		}
	}})
}
