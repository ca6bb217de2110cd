package denormalization_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// game is what the writers of a schedule do.
type game int

const (
	apart     game = iota // each employee has a department of his own, takes it up, changes and leaves
	handover              // two employees take over one department from one another, in both orders
	contested             // both take what they like
)

// scheduleWorld is the world of one schedule.
type scheduleWorld struct {
	world
	harness.Trouble
	game    game
	changes int // of each writer
	budgets map[string]*harness.Attempts
}

// unheld are departments without the manager who names them; there are some in contention.
const unheld = "departments without the manager who names them"

// site is where a department is: with New, one is in its managers' partition and one is not.
func (r *scheduleWorld) site(name string) string {
	if name == "B" && r.placement != inPartition {
		return "Marketing"
	}
	return "Sales"
}

func newScheduleWorld(waive lease.Rules, log *harness.Log) *scheduleWorld {
	rng := mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 1))
	r := &scheduleWorld{game: game(rng.IntN(3)), changes: 3}
	trouble := []float64{0, 0.05, 0.15}[rng.IntN(3)]
	r.placement = placements()[rng.IntN(len(placements()))]
	r.Trouble = harness.Trouble{Faults: trouble, Deaths: trouble / 5, Visibility: visibility, Waive: waive, Log: log}
	return r
}

// stage makes the world and its actors.
func (r *scheduleWorld) stage(t testing.TB, s *storagetest.Service) explore.Stage {
	rng := mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 0))
	r.world = *newWorld(t, s, r.placement)
	r.Network, r.budgets = s.ClientOptions.Transport, map[string]*harness.Attempts{}
	p := assert.Must[*process](t)(r.start(s))
	for i, name := range []string{"A", "B"} {
		r.budgets[name] = &harness.Attempts{}
		assert.Check(t, p.departments.Insert(t.Context(), &department{Site: r.site(name), Name: name}))
		assert.Check(t, p.employees.Insert(t.Context(), &employee{Site: "Sales", ID: i + 1, Name: "first"}))
	}
	seeds := []uint64{rng.Uint64(), rng.Uint64(), rng.Uint64()}
	stage := explore.Stage{Actors: []explore.Actor{r.actor(seeds[0], r.spend)}}
	switch r.game {
	case apart:
		stage.Actors = append(stage.Actors, r.actor(seeds[1], r.change(1, "A")), r.actor(seeds[2], r.change(2, "B")))
	case handover:
		stage.Actors = append(stage.Actors, r.actor(seeds[1], r.handOver()))
	case contested:
		stage.Actors = append(stage.Actors, r.actor(seeds[1], r.change(1, "A", "B")), r.actor(seeds[2], r.change(2, "A", "B")))
	}
	for range 2 {
		stage.Workers = append(stage.Workers, r.Worker(rng.Uint64(), harness.Workers{Open: r.openQueue, Concurrency: 2}))
	}
	stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
		return errors.Join(append(errs, r.check(ctx, s))...)
	}
	return stage
}

// actor does a number of changes.
func (r *scheduleWorld) actor(seed uint64, do func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error) explore.Actor {
	rng, done := mathrand.New(mathrand.NewPCG(seed, 0)), 0
	return r.Actor(seed, func(ctx context.Context, s *storagetest.Service, dead func() bool) (bool, error) {
		p, err := r.start(s)
		if err != nil {
			return false, err
		}
		for done < r.changes && !dead() {
			if err := do(ctx, p, rng, done); err == nil || r.game != handover {
				done++ // a handover goes on when a step is surely done
			}
		}
		return done == r.changes, nil
	})
}

func (r *scheduleWorld) told(err error) error {
	r.Log.Told(err)
	return err
}

// spend changes the departments' budgets.
func (r *scheduleWorld) spend(ctx context.Context, p *process, _ *mathrand.Rand, n int) error {
	name := []string{"A", "B"}[n%2]
	_, err := p.departments.Update(ctx, departmentKey(r.site(name), name), func(d *department) error { d.Budget++; return nil })
	r.budgets[name].Add(err)
	return r.told(err)
}

