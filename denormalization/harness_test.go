package denormalization_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// employee is a source: the manager of a department, if Manages is not empty.
type employee struct {
	tables.Meta
	Site        string
	ID          int
	Name, Email string
	ManagesSite string // of the department
	Manages     string
}

// department is a holder of its manager's details.
type department struct {
	tables.Meta
	Site, Name   string
	Budget       int // what its own writers change
	ManagerSite  string
	ManagerID    int
	ManagerName  string
	ManagerEmail string
}

func employeeKey(site string, id int) tables.Key {
	return tables.Key{Partition: site, Row: compoundkey.Join("empid", compoundkey.Int(id, 6))}
}

func departmentKey(site, name string) tables.Key {
	return tables.Key{Partition: site, Row: compoundkey.Join("dept", compoundkey.String(name))}
}

// managing is the link between the two.
func managing() denormalization.Link[employee, department] {
	return denormalization.Link[employee, department]{
		Properties: []string{"ManagerSite", "ManagerID", "ManagerName", "ManagerEmail"},
		Holders: func(e *employee) []tables.Key {
			if e.Manages == "" {
				return nil
			}
			return []tables.Key{departmentKey(e.ManagesSite, e.Manages)}
		},
		Copy: func(e *employee, d *department) {
			if e == nil {
				e = &employee{}
			}
			d.ManagerSite, d.ManagerID, d.ManagerName, d.ManagerEmail = e.Site, e.ID, e.Name, e.Email
		},
		SourceOf: func(d *department) (tables.Key, bool) {
			return employeeKey(d.ManagerSite, d.ManagerID), d.ManagerID != 0
		},
	}
}

// placement is where holders are, and what becomes of their copies.
type placement string

const (
	inPartition placement = "in-partition" // NewInPartition
	anywhere    placement = "anywhere"     // New, with both in one table
	elsewhere   placement = "elsewhere"    // New, the holders in a table of their own
	async       placement = "async"        // elsewhere, by workers
	nested      placement = "nested"       // in one table, the departments with an index in other partitions
)

func placements() []placement {
	return []placement{inPartition, anywhere, elsewhere, async, nested}
}

// world is where the tests' processes work.
type world struct {
	placement
	employees, departments, queue string
}

func newWorld(t testing.TB, s *storagetest.Service, p placement) *world {
	t.Helper()
	w := &world{placement: p, employees: s.TableName(t), queue: s.QueueName(t)}
	w.departments = w.employees
	if p == elsewhere || p == async {
		w.departments = s.TableName(t)
	}
	proc := assert.Must[*process](t)(w.start(s))
	errs := []error{proc.employees.Table().Create(t.Context()), proc.queue.Create(t.Context())}
	if w.departments != w.employees {
		errs = append(errs, proc.departments.Table().Create(t.Context()))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return w
}

// process is what one process has: clients, handles, repositories.
type process struct {
	employees   *patterns.Repository[employee]
	departments *patterns.Repository[department]
	details     *seen[employee] // the link's Source
	queue       *eventual.Queue
	carryOut    func(context.Context, intents.Intent) error // an intent of an employee
}

// seen is a pattern whose functions a test can call.
type seen[T any] struct {
	driver.Implementation
	pattern patterns.Pattern[T]
}

func (p *seen[T]) Attach(host driver.Host, of *T) (implementation driver.Implementation, err error) {
	p.Implementation, err = p.pattern.Attach(host, of)
	return p.Implementation, err
}

// registered is a runner that tells what a repository has registered.
type registered struct {
	intents.Runner
	reconcile *func(context.Context, intents.Intent) error
}

func (r registered) Register(repository string, reconcile func(context.Context, intents.Intent) error) error {
	*r.reconcile = reconcile
	return r.Runner.Register(repository, reconcile)
}

const visibility = 10 * time.Second

// connect opens the account and the queue of a process.
func connect(s *storagetest.Service, queue string) (*tables.Account, *eventual.Queue, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, nil, err
	}
	q, err := eventual.NewQueue(account, queue, &eventual.QueueOptions{VisibilityTimeout: visibility})
	return account, q, err
}

func (w *world) start(s *storagetest.Service) (*process, error) {
	account, queue, err := connect(s, w.queue)
	if err != nil {
		return nil, err
	}
	copies, runner := w.link(queue)
	p := &process{queue: queue}
	if p.departments, err = w.openDepartments(account, runner, harness.AsyncIf[department](w.placement == async, copies.Holder())...); err != nil {
		return nil, err
	}
	p.details = &seen[employee]{pattern: copies.Source()}
	if runner != nil {
		runner = registered{runner, &p.carryOut}
	}
	p.employees, err = patterns.NewRepository(harness.In(account.Table(w.employees), runner), patterns.Schema[employee]{Name: "employees", Prefix: "empid", MaxAttempts: 40, Key: func(e *employee) tables.Key { return employeeKey(e.Site, e.ID) }}, harness.AsyncIf[employee](w.placement == async, p.details)...)
	return p, err
}

