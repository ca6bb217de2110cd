package interpartition_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// walked is a world small enough to be walked through: entities with one inter-partition index, writers that change them, and
// workers.
type walked struct {
	kind
	walkScene
	workers int // processes that carry out messages

	repairs repairs       // who runs Repair
	rash    lease.Rules   // what Repair does not keep to
	term    time.Duration // of reservations; 0 is the package's own

	waive     lease.Rules // what nobody keeps to
	lastKeeps bool        // but the last writer does
	// judge takes the place of all else that check looks at, unless it is nil.
	judge func(rows []map[string]string, poisoned int) error

	table, queue string
	came         map[string]bool  // how the entities were in quiet ends
	gone         map[string]error // what became of the index when they were deleted, by what it held
}

// walkScene is who is in a world, and what becomes of them.
type walkScene struct {
	name     string
	entities []*employee // there at the beginning
	writers  [][]change  // each makes its changes one after another, and stops at the first that fails
	// ends are all the ways the entities can be in a quiet end: each one's id, index key and name. A walk that does not come
	// to all of them has not walked.
	ends []string
}

// change is one operation of a writer.
type change func(ctx context.Context, repo *patterns.Repository[employee]) error

// at is the key of an entity of the walks.
func at(id int) tables.Key { return keyOf(&employee{Department: "Sales", ID: id}) }

// with is an entity of the walks.
func with(id int, email string) *employee {
	return &employee{Department: "Sales", ID: id, Name: "before", Email: email}
}

// moves gives an entity another index key, or the same: then only what the copy holds changes.
func moves(id int, email string) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		e, err := repo.Get(ctx, at(id))
		if err != nil {
			return err
		}
		e.Name, e.Email = "after", email
		return repo.Replace(ctx, e)
	}
}

// goes deletes an entity.
func goes(id int) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		e, err := repo.Get(ctx, at(id))
		if err != nil {
			return err
		}
		return repo.Delete(ctx, e)
	}
}

// takes gives an entity an index key that another one had, once that has it no longer.
func takes(id int, email string, from int) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		other, err := repo.Get(ctx, at(from))
		if err != nil {
			return err
		}
		if other.Email == email {
			return errors.New("the other one still has the key")
		}
		return moves(id, email)(ctx, repo)
	}
}

// comes inserts an entity.
func comes(id int, email string) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		return repo.Insert(ctx, with(id, email))
	}
}

// walkVisibility is long against the waits between two attempts, which pass for one process alone in a walk.
const walkVisibility = time.Minute

// stage builds the world.
func (w *walked) stage(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
	t.Helper()
	w.table, w.queue = "Employees", "intents"
	w.came, w.gone = map[string]bool{}, map[string]error{}
	p := harness.Must[*process](t)(w.start(s))
	poison := eventual.QueueService(p.queue.Account()).NewQueueClient(w.queue + "-poison")
	_, err := poison.Create(t.Context(), nil)
	for _, err := range []error{err, p.repo.Table().Create(t.Context()), p.queue.Create(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range w.entities {
		copied := *e
		if err := p.repo.Insert(t.Context(), &copied); err != nil {
			t.Fatal(err)
		}
	}
	if w.async {
		harness.Must[int](t)(w.work(t.Context(), p))
	}
	rows := harness.Must[[]map[string]string](t)(rawRows(t.Context(), p))
	if entities, err := checkRows(rows); err != nil || len(entities) != len(w.entities) {
		t.Fatalf("%d entities, %v", len(entities), err)
	}
	stage := explore.InterleavingStage{Queues: []string{w.queue}, Check: w.check}
	for i, changes := range w.writers {
		waive := w.waive
		if w.lastKeeps && i == len(w.writers)-1 {
			waive = 0
		}
		stage.Processes = append(stage.Processes, func(ctx context.Context, s *storagetest.Service) error {
			if w.repairs == first && i == len(w.writers)-1 {
				if err := w.repair(ctx, s); err != nil {
					return err
				}
			}
			return w.write(lease.Waive(ctx, waive), s, changes)
		})
	}
	if w.repairs == beside {
		stage.Processes = append(stage.Processes, w.repair)
	}
	for range w.workers {
		stage.Workers = append(stage.Workers, func(ctx context.Context, s *storagetest.Service) error {
			p, err := w.start(harness.OneGet(s))
			if err == nil {
				_, err = w.work(lease.Waive(ctx, w.waive), p)
			}
			return err
		})
	}
	return stage
}

// start is a process of the world.
func (w *walked) start(s *storagetest.Service) (*process, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	queue, err := eventual.NewQueue(account, w.queue, &eventual.QueueOptions{VisibilityTimeout: walkVisibility})
	if err != nil {
		return nil, err
	}
	carrier := w.carrier(queue)
	p := &process{queue: queue, close: carrier.Close}
	p.email = interpartition.NewIndex("email", func(e *employee) compoundkey.Part { return text(e.Email) },
		&interpartition.Options[employee]{ByPartition: true, Unique: w.unique})
	schema := patterns.Schema[employee]{Key: keyOf, Rows: compoundkey.Starting("empid")}
	var index patterns.Pattern[employee] = p.email
	if w.term > 0 {
		index = briefly{p.email, w.term}
	}
	p.repo, err = patterns.NewRepository(harness.In(account.Table(w.table), carrier), schema, harness.AsyncIf(w.async, index)...)
	return p, err
}

// write is a writer's life.
func (w *walked) write(ctx context.Context, s *storagetest.Service, changes []change) error {
	p, err := w.start(s)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if err := change(ctx, p.repo); err != nil {
			return errors.Join(err, p.close(ctx))
		}
	}
	return p.close(ctx)
}

// work is a worker's life. A message whose turn has not come, since another entity still has the key, comes again in a pause,
// or when everybody else is done and all messages are visible: how its delays compare with the time for which a dead holder's
// message stays hidden is not walked.
func (w *walked) work(ctx context.Context, p *process) (int, error) {
	worker, err := eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{Concurrency: 1,
		RetryDelay: func(int) time.Duration { return time.Second }})
	if err != nil {
		return 0, err
	}
	return worker.Drain(ctx)
}
