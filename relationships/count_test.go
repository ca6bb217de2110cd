package relationships_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestConcurrentWriters: ten writers change one number at the same time.
func TestConcurrentWriters(t *testing.T) {
	for _, f := range []form{ownRow, summed, inParent, members} {
		t.Run(string(f), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Open(t)
			w := newWorld(t, s, f)
			p := assert.Must[*process](t)(w.start(s))
			const n = 10
			together := func(change func(id int) error) {
				t.Helper()
				var running sync.WaitGroup
				errs := make([]error, n)
				for id := range n {
					running.Go(func() { errs[id] = change(id) })
				}
				running.Wait()
				assert.Check(t, errs...)
				if f == members {
					assert.Check(t, drainNow(ctx, p.queue))
				}
				_, err := w.check(ctx, s)
				assert.Check(t, err)
			}
			together(func(id int) error {
				return p.employees.Insert(ctx, &employee{Site: "Sales", Group: "A", ID: id, Project: "P"})
			})
			together(func(id int) error {
				_, err := p.employees.Update(ctx, employeeKey("Sales", id), func(e *employee) error {
					e.Group, e.Project = []string{"B", ""}[id%2], []string{"Q", ""}[id%2]
					return nil
				})
				return err
			})
			together(func(id int) error { return p.employees.DeleteUnconditional(ctx, employeeKey("Sales", id)) })
		})
	}
}

// TestCountsThatAreWrong: children that came before the count, or past it, are found when it is started, rebuilt, or would go
// below zero.
func TestCountsThatAreWrong(t *testing.T) {
	for _, f := range []form{ownRow, inParent} {
		t.Run(string(f), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Open(t)
			w := newWorld(t, s, f)
			p := assert.Must[*process](t)(w.start(s))
			right := func() {
				t.Helper()
				_, err := w.check(ctx, s)
				assert.Check(t, err)
			}
			for id := range 3 {
				assert.Check(t, p.plain.Insert(ctx, &employee{Site: "Sales", Group: "A", ID: id}))
			}
			if f == ownRow {
				right() // it counts them itself as long as there is no row
				assert.Check(t, p.employees.Insert(ctx, jones()))
				right()
				assert.Check(t, p.plain.Insert(ctx, &employee{Site: "Sales", Group: "A", ID: 5}))
				n, was, err := p.count.Recount(ctx, "Sales")
				if assert.Check(t, err); n != 5 || was != 4 {
					t.Errorf("counted %d after %d", n, was)
				}
				for id := range 6 {
					assert.Check(t, p.plain.Insert(ctx, &employee{Site: "Sales", Group: "A", ID: 10 + id}))
				}
			} else {
				n, was, err := p.parents.Recount(ctx, departmentKey("Sales", "A"))
				if assert.Check(t, err); n != 3 || was != 0 {
					t.Errorf("counted %d after %d", n, was)
				}
				right()
				for id := range 3 {
					assert.Check(t, p.plain.Insert(ctx, &employee{Site: "Sales", Group: "A", ID: 10 + id}))
				}
			}
			for e, err := range p.employees.Query().Partition("Sales").All(ctx) {
				assert.Check(t, err, p.employees.Delete(ctx, e)) // more than were counted
			}
			right()
			assert.Check(t, recount(ctx, p))
		})
	}
}

// TestParents: a child of a parent that is not there is refused, and one that loses its parent is not.
func TestParents(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newWorld(t, s, inParent)
	p := assert.Must[*process](t)(w.start(s))
	e := jones()
	e.Group = "none"
	var failed *tables.Error
	if err := p.employees.Insert(ctx, e); !errors.Is(err, tables.ErrMissingReference) || !errors.As(err, &failed) || failed.Pattern != "count" {
		t.Fatalf("a child without a parent: %v", err)
	}
	if _, err := p.employees.Get(ctx, employeeKey("Sales", 223)); !errors.Is(err, tables.ErrNotFound) {
		t.Fatalf("it was written: %v", err)
	}
	e.Group = "A"
	assert.Check(t, p.employees.Insert(ctx, e))
	stale := assert.Must[*department](t)(p.departments.Get(ctx, departmentKey("Sales", "A")))
	assert.Check(t, p.employees.Insert(ctx, &employee{Site: "Sales", Group: "A", ID: 2}))
	if err := p.departments.Delete(ctx, stale); !errors.Is(err, tables.ErrConflict) {
		t.Fatalf("a parent is deleted that got a child meanwhile: %v", err)
	}
	assert.Check(t, p.departments.DeleteUnconditional(ctx, departmentKey("Sales", "A")))
	e.Group = ""
	assert.Check(t, p.employees.Replace(ctx, e))
}

