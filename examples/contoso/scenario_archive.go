package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	inCurrent = 120 // employees in the scenario
	former    = 100 // of them go to the archive,
	inBlobs   = 10  // of them into blobs

	// archiveTime is when the scenario gives up. It takes less than a second, and some seconds more with -chaos.
	archiveTime = 2 * time.Minute
)

// formerEmployees moves former employees out of the current ones' table, with a worker that does it by and by.
func formerEmployees() scenario {
	return scenario{
		title: "Former employees",
		guide: "Eventually consistent transactions pattern",
		shows: []show{
			{"Eventually consistent transactions", "moved while salaries rise", "", "each is in one place, as written last"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			a, err := c.openArchive(ctx)
			if err != nil {
				return err
			}
			return steps(ctx, s, a.load, a.askForMoves, a.move, a.check)
		},
	}
}

// movers are what the program and its worker have in common: repositories, and movers between them.
type movers struct {
	queue   *eventual.Queue
	current *patterns.Repository[Employee] // with its indexes: four rows an employee
	former  *patterns.Repository[Employee]
	blobs   *container.Client

	toTable, toBlobs *archive.Mover[Employee]
}

// newMovers makes movers on the account: in the program, which asks, and in a worker.
func newMovers(queue *eventual.Queue, current, formerTable *tables.Table, blobs *container.Client) (*movers, error) {
	m := &movers{queue: queue, blobs: blobs}
	var err error
	if m.current, _, err = newEmployees(current); err != nil {
		return nil, err
	}
	if m.former, err = newPlain(formerTable); err != nil {
		return nil, err
	}
	if m.toTable, err = archive.New(queue, "former", m.current, archive.ToRepository(m.former, nil), nil); err != nil {
		return nil, err
	}
	m.toBlobs, err = archive.New(queue, "former-blobs", m.current, archive.ToContainer(blobs, blobName), nil)
	return m, err
}

// blobName is made of what never changes.
func blobName(e *Employee) string { return fmt.Sprintf("%s/%06d.json", e.Department, e.ID) }

// newWorker makes a worker of the movers' queue. One that is killed costs its messages a delivery, which is no reason to
// poison them.
func (m *movers) newWorker(o eventual.WorkerOptions) (*eventual.Worker, error) {
	o.MaxDequeues, o.StopTimeout = 20, 5*time.Second
	o.MinPoll, o.MaxPoll = 20*time.Millisecond, 200*time.Millisecond
	o.RetryDelay = func(int) time.Duration { return 0 }
	return eventual.NewWorker(m.queue, nil, &o)
}

// archiveQueue: after a kill, messages wait for that long.
func archiveQueue() *eventual.QueueOptions {
	return &eventual.QueueOptions{VisibilityTimeout: 3 * time.Second}
}

// archiving is one run of the scenario.
type archiving struct {
	*movers
	c     *company
	job   job
	staff []*Employee // as they were written last; the first ones are those who go

	mu      sync.Mutex
	unknown map[int]int // by employee, the salary that may be in the archive in place of the one before
}

func (c *company) openArchive(ctx context.Context) (*archiving, error) {
	current, err := c.table(ctx, "Current")
	if err != nil {
		return nil, err
	}
	formerTable, err := c.table(ctx, "Former")
	if err != nil {
		return nil, err
	}
	blobs, err := c.container(ctx, "former")
	if err != nil {
		return nil, err
	}
	queue, err := c.queue(ctx, "archive", archiveQueue())
	if err != nil {
		return nil, err
	}
	m, err := newMovers(queue, current, formerTable, blobs)
	if err != nil {
		return nil, err
	}
	names := job{Queue: queue.Name(), Current: current.Name(), Former: formerTable.Name(), Blobs: c.containers[len(c.containers)-1]}
	return &archiving{movers: m, c: c, job: names, unknown: map[int]int{}}, nil
}

func (a *archiving) load(ctx context.Context, s *section) error {
	return a.c.exposed(s, "current employees inserted", func() (string, error) {
		for _, e := range a.c.staff[:inCurrent] {
			a.staff = append(a.staff, e.unwritten())
		}
		done, err := a.current.BulkNonAtomic(ctx, all(a.staff, func(e *Employee) *Employee { return e }), nil)
		return fmt.Sprintf("%s, %s rows", counted(len(a.staff), "employee"), grouped(int(done.Rows))), err
	})
}

// askForMoves puts a message for each employee who has left.
func (a *archiving) askForMoves(ctx context.Context, s *section) error {
	return a.c.exposed(s, "moves asked for", func() (string, error) {
		ask := func(m *archive.Mover[Employee]) func(context.Context, *Employee) error { // twice does no harm
			return func(ctx context.Context, e *Employee) error {
				return again(ctx, func() error { return m.Move(ctx, e) })
			}
		}
		err := together(ctx, a.staff[:former-inBlobs], ask(a.toTable))
		if err == nil {
			err = together(ctx, a.staff[former-inBlobs:former], ask(a.toBlobs))
		}
		return fmt.Sprintf("%d to a table, %d to blobs", former-inBlobs, inBlobs), err
	})
}

// move has a worker move them, while their salaries are still changed.
func (a *archiving) move(ctx context.Context, s *section) error {
	return a.c.exposed(s, "moved while salaries rise", func() (string, error) {
		w, err := a.hire(ctx)
		if err != nil {
			return "", err
		}
		raised, err := a.moveAndRaise(ctx, w)
		how, stopErr := w.stop()
		if process, ok := w.(*processWorker); ok {
			a.c.kills += process.killed
		}
		return fmt.Sprintf("%s; %s meanwhile", how, counted(raised, "raise")), errors.Join(err, stopErr)
	})
}

// moveAndRaise raises salaries again and again, until those employees are moved, and waits until no message is left.
func (a *archiving) moveAndRaise(ctx context.Context, w worker) (raises int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, archiveTime, fmt.Errorf("messages are left on queue %s after %v", a.queue.Name(), archiveTime))
	defer cancel()
	var raising sync.WaitGroup
	var raiseErr error
	raising.Go(func() { raises, raiseErr = a.raiseMeanwhile(ctx, everyThird(a.staff[:former])) })
	if err = a.await(ctx, w); err != nil {
		cancel()
	}
	raising.Wait()
	return raises, errors.Join(err, raiseErr)
}