// link makes the link, and what runs its intents: nil where none are needed.
func (w *world) link(queue *eventual.Queue) (*denormalization.Copies[employee, department], intents.Runner) {
	if w.placement == inPartition {
		return denormalization.NewInPartition("manager", managing(), nil), nil // it must do without a queue
	}
	return denormalization.New("manager", managing(), nil), harness.Runner(queue)
}

// openDepartments makes the holders' repository, with indexes of their own.
func (w *world) openDepartments(account *tables.Account, runner intents.Runner, attached ...patterns.Pattern[department]) (*patterns.Repository[department], error) {
	attached = append(attached, intrapartition.NewUnique("manageremail", func(d *department) compoundkey.Part {
		if d.ManagerEmail == "" {
			return compoundkey.Part{}
		}
		return compoundkey.Tuple(compoundkey.String(d.ManagerEmail), compoundkey.String(d.Name))
	}, nil))
	if w.placement == nested {
		attached = append(attached, interpartition.NewIndex("department", func(d *department) string { return d.Name }, &interpartition.Options[department]{ByPartition: true}))
	}
	return patterns.NewRepository(harness.In(account.Table(w.departments), runner), patterns.Schema[department]{
		Name: "departments", Prefix: "dept", MaxAttempts: 40,
		Key: func(d *department) tables.Key { return departmentKey(d.Site, d.Name) },
	}, attached...)
}

// unlinked is the departments' repository in a program that does not know the link.
func (w *world) unlinked(t testing.TB, s *storagetest.Service) *patterns.Repository[department] {
	t.Helper()
	account, queue, err := connect(s, w.queue)
	if err != nil {
		t.Fatal(err)
	}
	return assert.Must[*patterns.Repository[department]](t)(w.openDepartments(account, harness.Runner(queue)))
}

// drainNow handles what is visible now.
func drainNow(ctx context.Context, q *eventual.Queue) error { return harness.DrainNow(ctx, q) }

// openQueue opens the queue as a process does.
func (w *world) openQueue(s *storagetest.Service) (*eventual.Queue, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	return p.queue, nil
}

func (w *world) drain(ctx context.Context, s *storagetest.Service) error {
	return harness.Drain(ctx, s, visibility, w.openQueue)
}

// state is what is stored: employees, departments by key.
type state struct {
	employees   map[tables.Key]*employee
	departments map[tables.Key]*department
}

func (w *world) read(ctx context.Context, s *storagetest.Service) (*state, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	found := &state{map[tables.Key]*employee{}, map[tables.Key]*department{}}
	for e, err := range p.employees.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		found.employees[e.Key()] = e
	}
	for d, err := range p.departments.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		found.departments[d.Key()] = d
		if err := checkIndex(ctx, p, d); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// checkIndex holds a department's own index against it.
func checkIndex(ctx context.Context, p *process, d *department) error {
	n := 0
	for row, err := range p.departments.Table().Entities().Query().Partition(d.Site).Rows(compoundkey.All().Under("manageremail")).All(ctx) {
		if err != nil {
			return err
		}
		answer, err := p.departments.Table().Client().GetEntity(ctx, row.Key.Partition, row.Key.Row, nil)
		if err != nil {
			return err
		}
		var stored map[string]any
		if err := json.Unmarshal(answer.Value, &stored); err != nil {
			return err
		}
		if stored["_tpPrimary"] != d.Key().Row {
			continue
		}
		n++
		if stored["ManagerEmail"] != d.ManagerEmail || stored["ManagerName"] != d.ManagerName {
			return fmt.Errorf("department %s has the manager %q, and its copy %v", d.Name, d.ManagerEmail, stored["ManagerEmail"])
		}
	}
	if wanted := map[bool]int{true: 1}[d.ManagerEmail != ""]; n != wanted {
		return fmt.Errorf("department %s has %d copies in its index, and should have %d", d.Name, n, wanted)
	}
	return nil
}

// checkCopies compares each department with the employee who names it, of whom there is at most one.
func (s *state) checkCopies() error {
	for key, d := range s.departments {
		var manager employee
		for _, e := range s.employees {
			if departmentKey(e.ManagesSite, e.Manages) == key && e.Manages != "" {
				if manager.ID != 0 {
					return fmt.Errorf("two employees name department %s", d.Name)
				}
				manager = *e
			}
		}
		if d.ManagerSite != manager.Site || d.ManagerID != manager.ID || d.ManagerName != manager.Name || d.ManagerEmail != manager.Email {
			return fmt.Errorf("department %s has (%s, %d, %q, %q), and its manager is (%s, %d, %q, %q)", d.Name, d.ManagerSite, d.ManagerID, d.ManagerName, d.ManagerEmail,
				manager.Site, manager.ID, manager.Name, manager.Email)
		}
	}
	return nil
}