// TestRequestCounts holds what the package's comment says of requests.
func TestRequestCounts(t *testing.T) {
	for f, want := range map[form][6]int{ownRow: {3, 2, 1, 2, 2, 1}, summed: {3, 2, 1, 5, 2, 1}, inParent: {2, 2, 1, 3, 2, 1}, members: {8, 7, 1, 11, 7, 1}, async: {3, 3, 1, 3, 3, 1}} {
		t.Run(string(f), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Open(t)
			w := newWorld(t, s, f)
			counter := &storagetest.RequestCounter{}
			counted := *s
			counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
			p := assert.Must[*process](t)(w.start(&counted))
			cost := func(i int, what string, err error) {
				t.Helper()
				assert.Check(t, err)
				if got := counter.Count(); got != want[i] {
					t.Errorf("%s: %d requests, want %d: %v", what, got, want[i], counter.Kinds())
				}
				if f == async {
					assert.Check(t, drainNow(ctx, assert.Must[*process](t)(w.start(s)).queue))
				}
				counter.Reset()
			}
			one, two := &employee{Site: "Sales", Group: "A", ID: 1, Project: "P"}, &employee{Site: "Sales", Group: "A", ID: 2, Project: "P"}
			cost(0, "Insert of the first child", p.employees.Insert(ctx, one))
			cost(1, "Insert of another", p.employees.Insert(ctx, two))
			two.Name = "Kwok"
			cost(2, "Replace that changes no number", p.employees.Replace(ctx, two))
			two.Group, two.Project = "B", "Q"
			if f == ownRow {
				two.Group = ""
			}
			cost(3, "Replace that changes the parent", p.employees.Replace(ctx, two))
			if f == ownRow {
				two.Group = "A"
				cost(4, "Replace that changes it back", p.employees.Replace(ctx, two))
			} else {
				cost(4, "Delete", p.employees.Delete(ctx, two))
			}
			var err error
			switch f {
			case ownRow:
				_, err = p.count.Get(ctx, "Sales")
			case summed:
				_, err = p.summary.Get(ctx, "Sales", "A")
			case inParent:
				_, err = p.departments.Get(ctx, departmentKey("Sales", "A"))
			default:
				_, err = p.members.Count(ctx, projectKey("P"))
			}
			cost(5, "reading the number", err)
		})
	}
}

// recorder is a runner that notes what intents say, and makes the changes.
type recorder struct{ said []string }

func (*recorder) Register(string, func(context.Context, intents.Intent) error) error { return nil }

func (r *recorder) Run(ctx context.Context, intent intents.Intent, commit func(context.Context) error, apply func(context.Context) (intents.Rest, error)) error {
	r.said = append(r.said, fmt.Sprintf("%q", intent.Members[0].Outside))
	if err := commit(ctx); err != nil {
		return err
	}
	return harness.ApplyAndClose(apply)(ctx)
}

// TestGolden: the rows, and what intents say, are stored, and read by later versions.
func TestGolden(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newWorld(t, s, members)
	p := assert.Must[*process](t)(w.start(s))
	r := &recorder{}
	count := relationships.NewCount[employee]("count", nil)
	repo := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(p.employees.Table(), r), patterns.Schema[employee]{Key: p.employees.KeyOf, Prefix: "empid"},
		count, relationships.NewSummary("load", idOf, &relationships.SummaryOptions[employee]{Group: func(e *employee) string { return e.Group }}),
		relationships.NewMembers("members", p.other, projectOf)))
	e := jones()
	assert.Check(t, repo.Insert(ctx, e), repo.Insert(ctx, &employee{Site: "Sales", ID: 1, Project: "P"}))
	e.Project = "Q"
	assert.Check(t, repo.Replace(ctx, e))
	e.Name = "Kwok"
	assert.Check(t, repo.Replace(ctx, e))
	said := []string{`map["members":["projects\tP"]]`, `map["members":["projects\tP"]]`, `map["members":["projects\tQ" "projects\tP"]]`}
	if !slices.Equal(r.said, said) {
		t.Errorf("intents say %q", r.said)
	}
	var rows []string
	for _, table := range []*tables.Table{p.employees.Table(), p.other} {
		for row, err := range table.Entities().Query().AllowTableScan().All(ctx) {
			assert.Check(t, err)
			if row.Properties.Has("Name") {
				continue // an employee or a department
			}
			text := row.Key.Partition + " " + row.Key.Row
			for _, property := range row.Properties {
				text += fmt.Sprintf(" %s=%#v", property.Name, property.Value)
			}
			rows = append(rows, text)
		}
	}
	want := []string{
		"Sales count Count=" + fmt.Sprintf("%#v", tables.Int64(2)),
		fmt.Sprintf("Sales load_A Count=%#v Sum=%#v Min=%#v Max=%#v", tables.Int64(1), tables.Int64(223), tables.Int64(223), tables.Int64(223)),
		"projects members_P Count=" + fmt.Sprintf("%#v", tables.Int64(1)),
		"projects members_P!_Sales!_empid^1000001",
		"projects members_Q Count=" + fmt.Sprintf("%#v", tables.Int64(1)),
		"projects members_Q!_Sales!_empid^1000223",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("stored is\n%q\nwant\n%q", rows, want)
	}
}

// repairAll repairs the employees, which must succeed with every finding.
func repairAll(t testing.TB, p *process) []patterns.Finding {
	t.Helper()
	found, err := harness.Findings(t.Context(), p.employees.Repair, &patterns.JobOptions{Lag: 1})
	assert.Check(t, err)
	for _, f := range found {
		assert.Check(t, f.NotRepaired)
	}
	return found
}

