package denormalization_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// walked is a world small enough to be walked through: one department in a table of its own, employees, writers, workers.
type walked struct {
	employees []*employee
	writers   [][]step    // each does its steps one after another, and stops at the first that fails
	workers   int         // 1 for 0
	pending   []step      // done before, by writers who died right after the transaction
	waive     lease.Rules // what nobody keeps to
}

// step is one operation of a writer.
type step func(ctx context.Context, p *walkProcess) error

type walkProcess struct {
	employees   *patterns.Repository[employee]
	departments *patterns.Repository[department]
	queue       *eventual.Queue
}

// walkVisibility is long against the waits between two attempts, which pass for one process alone in a walk.
const walkVisibility = time.Minute

// writes changes an employee: a name, and whether the department is named.
func writes(id int, name string, manages bool) step {
	return func(ctx context.Context, p *walkProcess) error {
		e, err := p.employees.Get(ctx, employeeKey("Sales", id))
		if err != nil {
			return err
		}
		e.Name, e.Manages = name, map[bool]string{true: "A"}[manages]
		return p.employees.Replace(ctx, e)
	}
}

// goes deletes an employee.
func goes(id int) step {
	return func(ctx context.Context, p *walkProcess) error {
		e, err := p.employees.Get(ctx, employeeKey("Sales", id))
		if err != nil {
			return err
		}
		return p.employees.Delete(ctx, e)
	}
}

func walkEmployee(id int, manages string) *employee {
	return &employee{Site: "Sales", ID: id, Name: "before", ManagesSite: "Sales", Manages: manages}
}

func (w *walked) start(s *storagetest.Service) (*walkProcess, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	queue, err := eventual.NewQueue(account, "intents", &eventual.QueueOptions{VisibilityTimeout: walkVisibility})
	if err != nil {
		return nil, err
	}
	p := &walkProcess{queue: queue}
	copies := denormalization.New("manager", managing(), nil)
	p.departments, err = patterns.NewRepository(harness.In(account.Table("Departments"), queue), patterns.Schema[department]{Key: func(d *department) tables.Key { return departmentKey(d.Site, d.Name) }}, copies.Holder())
	if err != nil {
		return nil, err
	}
	p.employees, err = patterns.NewRepository(harness.In(account.Table("Employees"), queue), patterns.Schema[employee]{Key: func(e *employee) tables.Key { return employeeKey(e.Site, e.ID) }}, copies.Source())
	return p, err
}

func (w *walked) stage(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
	t.Helper()
	p := assert.Must[*walkProcess](t)(w.start(s))
	_, err := eventual.QueueService(p.queue.Account()).NewQueueClient("intents-poison").Create(t.Context(), nil)
	assert.Check(t, err, p.employees.Table().Create(t.Context()), p.departments.Table().Create(t.Context()), p.queue.Create(t.Context()))
	assert.Check(t, p.departments.Insert(t.Context(), &department{Site: "Sales", Name: "A"}))
	for _, e := range w.employees {
		copied := *e
		assert.Check(t, p.employees.Insert(t.Context(), &copied))
	}
	for _, step := range w.pending {
		dying, _ := s.Faulty(storagetest.If(func(c storagetest.Call) bool { return strings.Contains(c.Path, "Departments") }, storagetest.DiesBefore))
		assert.Check(t, step(t.Context(), assert.Must[*walkProcess](t)(w.start(dying))))
	}
	s.Wait(walkVisibility + time.Second)
	stage := explore.InterleavingStage{Queues: []string{"intents"}, Check: w.check}
	for _, steps := range w.writers {
		stage.Processes = append(stage.Processes, func(ctx context.Context, s *storagetest.Service) error {
			p, err := w.start(s)
			for i := 0; err == nil && i < len(steps); i++ {
				err = steps[i](lease.Waive(ctx, w.waive), p)
			}
			return err
		})
	}
	for range max(w.workers, 1) {
		stage.Workers = append(stage.Workers, walkWorker(w.waive, func(s *storagetest.Service) (*eventual.Queue, error) {
			p, err := w.start(s)
			if err != nil {
				return nil, err
			}
			return p.queue, nil
		}))
	}
	return stage
}