func everyThird(staff []*Employee) []*Employee {
	var some []*Employee
	for i := 0; i < len(staff); i += 3 {
		some = append(some, staff[i])
	}
	return some
}

// raiseMeanwhile raises the employees' salaries in turn, as long as they are among the current ones.
func (a *archiving) raiseMeanwhile(ctx context.Context, staff []*Employee) (raises int, err error) {
	var mu sync.Mutex
	for len(staff) > 0 {
		var here []*Employee
		if err := together(ctx, staff, func(ctx context.Context, e *Employee) error {
			switch err := a.raise(ctx, e); {
			case errors.Is(err, tables.ErrNotFound):
				return nil // moved
			case err != nil:
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			here = append(here, e)
			return nil
		}); err != nil {
			return raises, err
		}
		staff, raises = here, raises+len(here)
		if err := a.pause(ctx); err != nil {
			return raises, err
		}
	}
	return raises, nil
}

// raise sets a salary that nobody else changes, so that it can be repeated when it is unknown whether it was applied. When
// the employee was moved before that could be told, the salary in the archive is the one or the other.
func (a *archiving) raise(ctx context.Context, e *Employee) error {
	salary, unknown := e.Salary+10, false
	err := again(ctx, func() error {
		_, err := a.current.Update(ctx, employeeKey(e.Department, e.ID), func(e *Employee) error {
			e.Salary = salary
			return nil
		})
		unknown = unknown || errors.Is(err, tables.ErrUnknownOutcome)
		return err
	})
	switch {
	case err == nil:
		e.Salary = salary
	case unknown:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.unknown[e.ID] = salary
	}
	return err
}

// pause leaves the service to the others for a moment.
func (a *archiving) pause(ctx context.Context) error {
	a.c.place.pass(20 * time.Millisecond)
	return context.Cause(ctx)
}

// await waits until the queue is empty.
func (a *archiving) await(ctx context.Context, w worker) error {
	for {
		left, err := a.queue.Length(ctx)
		if err != nil {
			return err
		}
		if err := w.progress(left); err != nil || left == 0 {
			return err
		}
		if err := a.pause(ctx); err != nil {
			return err
		}
	}
}

// check: each employee is in one place, as written last.
func (a *archiving) check(ctx context.Context, s *section) error {
	return a.c.act(s, "all three places, read whole", func() (string, error) {
		current, err := collect(a.current.Query().AllowTableScan().All(ctx))
		if err != nil {
			return "", err
		}
		inTable, err := collect(a.former.Query().AllowTableScan().All(ctx))
		if err != nil {
			return "", err
		}
		inContainer, err := a.readBlobs(ctx)
		if err != nil {
			return "", err
		}
		a.resolve(append(inTable, inContainer...))
		for _, place := range []struct {
			name      string
			got, want []*Employee
		}{
			{"the current table", current, a.staff[former:]},
			{"the archive's table", inTable, a.staff[:former-inBlobs]},
			{"the archive's blobs", inContainer, a.staff[former-inBlobs : former]},
		} {
			if err := sameStaff(place.got, place.want); err != nil {
				return "", fmt.Errorf("%s: %w", place.name, err)
			}
		}
		return fmt.Sprintf("%d + %d + %d employees, each in one place and as written last", len(current), len(inTable), len(inContainer)),
			errors.Join(a.checkIndexes(ctx), checkPoison(ctx, a.queue))
	})
}

// resolve looks up in the archive what nobody could tell before.
func (a *archiving) resolve(archived []*Employee) {
	for _, e := range archived {
		if salary, unknown := a.unknown[e.ID]; unknown && e.Salary == salary {
			a.staff[e.ID-1].Salary = salary
		}
	}
}

// checkIndexes: those who went have left no index row behind.
func (a *archiving) checkIndexes(ctx context.Context) error {
	rows, err := collect(a.current.Table().Entities().Query().Select("ID").AllowTableScan().All(ctx))
	if want := 4 * (inCurrent - former); err == nil && len(rows) != want {
		return fmt.Errorf("the current table has %d rows, there should be %d", len(rows), want)
	}
	return err
}

func (a *archiving) readBlobs(ctx context.Context) ([]*Employee, error) {
	var staff []*Employee
	for pager := a.blobs.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, b := range page.Segment.BlobItems {
			e, err := archive.Read[Employee](ctx, a.blobs, *b.Name)
			if err != nil {
				return nil, err
			}
			staff = append(staff, e)
		}
	}
	return staff, nil
}
