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
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// openings is the world of a schedule whose actors insert, overwrite, edit and delete the departments, while their managers
// change.
type openings struct{ scheduleWorld }

func newOpenings(log *harness.Log) *openings {
	o := &openings{*newScheduleWorld(0, log)}
	o.game, o.changes = apart, 4
	return o
}

func (o *openings) stage(t testing.TB, s *storagetest.Service) explore.Stage {
	rng := mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 0))
	o.world = *newWorld(t, s, o.placement)
	o.Network = s.ClientOptions.Transport
	p := assert.Must[*process](t)(o.start(s))
	for id := range 2 {
		assert.Check(t, p.employees.Insert(t.Context(), &employee{Site: "Sales", ID: id + 1, Name: "first"}))
	}
	stage := explore.Stage{}
	for id := range 2 {
		name := []string{"A", "B"}[id]
		stage.Actors = append(stage.Actors, o.actor(rng.Uint64(), o.manage(id+1, name)), o.actor(rng.Uint64(), o.open(id+1, name)))
	}
	for range 2 {
		stage.Workers = append(stage.Workers, o.Worker(rng.Uint64(), harness.Workers{Open: o.openQueue, Concurrency: 2}))
	}
	stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
		time.Sleep(visibility) // what is late has arrived
		found, err := (*state)(nil), o.drain(ctx, s)
		if err == nil {
			found, err = o.read(ctx, s)
		}
		if err == nil {
			o.Log.Add("departments in the end", int64(len(found.departments)))
			err = found.checkCopies()
		}
		return errors.Join(append(errs, err)...)
	}
	return stage
}

// manage makes changes of a manager. In a partition she stays: an insert of hers that arrives late, after others have inserted
// and deleted her, passes over a department that was inserted in between, which the package's comment says.
func (o *openings) manage(id int, name string) func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
	anything := o.change(id, name)
	return func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
		if o.placement != inPartition {
			return anything(ctx, p, rng, n)
		}
		manages := map[bool]string{true: name}[rng.IntN(3) > 0]
		_, err := p.employees.Update(ctx, employeeKey("Sales", id), func(e *employee) error {
			e.Name, e.Email, e.ManagesSite, e.Manages = fmt.Sprintf("e%d.%d", id, n), fmt.Sprintf("e%d.%d", id, n%2), o.site(name), manages
			return nil
		})
		return o.told(err)
	}
}

// open makes changes of a department, which always says who its manager is, and what it likes of him.
func (o *openings) open(id int, name string) func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
	return func(ctx context.Context, p *process, rng *mathrand.Rand, n int) error {
		d := &department{Site: o.site(name), Name: name, Budget: n, ManagerSite: "Sales", ManagerID: id, ManagerName: "?"}
		key := departmentKey(d.Site, d.Name)
		switch rng.IntN(6) {
		case 0:
			return o.told(p.departments.DeleteUnconditional(ctx, key))
		case 1, 2:
			return o.told(p.departments.Insert(ctx, d))
		case 3:
			return o.told(p.departments.Upsert(ctx, d))
		case 4:
			_, err := p.departments.Update(ctx, key, func(d *department) error { d.Budget++; return nil })
			return o.told(err)
		}
		err := harness.ReadAnd(ctx, p.departments, key, func(d *department) error { d.ManagerName = "!"; return nil },
			func(ctx context.Context, d *department) error { return p.departments.Merge(ctx, d, "ManagerName") })
		return o.told(err)
	}
}

// TestScheduleOpenings: writers of managers and of their departments, and two workers, whose calls fail or arrive late, who die,
// and who are held up for longer than messages are hidden.
func TestScheduleOpenings(t *testing.T) {
	log := &harness.Log{}
	explore.Schedules(t, explore.ScheduleCase{Seeds: harness.Seeds(300), Pauses: harness.Pauses(visibility),
		Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
			return newOpenings(log).stage(t, s)
		}})
	t.Log(log)
	log.MustHave(t, harness.Applied, harness.Unknown, harness.Deaths, harness.Late, "departments in the end")
}