// TestMembersAreRepaired: Verify finds what other programs have left, and Repair repairs it, numbers included.
func TestMembersAreRepaired(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newWorld(t, s, members)
	p := assert.Must[*process](t)(w.start(s))
	assert.Check(t, p.plain.Insert(ctx, &employee{Site: "Sales", ID: 1, Project: "P"}), p.employees.Insert(ctx, jones()),
		p.plain.DeleteUnconditional(ctx, employeeKey("Sales", 223)), p.employees.Insert(ctx, &employee{Site: "Sales", ID: 3, Project: "Q"}))
	var found []string
	for _, f := range repairAll(t, p) {
		found = append(found, f.Kind.String())
	}
	slices.Sort(found)
	if !slices.Equal(found, []string{"missing", "spurious"}) {
		t.Errorf("found %q", found)
	}
	// A row that was removed by hand, and entered again, has counted twice.
	assert.Check(t, p.other.Entities().DeleteUnconditional(ctx, tables.Key{Partition: "projects", Row: "members_P!_Sales!_empid^1000001"}))
	repairAll(t, p)
	for _, before := range []int64{2, 1} {
		if n, was, err := p.members.Recount(ctx, projectKey("P")); n != 1 || was != before || err != nil {
			t.Errorf("counted %d, and it was %d, %v", n, was, err)
		}
	}
	if n, was, err := p.members.Recount(ctx, projectKey("none")); n != 0 || was != -1 || err != nil {
		t.Errorf("of no members %d, and it was %d, %v", n, was, err)
	}
	_, err := w.check(ctx, s)
	assert.Check(t, err)
}

// TestDeclarationsAreRefused: by NewRepository, before anything is read or written.
func TestDeclarationsAreRefused(t *testing.T) {
	s := storagetest.Open(t)
	w := newWorld(t, s, inParent)
	p := assert.Must[*process](t)(w.start(s))
	attach := func(kept patterns.Pattern[employee]) error {
		_, err := patterns.NewRepository(harness.In(p.employees.Table(), &recorder{}), patterns.Schema[employee]{Key: p.employees.KeyOf, Prefix: "empid"}, kept)
		return err
	}
	elsewhere := assert.Must[*patterns.Repository[department]](t)(patterns.NewRepository(p.other, patterns.Schema[department]{Key: p.departments.KeyOf}))
	for what, kept := range map[string]patterns.Pattern[employee]{
		"a count named as the prefix": relationships.NewCount[employee]("empid", nil),
		"a count with a bad name":     relationships.NewCount[employee]("a b", nil),
		"no parents":                  relationships.NewParentCount[employee, department]("count", nil, groupOf, countOf),
		"no parent of":                relationships.NewParentCount[employee]("count", p.departments, nil, countOf),
		"no number":                   relationships.NewParentCount("count", p.departments, groupOf, nil),
		"parents elsewhere":           relationships.NewParentCount("count", elsewhere, groupOf, countOf),
		"a count that is attached":    p.parents,
		"members without parents":     relationships.NewMembers[employee]("members", nil, nil),
		"members with a bad name":     relationships.NewMembers("a_b", nil, projectOf),
		"members as the prefix":       relationships.NewMembers("empid", nil, projectOf),
	} {
		if err := attach(kept); !errors.Is(err, tables.ErrWiring) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ctx := t.Context()
	count, loose := relationships.NewCount[employee]("count", nil), relationships.NewMembers("members", nil, projectOf)
	_, get := count.Get(ctx, "Sales")
	_, _, recount := count.Recount(ctx, "Sales")
	_, number := loose.Count(ctx, projectKey("P"))
	_, _, parent := relationships.NewParentCount("count", p.departments, groupOf, countOf).Recount(ctx, departmentKey("Sales", "A"))
	_, _, recounted := loose.Recount(ctx, projectKey("P"))
	errs := []error{get, recount, number, parent, recounted}
	for _, err := range loose.Keys(ctx, projectKey("P")) {
		errs = append(errs, err)
	}
	for _, err := range loose.All(ctx, projectKey("P")) {
		errs = append(errs, err)
	}
	for _, err := range errs {
		if !errors.Is(err, tables.ErrWiring) || len(errs) != 7 {
			t.Errorf("without a repository: %v", err)
		}
	}
	there := relationships.NewParentCount("count", p.departments, func(*employee) (tables.Key, bool) { return departmentKey("Other", "A"), true }, countOf)
	repo := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(p.employees.Table(), patterns.Schema[employee]{Key: p.employees.KeyOf}, there))
	if err := repo.Insert(ctx, jones()); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("a parent in another partition: %v", err)
	}
	long := assert.Must[*process](t)((&world{form: members, table: w.table, other: w.other, queue: w.queue}).start(s))
	tooLong := jones()
	tooLong.Project = fmt.Sprintf("%0500d", 1)
	if err := long.employees.Insert(ctx, tooLong); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("a member's key that is too long: %v", err)
	}
}
