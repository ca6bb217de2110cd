package relationships_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestSchedule: concurrent writers insert, move and delete children of the same parents, one of them spends the parents' budget, and
// processes die, while maintenance runs recount and repair. No number is lost, and none is below zero, at any time that a reader looks.
func TestSchedule(t *testing.T) {
	seeds := 100
	if testing.Short() || race.Enabled {
		seeds = 10
	}
	if race.Enabled {
		seeds = 3
	}
	for _, f := range []form{ownRow, summed, inParent, members, async} {
		t.Run(string(f), func(t *testing.T) {
			log := &harness.Log{}
			explore.Schedules(t, explore.ScheduleCase{Seeds: seeds, Pauses: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond, visibility + 2*time.Second},
				Stage: func(t testing.TB, s *storagetest.Service) explore.Stage { return concurrentStage(t, s, f, log) }})
			t.Log(log)
			log.MustHave(t, "runs of Recount")
		})
	}
}

// concurrentStage are the actors of one schedule.
func concurrentStage(t testing.TB, s *storagetest.Service, f form, log *harness.Log) explore.Stage {
	w := newWorld(t, s, f)
	var stage explore.Stage
	for id := range 3 {
		stage.Actors = append(stage.Actors, w.career(id))
	}
	stage.Actors = append(stage.Actors, w.reader(), harness.Keeper(&harness.Trouble{Log: log}, harness.ScheduleSeed(), 3, w.start, w.jobs()...))
	if f == members || f == async {
		for range 2 {
			stage.Workers = append(stage.Workers, w.worker())
		}
	}
	stage.Check = func(ctx context.Context, s *storagetest.Service, errs []error) error {
		if err := errors.Join(append(errs, w.drain(ctx, s))...); err != nil {
			return err
		}
		_, err := w.check(ctx, s)
		return err
	}
	return stage
}

// jobs are the maintenance runs over the children and their numbers.
func (w *world) jobs() []harness.Job[*process] {
	return append(harness.RepositoryJobs(func(p *process) *patterns.Repository[employee] { return p.employees }, time.Second),
		harness.Job[*process]{Name: "Recount", Run: func(ctx context.Context, p *process) (err error) {
			switch w.form {
			case ownRow:
				_, _, err = p.count.Recount(ctx, "Sales")
			case summed:
				_, _, err = p.summary.Recount(ctx, "Sales", "A")
			case inParent:
				_, _, err = p.parents.Recount(ctx, departmentKey("Sales", "A"))
			default:
				_, _, err = p.members.Recount(ctx, projectKey("P"))
			}
			return err
		}})
}

// career is a process that inserts an employee, moves and deletes, and inserts again. It may die; then another goes on.
func (w *world) career(id int) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		rng := mathrand.New(mathrand.NewPCG(uint64(id), uint64(len(w.table))))
		mortal, faults := s.Faulty(storagetest.Randomly(0.03, uint64(id), storagetest.Once(storagetest.DiesAfter)))
		for _, at := range []*storagetest.Service{mortal, s} {
			p, err := w.start(at)
			if err != nil {
				return err
			}
			for range 3 {
				key := employeeKey("Sales", id)
				e := &employee{Site: "Sales", ID: id, Group: []string{"A", "B", ""}[rng.IntN(3)], Project: []string{"P", "Q", ""}[rng.IntN(3)]}
				if rng.IntN(3) == 0 {
					err = p.employees.DeleteUnconditional(ctx, key)
				} else {
					err = p.employees.Upsert(ctx, e)
				}
				switch {
				case faults.Dead() && at == mortal:
				case err != nil && !errors.Is(err, tables.ErrNotFound) && !harness.OutcomeUnknown(err):
					return err
				}
			}
		}
		return nil
	}
}

// reader looks at the numbers while they change.
func (w *world) reader() explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		p, err := w.start(s)
		for n := 0; n < 5 && err == nil; n++ {
			counted := int64(0)
			switch w.form {
			case ownRow:
				counted, err = p.count.Get(ctx, "Sales")
			case summed:
				var a relationships.Aggregate
				a, err = p.summary.Get(ctx, "Sales", "A")
				if counted = a.Count; err == nil && a.Count == 1 && (a.Sum != a.Min || a.Min != a.Max) {
					err = fmt.Errorf("one employee has %+v", a)
				}
			case inParent:
				var d *department
				if d, err = p.departments.Get(ctx, departmentKey("Sales", "A")); err == nil {
					counted = int64(d.EmployeeCount)
				}
			default:
				counted, err = p.members.Count(ctx, projectKey("P"))
			}
			if counted < 0 || counted > 3 {
				return fmt.Errorf("%d of 3 are counted", counted)
			}
		}
		return err
	}
}

// worker handles intents until it is stopped.
func (w *world) worker() explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		p, err := w.start(s)
		if err != nil {
			return err
		}
		worker, err := eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{MaxDequeues: 1000})
		if err != nil {
			return err
		}
		return worker.Run(ctx)
	}
}