// change makes a change of one employee, who may manage some of the departments.
func (r *scheduleWorld) change(id int, names ...string) func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
	return func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
		e := &employee{Site: "Sales", ID: id, Name: fmt.Sprintf("e%d.%d", id, n), Email: fmt.Sprintf("e%d.%d", id, n%2)}
		if i := rng.IntN(len(names) + 1); i < len(names) {
			e.ManagesSite, e.Manages = r.site(names[i]), names[i]
		}
		switch rng.IntN(5) {
		case 0:
			return r.told(p.employees.DeleteUnconditional(ctx, e.key()))
		case 1:
			return r.told(p.employees.Upsert(ctx, e))
		case 2:
			return r.told(p.employees.Insert(ctx, e))
		default:
			_, err := p.employees.Update(ctx, e.key(), func(old *employee) error {
				old.Name, old.Email, old.ManagesSite, old.Manages = e.Name, e.Email, e.ManagesSite, e.Manages
				return nil
			})
			return r.told(err)
		}
	}
}

// handOver has one employee start and the other one stop managing department B, in either order. Each step is repeated
// until it is surely done.
func (r *scheduleWorld) handOver() func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
	step, newFirst, inited := 0, false, false
	return func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
		if !inited {
			newFirst, inited = rng.IntN(2) == 0, true
		}
		for ; step < 2; step++ {
			starts := (step == 0) == newFirst
			id, name := 1+n%2, "B"
			if !starts {
				id, name = 2-n%2, ""
			}
			_, err := p.employees.Update(ctx, employeeKey("Sales", id), func(e *employee) error {
				e.Name, e.ManagesSite, e.Manages = fmt.Sprintf("e%d.%d", id, n), r.site("B"), name
				return nil
			})
			if r.told(err) != nil {
				return err
			}
		}
		step, inited = 0, false
		return nil
	}
}

// check lets workers carry out what is left, and holds the departments against the employees.
func (r *scheduleWorld) check(ctx context.Context, s *storagetest.Service) error {
	time.Sleep(visibility) // what is late has arrived
	if err := r.drain(ctx, s); err != nil {
		return err
	}
	found, err := r.read(ctx, s)
	if err != nil {
		return err
	}
	for name, said := range r.budgets {
		if n := found.departments[departmentKey(r.site(name), name)].Budget; n < said.Least || n > said.Most {
			return fmt.Errorf("department %s has a budget of %d after %d to %d changes", name, n, said.Least, said.Most)
		}
	}
	if r.game != contested {
		return found.checkCopies()
	}
	return r.checkContested(ctx, s, found)
}

// checkContested: a department has the details, as they are, of one who names it. It may have none when another one who did has
// stopped; then it has those of the next who is written.
func (r *scheduleWorld) checkContested(ctx context.Context, s *storagetest.Service, found *state) error {
	for range 2 {
		alone := int64(0)
		for key, d := range found.departments {
			e := found.employees[employeeKey(d.ManagerSite, d.ManagerID)]
			if d.ManagerID == 0 {
				if d.ManagerEmail != "" || d.ManagerName != "" {
					return fmt.Errorf("department %s is half cleared", d.Name)
				}
				for _, e := range found.employees {
					if departmentKey(e.ManagesSite, e.Manages) == key {
						alone++
					}
				}
				continue
			}
			if e == nil || departmentKey(e.ManagesSite, e.Manages) != key || e.Name != d.ManagerName || e.Email != d.ManagerEmail {
				return fmt.Errorf("department %s has %d %q %q, and the employee is %+v", d.Name, d.ManagerID, d.ManagerName, d.ManagerEmail, e)
			}
		}
		r.Log.Add(unheld, alone)
		if alone == 0 {
			return nil
		}
		p, err := r.start(s)
		if err != nil {
			return err
		}
		for _, e := range found.employees {
			if err := p.employees.Upsert(ctx, &employee{Site: e.Site, ID: e.ID, Name: e.Name, Email: e.Email, ManagesSite: e.ManagesSite, Manages: e.Manages}); err != nil {
				return err
			}
		}
		if err := r.drain(ctx, s); err != nil {
			return err
		}
		if found, err = r.read(ctx, s); err != nil {
			return err
		}
	}
	return errors.New("writing the employees again gives them no department")
}