// walkWorker is a worker of a walk, each life of which is one message.
func walkWorker(waive lease.Rules, open func(*storagetest.Service) (*eventual.Queue, error)) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		queue, err := open(harness.OneGet(s))
		if err != nil {
			return err
		}
		worker, err := eventual.NewWorker(queue, nil, &eventual.WorkerOptions{Concurrency: 1, MaxDequeues: 20,
			RetryDelay: func(int) time.Duration { return time.Second }})
		if err == nil {
			_, err = worker.Drain(lease.Waive(ctx, waive))
		}
		return err
	}
}

// check is for quiet ends.
func (w *walked) check(ctx context.Context, s *storagetest.Service) error {
	p, err := w.start(s)
	if err != nil {
		return err
	}
	properties, err := eventual.QueueService(p.queue.Account()).NewQueueClient("intents-poison").GetProperties(ctx, nil)
	if err != nil || *properties.ApproximateMessagesCount != 0 {
		return fmt.Errorf("there are poison messages (%v)", err)
	}
	d, err := p.departments.Get(ctx, departmentKey("Sales", "A"))
	if err != nil {
		return err
	}
	named := false
	for e, err := range p.employees.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return err
		}
		if e.ID == d.ManagerID && e.Manages == "A" && e.Name == d.ManagerName {
			return nil
		}
		named = named || e.Manages == "A"
	}
	if named || d.ManagerID != 0 || d.ManagerName != "" {
		return fmt.Errorf("the department has %d %q, who does not name it, or not so", d.ManagerID, d.ManagerName)
	}
	return nil
}

func (w *walked) walk(t *testing.T, name string, crashes, pauses int) explore.Walk {
	t.Helper()
	x := explore.Interleavings(t, explore.InterleavingCase{Name: name, Stage: w.stage, Crashes: crashes, Pauses: pauses, Pause: walkVisibility + time.Second})
	t.Logf("%s, %d crashes, %d pauses: %d states, %d ends; returned %v", name, crashes, pauses, x.States, x.Ends, x.Returned)
	return x
}

// walks are the small worlds.
func walks() map[string]*walked {
	both := []*employee{walkEmployee(1, "A"), walkEmployee(2, "")}
	return map[string]*walked{
		"changes": {employees: []*employee{walkEmployee(1, "A")}, writers: [][]step{{writes(1, "after", true)}, {writes(1, "later", false)}}},
		"goes":    {employees: []*employee{walkEmployee(1, "A")}, writers: [][]step{{writes(1, "after", true)}, {goes(1)}}},
		"new one first": {employees: both, pending: []step{writes(1, "again", true)},
			writers: [][]step{{writes(2, "new", true), writes(1, "old", false)}}},
		"old one first": {employees: both, pending: []step{writes(1, "again", true)},
			writers: [][]step{{writes(1, "old", false), writes(2, "new", true)}}},
		"both at once": {employees: both, pending: []step{writes(1, "again", true)},
			writers: [][]step{{writes(1, "old", false)}, {writes(2, "new", true)}}},
		"there and back": {employees: both, workers: 2, pending: []step{writes(2, "new", true), writes(1, "old", false)},
			writers: [][]step{{writes(1, "before", true), writes(2, "out", false)}}},
	}
}

// TestWalk walks through every interleaving of small worlds.
func TestWalk(t *testing.T) {
	for name, w := range walks() {
		if !harness.Thorough() && name == "there and back" {
			continue // 150,000 states
		}
		for _, n := range []struct{ crashes, pauses int }{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
			// With a pause, two of them have hundreds of thousands of states.
			if n.pauses > 0 && (name == "both at once" || name == "there and back") || n.crashes+n.pauses > 0 && harness.Shortened() {
				continue
			}
			if (n.pauses > 0 || n.crashes > 0 && len(w.pending) > 0 && name != "new one first") && !harness.Thorough() {
				continue // up to a hundred thousand states each
			}
			w.walk(t, name, n.crashes, n.pauses).MustConverge(t)
		}
	}
}

// TestWalkCanFail: without the rules of intents, the walks find what these are for.
func TestWalkCanFail(t *testing.T) {
	for _, c := range []struct {
		waive           lease.Rules
		crashes, pauses int
	}{{lease.Reread, 0, 0}, {lease.Expiry, 1, 1}} {
		w := walks()["changes"]
		w.waive = c.waive
		w.walk(t, fmt.Sprintf("without rule %b", c.waive), c.crashes, c.pauses).MustDiverge(t)
	}
}
