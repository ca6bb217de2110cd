package relationships_test

import (
	"context"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// jones is in group A and project P, moved in the others.
func jones() *employee {
	return &employee{Site: "Sales", Group: "A", ID: 223, Name: "Jones", Project: "P"}
}

func moved() *employee {
	e := jones()
	e.Group, e.Project = "B", "Q"
	return e
}

func textOf(e *employee) string {
	if e == nil {
		return ""
	}
	return e.Group + e.Project
}

// swept is an operation on Jones, who is there before where states begins with her, beside another employee.
func swept(f form, before *employee, states []string, operate func(ctx context.Context, p *process) error) storagetest.SweepCase {
	return storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := newWorld(t, s, f)
		p := assert.Must[*process](t)(w.start(s))
		there := []*employee{{Site: "Sales", Group: "A", ID: 1, Project: "P"}}
		if before != nil {
			there = append(there, before)
		}
		for _, e := range there {
			copied := *e
			assert.Check(t, p.employees.Insert(t.Context(), &copied))
		}
		if f == async {
			assert.Check(t, drainNow(t.Context(), p.queue))
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
				found, err := w.check(ctx, s)
				if err != nil {
					return err
				}
				return said.Fits(textOf(found[employeeKey("Sales", 223)]), states)
			},
		}
	}}
}

// TestSweep breaks every change of a child at every storage call, in every way, in all forms.
func TestSweep(t *testing.T) {
	floors := map[form]map[string]int{
		ownRow: {"Insert": 88, "Move": 60, "Delete": 120}, summed: {"Insert": 88, "Move": 216, "Delete": 152}, inParent: {"Insert": 88, "Move": 152, "Delete": 120},
		members: {"Insert": 240, "Move": 424, "Delete": 272}, async: {"Insert": 88, "Move": 120, "Delete": 120},
	}
	for _, f := range []form{ownRow, summed, inParent, members, async} {
		for name, c := range map[string]storagetest.SweepCase{
			"Insert": swept(f, nil, []string{"", textOf(jones())}, func(ctx context.Context, p *process) error {
				return p.employees.Insert(ctx, jones())
			}),
			"Move": swept(f, jones(), []string{textOf(jones()), textOf(moved())}, func(ctx context.Context, p *process) error {
				_, err := p.employees.Update(ctx, employeeKey("Sales", 223), func(e *employee) error {
					e.Group, e.Project = "B", "Q"
					return nil
				})
				return err
			}),
			"Delete": swept(f, jones(), []string{textOf(jones()), ""}, func(ctx context.Context, p *process) error {
				return p.employees.DeleteUnconditional(ctx, employeeKey("Sales", 223))
			}),
		} {
			if (f == members || f == async) && (name != "Insert" && testing.Short() || race.Enabled) {
				continue // the longest ones; a whole run has them
			}
			c.Floor, c.Every = floors[f][name], harness.SweepEvery()
			t.Run(string(f)+"/"+name, func(t *testing.T) { storagetest.Sweep(t, c) })
		}
	}
}

// TestSweepRecount breaks the repair of numbers that a program without them has left wrong.
func TestSweepRecount(t *testing.T) {
	for _, f := range []form{ownRow, summed, inParent} {
		t.Run(string(f), func(t *testing.T) {
			storagetest.Sweep(t, storagetest.SweepCase{Floor: 92, Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				w := newWorld(t, s, f)
				p := assert.Must[*process](t)(w.start(s))
				assert.Check(t, p.employees.Insert(t.Context(), jones()))
				assert.Check(t, p.plain.Insert(t.Context(), &employee{Site: "Sales", Group: "A", ID: 2}))
				return storagetest.World{
					Operate: func(ctx context.Context, s *storagetest.Service) error {
						p, err := w.start(s)
						if err != nil {
							return err
						}
						return recount(ctx, p)
					},
					Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
						p, err := w.start(s)
						if err != nil {
							return err
						}
						if !end.Succeeded() {
							err = recount(ctx, p) // another run of it repairs what is left
						}
						if err == nil {
							_, err = w.check(ctx, s)
						}
						return err
					},
				}
			}})
		})
	}
}

func recount(ctx context.Context, p *process) (err error) {
	switch {
	case p.count != nil:
		_, _, err = p.count.Recount(ctx, "Sales")
	case p.summary != nil:
		_, _, err = p.summary.Recount(ctx, "Sales", "A")
	default:
		_, _, err = p.parents.Recount(ctx, tables.Key{Partition: "Sales", Row: "dept_A"})
	}
	return err
}
