package denormalization_test

import (
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// tested is a world with its process, for tests of what happens when nothing goes wrong.
type tested struct {
	*process
	*testing.T
	w *world
	s *storagetest.Service
}

func everywhere(t *testing.T, test func(t tested)) {
	for _, p := range placements() {
		t.Run(string(p), func(t *testing.T) {
			s := storagetest.Open(t)
			w := newWorld(t, s, p)
			test(tested{assert.Must[*process](t)(w.start(s)), t, w, s})
		})
	}
}

// manager reads who manages a department, after checking that all copies are correct.
func (t tested) manager(name string) string {
	t.Helper()
	assert.Check(t, drainNow(t.Context(), t.queue))
	found := assert.Must[*state](t)(t.w.read(t.Context(), t.s))
	assert.Check(t, found.checkCopies())
	d := found.departments[departmentKey("Sales", name)]
	return strings.TrimSpace(d.ManagerName + " " + d.ManagerEmail)
}

func (t tested) want(name, manager string) {
	t.Helper()
	if got := t.manager(name); got != manager {
		t.Fatalf("department %s is managed by %q, want %q", name, got, manager)
	}
}

func (t tested) found(names ...string) {
	t.Helper()
	for _, name := range names {
		assert.Check(t, t.departments.Insert(t.Context(), &department{Site: "Sales", Name: name, Budget: 1}))
	}
}

func jones() *employee {
	return &employee{Site: "Sales", ID: 7, Name: "Jones", Email: "jones@contoso.com", ManagesSite: "Sales", Manages: "A"}
}

func kwok() *employee {
	return &employee{Site: "Sales", ID: 8, Name: "Kwok", Email: "kwok@contoso.com"}
}

// TestLifeOfAManager: a manager comes, changes, moves on to another department, and goes.
func TestLifeOfAManager(t *testing.T) {
	everywhere(t, func(t tested) {
		ctx := t.Context()
		t.found("A", "B")
		e := jones()
		assert.Check(t, t.employees.Insert(ctx, e))
		t.want("A", "Jones jones@contoso.com")
		e.Email = "j@contoso.com"
		assert.Check(t, t.employees.Replace(ctx, e))
		t.want("A", "Jones j@contoso.com")
		e.Manages = "B"
		assert.Check(t, t.employees.Merge(ctx, e, "Manages"))
		t.want("A", "")
		t.want("B", "Jones j@contoso.com")
		assert.Check(t, t.employees.Upsert(ctx, jones()))
		t.want("A", "Jones jones@contoso.com")
		t.want("B", "")
		e = assert.Must[*employee](t)(t.employees.Update(ctx, e.Key(), func(e *employee) error { e.Manages = ""; return nil }))
		t.want("A", "")
		e.Manages = "A"
		assert.Check(t, t.employees.Replace(ctx, e))
		t.want("A", "Jones jones@contoso.com")
		assert.Check(t, t.employees.Delete(ctx, e))
		t.want("A", "")
		if d := assert.Must[*department](t)(t.departments.Get(ctx, departmentKey("Sales", "A"))); d.Budget != 1 {
			t.Fatalf("the budget is %d", d.Budget)
		}
	})
}

// TestChangeOfManager: the new one starts before the old one stops, and after.
func TestChangeOfManager(t *testing.T) {
	everywhere(t, func(t tested) {
		ctx := t.Context()
		t.found("A")
		names := func(e *employee, name string) {
			t.Helper()
			_, err := t.employees.Update(ctx, employeeKey(e.Site, e.ID), func(e *employee) error { e.ManagesSite, e.Manages = "Sales", name; return nil })
			assert.Check(t, err)
		}
		assert.Check(t, t.employees.Insert(ctx, jones()), t.employees.Insert(ctx, kwok()))
		names(kwok(), "A")
		names(jones(), "")
		t.want("A", "Kwok kwok@contoso.com")
		names(kwok(), "")
		t.want("A", "")
		names(jones(), "A")
		t.want("A", "Jones jones@contoso.com")
	})
}

// TestDepartmentOpenedLater: a manager who names a department that is not there is no error; whoever opens it writes the
// manager again.
func TestDepartmentOpenedLater(t *testing.T) {
	everywhere(t, func(t tested) {
		ctx := t.Context()
		e := jones()
		assert.Check(t, t.employees.Insert(ctx, e))
		t.found("A")
		assert.Check(t, t.employees.Replace(ctx, e))
		t.want("A", "Jones jones@contoso.com")
		d := assert.Must[*department](t)(t.departments.Get(ctx, departmentKey("Sales", "A")))
		assert.Check(t, t.departments.Delete(ctx, d))
		assert.Check(t, t.employees.Delete(ctx, e), drainNow(ctx, t.queue))
	})
}

// TestConcurrentWriterOfTheDepartment: what the department's own writers change is not lost, in the middle of a manager's change.
func TestConcurrentWriterOfTheDepartment(t *testing.T) {
	for _, p := range placements() {
		t.Run(string(p), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Simulator(t, nil)
			w := newWorld(t, s, p)
			own := assert.Must[*process](t)(w.start(s))
			assert.Check(t, own.departments.Insert(ctx, &department{Site: "Sales", Name: "A"}))
			spent := 0
			concurrent := storagetest.Before("a concurrent writer", func() {
				_, err := own.departments.Update(ctx, departmentKey("Sales", "A"), func(d *department) error { d.Budget++; return nil })
				assert.Check(t, err)
				spent++
			})
			faulty, _ := s.Faulty(storagetest.On(storagetest.Batch, storagetest.Times(3, storagetest.Always(concurrent))))
			assert.Check(t, assert.Must[*process](t)(w.start(faulty)).employees.Insert(ctx, jones()))
			assert.Check(t, drainNow(ctx, assert.Must[*process](t)(w.start(faulty)).queue))
			found := assert.Must[*state](t)(w.read(ctx, s))
			assert.Check(t, found.checkCopies())
			if n := found.departments[departmentKey("Sales", "A")].Budget; n != spent || n == 0 {
				t.Fatalf("the budget is %d after %d changes", n, spent)
			}
		})
	}
}
