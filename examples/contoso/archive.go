package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	inCurrent = 120 // employees in the scenario
	former    = 100 // of them go to the archive,
	inBlobs   = 10  // of them into blobs

	// archiveTime is when the scenario gives up. It takes about a second, and some seconds more with -chaos.
	archiveTime = 2 * time.Minute
)

// formerEmployees moves former employees out of the table of the current ones. A worker does it in the background, while their
// salaries are still changed.
func formerEmployees(s *scene) func(context.Context) {
	key := newKey()
	queue := must(eventual.OpenQueue(s.store, "archive", archiveQueue(key)))
	blobs := blobstorage.Open(s.store, "former")
	a := &archiving{scene: s, key: key, movers: newMovers(queue, s.store.Table("Current"), s.store.Table("Former"), blobs)}
	return func(ctx context.Context) {
		a.staff = allFresh(s.staff[:inCurrent])
		s.write("current employees inserted", "120 employees, 480 rows", func() { load(ctx, a.current, a.staff) })
		s.write("moves asked for", "90 to a table, 10 to blobs", func() {
			move := func(m *archive.Mover[Employee]) func(context.Context, *Employee) error { // twice does no harm
				return func(ctx context.Context, e *Employee) error {
					return again(ctx, func() error { return m.Move(ctx, e) })
				}
			}
			together(ctx, a.staff[:former-inBlobs], move(a.toTable))
			together(ctx, a.staff[former-inBlobs:former], move(a.toBlobs))
		})
		var did string
		s.write("moved while salaries rise", "", func() { did = a.moveAndRaise(ctx) }).says("%s", did)
		a.checkMoved(ctx)
		s.checkPoison(ctx, queue)
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
func newMovers(queue *eventual.Queue, current, formerTable *tables.Table, blobs *container.Client) *movers {
	m := &movers{queue: queue, current: newStaffTable(current).employees, former: newPlain(formerTable), blobs: blobs}
	blobName := func(e *Employee) string { return fmt.Sprintf("%s/%06d.json", e.Department, e.ID) } // of what never changes
	m.toTable = must(archive.New(queue, "former", m.current, archive.ToRepository(m.former, nil), nil))
	m.toBlobs = must(archive.New(queue, "former-blobs", m.current, archive.ToContainer(blobs, blobName), nil))
	return m
}

// newWorker makes a worker of the queue. A worker that is killed costs its messages a delivery, which is no reason to poison them.
func (m *movers) newWorker(concurrency int) *eventual.Worker {
	return must(eventual.NewWorker(m.queue, nil, &eventual.WorkerOptions{Concurrency: concurrency, MaxDequeues: 20, StopTimeout: 5 * time.Second,
		MinPoll: 20 * time.Millisecond, MaxPoll: 200 * time.Millisecond, RetryDelay: func(int) time.Duration { return 0 }}))
}

// archiveQueue has workers move employees only for messages that are signed with the key. The messages of a killed worker wait for
// VisibilityTimeout.
func archiveQueue(key []byte) *eventual.QueueOptions {
	return &eventual.QueueOptions{VisibilityTimeout: chaosVisibility, SigningKeys: must(eventual.NewSigningKeys(key))}
}

// archiving is one run of the scenario.
type archiving struct {
	*scene
	*movers
	key    []byte      // that signs the messages
	staff  []*Employee // as they were written last; the first ones are those who go
	raised []*raised
}

// raised is an employee whose salary rises while she is moved.
type raised struct {
	*Employee
	moved bool
	maybe int // after a raise with unknown outcome: the salary that may be in the archive instead
}

// moveAndRaise raises salaries until those employees are moved, and waits until no message is left. The worker is in this program, or with
// -chaos in another process.
func (a *archiving) moveAndRaise(ctx context.Context) string {
	var w worker
	if a.options.chaos {
		w = startProcess(a.company, job{Queue: a.queue.Name(), Current: a.current.Table().Name(), Former: a.former.Table().Name(),
			Blobs: path.Base(a.blobs.URL()), Key: a.key, Seed: a.options.seed, Proxy: a.place.proxy})
	} else {
		w = startLocal(ctx, a.newWorker(0))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, archiveTime, fmt.Errorf("messages are left on queue %s after %v", a.queue.Name(), archiveTime))
	defer cancel()
	group, running := errgroup.WithContext(ctx)
	raises := 0
	group.Go(func() error { return attempt("wait for the worker", func() { a.await(running, w) }) })
	group.Go(func() error { return attempt("raise salaries", func() { raises = a.raiseMeanwhile(running) }) })
	err := errors.Join(group.Wait(), context.Cause(ctx))
	did, stopErr := w.stop()
	try(errors.Join(err, stopErr))
	return fmt.Sprintf("%s; %s meanwhile", did, counted(raises, "raise"))
}

// await waits until the queue is empty.
func (a *archiving) await(ctx context.Context, w worker) {
	for {
		left := must(a.queue.Length(ctx))
		try(w.progress(left))
		if left == 0 {
			return
		}
		a.place.pass(20 * time.Millisecond)
		try(context.Cause(ctx))
	}
}

// raiseMeanwhile raises the salaries of every third employee in turn, for as long as they are among the current ones.
func (a *archiving) raiseMeanwhile(ctx context.Context) (raises int) {
	for i := 0; i < former; i += 3 {
		a.raised = append(a.raised, &raised{Employee: a.staff[i]})
	}
	for here := slices.Clone(a.raised); len(here) > 0; raises += len(here) {
		together(ctx, here, a.raise)
		here = slices.DeleteFunc(here, func(e *raised) bool { return e.moved })
		a.place.pass(20 * time.Millisecond)
	}
	return raises
}

// raise sets a salary that no other writer changes, so it can repeat a raise whose outcome is unknown. If the employee is moved before the
// outcome is known, the archive has either salary.
func (a *archiving) raise(ctx context.Context, e *raised) error {
	salary, unknown := e.Salary+10, false
	err := again(ctx, func() error {
		_, err := a.current.Update(ctx, e.key(), func(e *Employee) error {
			e.Salary = salary
			return nil
		})
		unknown = unknown || errors.Is(err, tables.ErrUnknownOutcome)
		return err
	})
	if err == nil {
		e.Salary = salary
		return nil
	}
	if unknown {
		e.maybe = salary
	}
	if e.moved = errors.Is(err, tables.ErrNotFound); e.moved {
		return nil
	}
	return err
}

// checkMoved ends the scenario unless each employee is in one place, as written last, and those who went have left no row of an index behind.
func (a *archiving) checkMoved(ctx context.Context) {
	inTable := collect(a.former.Query().AllowTableScan().All(ctx))
	var inContainer []*Employee
	for pager := a.blobs.NewListBlobsFlatPager(nil); pager.More(); {
		for _, b := range must(pager.NextPage(ctx)).Segment.BlobItems {
			inContainer = append(inContainer, must(archive.Read[Employee](ctx, a.blobs, *b.Name)))
		}
	}
	stored := map[int]int{} // salaries by id
	for _, e := range slices.Concat(inTable, inContainer) {
		stored[e.ID] = e.Salary
	}
	for _, e := range a.raised {
		if e.maybe != 0 && e.maybe == stored[e.ID] {
			e.Salary = e.maybe
		}
	}
	try(sameStaff(collect(a.current.Query().AllowTableScan().All(ctx)), a.staff[former:]))
	try(sameStaff(inTable, a.staff[:former-inBlobs]))
	try(sameStaff(inContainer, a.staff[former-inBlobs:former]))
	a.checkRows(ctx, a.current, 4*(inCurrent-former))
}
