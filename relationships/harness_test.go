package relationships_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// employee is a child: of the department Group in its own partition Site, and of the project Project anywhere.
type employee struct {
	tables.Meta
	Site, Group string
	ID          int
	Name        string
	Project     string
}

// department is a parent in its children's partition.
type department struct {
	tables.Meta
	Site, Name    string
	Budget        int // what its own writers change
	EmployeeCount int
}

func employeeKey(site string, id int) tables.Key {
	return tables.Key{Partition: site, Row: compoundkey.Join("empid", compoundkey.Int(id, 6))}
}

func departmentKey(site, name string) tables.Key {
	return tables.Key{Partition: site, Row: compoundkey.Join("dept", compoundkey.String(name))}
}

func projectKey(name string) tables.Key { return tables.Key{Partition: "projects", Row: name} }

// form is how a relationship is kept.
type form string

const (
	ownRow   form = "row"     // Count: of the employees that have a group
	summed   form = "summary" // Summary of the employees' IDs, by group
	inParent form = "parent"  // ParentCount
	members  form = "members" // Members, in a table of their own
	async    form = "async"   // the same, by workers
)

// world is where the tests' processes work.
type world struct {
	form
	table, other, queue string
	attempts            int // Schema.MaxAttempts
}

func newWorld(t testing.TB, s *storagetest.Service, f form) *world {
	t.Helper()
	w := &world{form: f, table: s.TableName(t), other: s.TableName(t), queue: s.QueueName(t), attempts: 60}
	p := assert.Must[*process](t)(w.start(s))
	assert.Check(t, p.employees.Table().Create(t.Context()))
	if f == members || f == async {
		assert.Check(t, p.other.Create(t.Context()), p.queue.Create(t.Context()))
	}
	for _, name := range []string{"A", "B"} {
		assert.Check(t, p.departments.Insert(t.Context(), &department{Site: "Sales", Name: name, Budget: 5}))
	}
	return w
}

// process is what one process has.
type process struct {
	other       *tables.Table
	departments *patterns.Repository[department]
	employees   *patterns.Repository[employee]
	plain       *patterns.Repository[employee] // of a program without the relationship
	count       *relationships.Count[employee]
	summary     *relationships.Summary[employee]
	parents     *relationships.ParentCount[employee, department]
	members     *relationships.Members[employee]
	queue       *eventual.Queue
}

const visibility = 10 * time.Second

func groupOf(e *employee) (tables.Key, bool) { return departmentKey(e.Site, e.Group), e.Group != "" }

func projectOf(e *employee) (tables.Key, bool) { return projectKey(e.Project), e.Project != "" }

// idOf is the value of an employee in a group.
func idOf(e *employee) (int64, bool) { return int64(e.ID), e.Group != "" }

func countOf(d *department) *int { return &d.EmployeeCount }

func (w *world) start(s *storagetest.Service) (*process, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	p := &process{other: account.Table(w.other)}
	if p.queue, err = eventual.NewQueue(account, w.queue, &eventual.QueueOptions{VisibilityTimeout: visibility}); err != nil {
		return nil, err
	}
	table := account.Table(w.table)
	p.departments, err = patterns.NewRepository(table, patterns.Schema[department]{
		Name: "departments", Prefix: "dept", MaxAttempts: w.attempts,
		Key: func(d *department) tables.Key { return departmentKey(d.Site, d.Name) },
	})
	if err != nil {
		return nil, err
	}
	schema := patterns.Schema[employee]{Name: "employees", Prefix: "empid", MaxAttempts: w.attempts,
		Key: func(e *employee) tables.Key { return employeeKey(e.Site, e.ID) }}
	if p.plain, err = patterns.NewRepository(table, schema); err != nil {
		return nil, err
	}
	var kept patterns.Pattern[employee]
	switch w.form {
	case ownRow:
		p.count = relationships.NewCount("grouped", func(e *employee) bool { return e.Group != "" })
		kept = p.count
	case summed:
		p.summary = relationships.NewSummary("load", idOf, &relationships.SummaryOptions[employee]{Group: func(e *employee) string { return e.Group }})
		kept = p.summary
	case inParent:
		p.parents = relationships.NewParentCount("count", p.departments, groupOf, countOf)
		kept = p.parents
	default:
		p.members = relationships.NewMembers("members", p.other, projectOf)
		kept = harness.AsyncIf[employee](w.form == async, p.members)[0]
	}
	p.employees, err = patterns.NewRepository(harness.In(table, p.queue), schema, kept)
	return p, err
}

