package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
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

	// archiveTime is when the scenario gives up. It takes about a second, and some seconds more with -chaos.
	archiveTime = 2 * time.Minute
)

// formerEmployees moves former employees out of the table of the current ones, with a worker that does it by and by, while their
// salaries are still changed. Guide: "Eventually consistent transactions pattern".
func formerEmployees() scenario {
	return scenario{
		title: "Former employees",
		guide: "Eventually consistent transactions pattern",
		shows: []show{{"Eventually consistent transactions", "moved while salaries rise", "", "each is in one place, as written last"}},
		open: func(s *scene) func(context.Context) {
			key := make([]byte, 32)
			_, _ = rand.Read(key) // never an error
			queue := must(s.store.Queue("archive", must(archiveQueue(key))))
			blobs := s.store.Container("former")
			a := &archiving{scene: s, key: key, movers: must(newMovers(queue, s.store.Table("Current"), s.store.Table("Former"), blobs)), unknown: map[int]int{}}
			return func(ctx context.Context) {
				a.staff = allFresh(s.staff[:inCurrent])
				s.write("current employees inserted", "120 employees, 480 rows", func() error {
					_, err := a.current.BulkNonAtomic(ctx, each(a.staff), nil)
					return err
				})
				s.write("moves asked for", "90 to a table, 10 to blobs", func() error {
					move := func(m *archive.Mover[Employee]) func(context.Context, *Employee) error { // twice does no harm
						return func(ctx context.Context, e *Employee) error {
							return again(ctx, func() error { return m.Move(ctx, e) })
						}
					}
					return errors.Join(together(ctx, a.staff[:former-inBlobs], move(a.toTable)), together(ctx, a.staff[former-inBlobs:former], move(a.toBlobs)))
				})
				var did string
				s.write("moved while salaries rise", "", func() (err error) {
					did, err = a.moveAndRaise(ctx)
					return err
				}).says("%s", did)
				a.check(ctx)
				try(checkPoison(ctx, queue))
			}
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
	if m.current, _, _, _, err = newEmployees(current); err != nil {
		return nil, err
	}
	if m.former, err = newPlain(formerTable); err != nil {
		return nil, err
	}
	if m.toTable, err = archive.New(queue, "former", m.current, archive.ToRepository(m.former, nil), nil); err != nil {
		return nil, err
	}
	blobName := func(e *Employee) string { return fmt.Sprintf("%s/%06d.json", e.Department, e.ID) } // of what never changes
	m.toBlobs, err = archive.New(queue, "former-blobs", m.current, archive.ToContainer(blobs, blobName), nil)
	return m, err
}

// newWorker makes a worker of the queue. One that is killed costs its messages a delivery, which is no reason to poison them.
func (m *movers) newWorker(concurrency int) (*eventual.Worker, error) {
	return eventual.NewWorker(m.queue, nil, &eventual.WorkerOptions{Concurrency: concurrency, MaxDequeues: 20, StopTimeout: 5 * time.Second,
		MinPoll: 20 * time.Millisecond, MaxPoll: 200 * time.Millisecond, RetryDelay: func(int) time.Duration { return 0 }})
}

// archiveQueue: workers move employees only for messages that are signed with the key. After a kill, messages wait for the time of visibility.
func archiveQueue(key []byte) (*eventual.QueueOptions, error) {
	keys, err := eventual.NewSigningKeys(key)
	return &eventual.QueueOptions{VisibilityTimeout: chaosVisibility, SigningKeys: keys}, err
}

// archiving is one run of the scenario.
type archiving struct {
	*scene
	*movers
	key   []byte      // that signs the messages
	staff []*Employee // as they were written last; the first ones are those who go

	mu      sync.Mutex
	unknown map[int]int // by employee, the salary that may be in the archive in place of the one before
}

// hire starts a worker: in this program, or with -chaos in another process, to be killed.
func (a *archiving) hire(ctx context.Context) (worker, error) {
	if a.options.chaos {
		return hireProcess(a.place, job{Queue: a.queue.Name(), Current: a.current.Table().Name(), Former: a.former.Table().Name(),
			Blobs: path.Base(a.blobs.URL()), Key: a.key, Seed: a.options.seed})
	}
	w, err := a.newWorker(0)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	local := &localWorker{worker: w, cancel: cancel, ended: make(chan error, 1)}
	go func() { local.ended <- w.Run(ctx) }()
	return local, nil
}

// moveAndRaise raises salaries until those employees are moved, and waits until no message is left.
func (a *archiving) moveAndRaise(ctx context.Context) (did string, err error) {
	w, err := a.hire(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, archiveTime, fmt.Errorf("messages are left on queue %s after %v", a.queue.Name(), archiveTime))
	defer cancel()
	var raising sync.WaitGroup
	var raises int
	var raiseErr error
	raising.Go(func() { raises, raiseErr = a.raiseMeanwhile(ctx) })
	if err = a.await(ctx, w); err != nil {
		cancel()
	}
	raising.Wait()
	did, stopErr := w.stop()
	if process, ok := w.(*processWorker); ok {
		a.kills += process.killed
	}
	return fmt.Sprintf("%s; %s meanwhile", did, counted(raises, "raise")), errors.Join(err, raiseErr, stopErr)
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
		a.place.pass(20 * time.Millisecond)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// raiseMeanwhile raises the salaries of every third employee in turn, for as long as they are among the current ones.
func (a *archiving) raiseMeanwhile(ctx context.Context) (raises int, err error) {
	var staff []*Employee
	for i := 0; i < former; i += 3 {
		staff = append(staff, a.staff[i])
	}
	for len(staff) > 0 {
		var mu sync.Mutex
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
		a.place.pass(20 * time.Millisecond)
	}
	return raises, nil
}

// raise sets a salary that nobody else changes, so that it can be repeated when it is unknown whether it was applied. If the employee was
// moved before that could be told, the salary in the archive is the one or the other.
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

// check: each employee is in one place, as written last, and those who went have left no row of an index behind.
func (a *archiving) check(ctx context.Context) {
	current := must(collect(a.current.Query().AllowTableScan().All(ctx)))
	inTable := must(collect(a.former.Query().AllowTableScan().All(ctx)))
	var inContainer []*Employee
	for pager := a.blobs.NewListBlobsFlatPager(nil); pager.More(); {
		for _, b := range must(pager.NextPage(ctx)).Segment.BlobItems {
			inContainer = append(inContainer, must(archive.Read[Employee](ctx, a.blobs, *b.Name)))
		}
	}
	for _, e := range slices.Concat(inTable, inContainer) {
		if salary, unknown := a.unknown[e.ID]; unknown && e.Salary == salary {
			a.staff[e.ID-1].Salary = salary
		}
	}
	try(sameStaff(current, a.staff[former:]))
	try(sameStaff(inTable, a.staff[:former-inBlobs]))
	try(sameStaff(inContainer, a.staff[former-inBlobs:former]))
	rows := must(collect(a.current.Table().Entities().Query().Select("ID").AllowTableScan().All(ctx)))
	a.scene.check(len(rows) == 4*(inCurrent-former), "the current table has %d rows, there should be %d", len(rows), 4*(inCurrent-former))
}