// drainNow handles what is visible now.
func drainNow(ctx context.Context, q *eventual.Queue) error {
	worker, err := eventual.NewWorker(q, nil, nil)
	if err == nil {
		_, err = worker.Drain(ctx)
	}
	return err
}

// drain lets every message appear and handles it, until none is left.
func (w *world) drain(ctx context.Context, s *storagetest.Service) error {
	if w.form == ownRow || w.form == summed || w.form == inParent {
		return nil
	}
	for range 10 {
		s.Wait(visibility + time.Second)
		p, err := w.start(s)
		if err != nil {
			return err
		}
		worker, err := eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{MaxDequeues: 1000, RetryDelay: func(int) time.Duration { return time.Second }})
		if err != nil {
			return err
		}
		if _, err := worker.Drain(ctx); err != nil {
			return err
		}
		if n, err := p.queue.Length(ctx); err != nil || n == 0 {
			return err
		}
	}
	return errors.New("the queue does not get empty")
}

// check holds every number against the employees, and returns those.
func (w *world) check(ctx context.Context, s *storagetest.Service) (map[tables.Key]*employee, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	found, groups, projects := map[tables.Key]*employee{}, map[string]int{}, map[string]int{}
	for e, err := range p.employees.Query().Partition("Sales").All(ctx) {
		if err != nil {
			return nil, err
		}
		found[e.Key()] = e
		groups[e.Group]++
		projects[e.Project]++
	}
	switch w.form {
	case ownRow:
		n, err := p.count.Get(ctx, "Sales")
		if want := len(found) - groups[""]; err != nil || int(n) != want {
			return nil, fmt.Errorf("%d are counted of %d: %w", n, want, err)
		}
	case summed:
		return found, p.checkSums(ctx, found)
	case inParent:
		for d, err := range p.departments.Query().Partition("Sales").All(ctx) {
			if err != nil || d.EmployeeCount != groups[d.Name] || d.Budget != 5 {
				return nil, fmt.Errorf("department %s has %d employees of %d, and a budget of %d: %w", d.Name, d.EmployeeCount, groups[d.Name], d.Budget, err)
			}
		}
	default:
		for _, name := range []string{"P", "Q"} {
			n, err := p.members.Count(ctx, projectKey(name))
			if err != nil || int(n) != projects[name] {
				return nil, fmt.Errorf("project %s counts %d members of %d: %w", name, n, projects[name], err)
			}
			for e, err := range p.members.All(ctx, projectKey(name)) {
				if err != nil || e.Project != name {
					return nil, fmt.Errorf("a member of %s is in %s: %w", name, e.Project, err)
				}
				projects[name]--
			}
			if projects[name] != 0 {
				return nil, fmt.Errorf("project %s lacks %d members", name, projects[name])
			}
		}
		if err := harness.Clean(ctx, p.employees.Verify, &patterns.JobOptions{Lag: time.Nanosecond}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// checkSums holds the summary against the employees.
func (p *process) checkSums(ctx context.Context, found map[tables.Key]*employee) error {
	want := map[string]relationships.Aggregate{"A": {}, "B": {}}
	for _, e := range found {
		if id := int64(e.ID); e.Group != "" {
			a := want[e.Group]
			if a.Count == 0 {
				a.Min, a.Max = id, id
			}
			want[e.Group] = relationships.Aggregate{Count: a.Count + 1, Sum: a.Sum + id, Min: min(a.Min, id), Max: max(a.Max, id)}
		}
	}
	for group, a := range want {
		if got, err := p.summary.Get(ctx, "Sales", group); err != nil || got != a {
			return fmt.Errorf("group %s has %+v, want %+v: %w", group, got, a, err)
		}
	}
	for g, err := range p.summary.All(ctx, "Sales") {
		if err != nil || g.Aggregate != want[g.Group] {
			return fmt.Errorf("stored is %+v, want %+v: %w", g, want[g.Group], err)
		}
	}
	return nil
}
