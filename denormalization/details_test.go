package denormalization_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/patterns"
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
			test(tested{must[*process](t)(w.start(s)), t, w, s})
		})
	}
}

// manager reads who manages a department, after checking that all is in step.
func (t tested) manager(name string) string {
	t.Helper()
	check(t, drainNow(t.Context(), t.queue))
	found := must[*state](t)(t.w.read(t.Context(), t.s))
	check(t, found.agree())
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
		check(t, t.departments.Insert(t.Context(), &department{Site: "Sales", Name: name, Budget: 1}))
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
		check(t, t.employees.Insert(ctx, e))
		t.want("A", "Jones jones@contoso.com")
		e.Email = "j@contoso.com"
		check(t, t.employees.Replace(ctx, e))
		t.want("A", "Jones j@contoso.com")
		e.Manages = "B"
		check(t, t.employees.Merge(ctx, e, "Manages"))
		t.want("A", "")
		t.want("B", "Jones j@contoso.com")
		check(t, t.employees.Upsert(ctx, jones()))
		t.want("A", "Jones jones@contoso.com")
		t.want("B", "")
		e = must[*employee](t)(t.employees.Update(ctx, e.Key(), func(e *employee) error { e.Manages = ""; return nil }))
		t.want("A", "")
		e.Manages = "A"
		check(t, t.employees.Replace(ctx, e))
		t.want("A", "Jones jones@contoso.com")
		check(t, t.employees.Delete(ctx, e))
		t.want("A", "")
		if d := must[*department](t)(t.departments.Get(ctx, departmentKey("Sales", "A"))); d.Budget != 1 {
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
			check(t, err)
		}
		check(t, t.employees.Insert(ctx, jones()), t.employees.Insert(ctx, kwok()))
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
		check(t, t.employees.Insert(ctx, e))
		t.found("A")
		check(t, t.employees.Replace(ctx, e))
		t.want("A", "Jones jones@contoso.com")
		d := must[*department](t)(t.departments.Get(ctx, departmentKey("Sales", "A")))
		check(t, t.departments.Delete(ctx, d))
		check(t, t.employees.Delete(ctx, e), drainNow(ctx, t.queue))
	})
}

// TestRefresh: a department that says itself who its manager is gets the details, or loses those that nobody stands for.
func TestRefresh(t *testing.T) {
	everywhere(t, func(t tested) {
		ctx := t.Context()
		check(t, t.employees.Insert(ctx, jones()))
		check(t, t.departments.Insert(ctx, &department{Site: "Sales", Name: "A", ManagerSite: "Sales", ManagerID: 7, ManagerName: "?"}))
		check(t, t.details.Refresh(ctx, departmentKey("Sales", "A")))
		t.want("A", "Jones jones@contoso.com")
		for id, why := range map[int]string{7: "does not name it", 9: "is not there"} {
			name := strings.ReplaceAll(why, " ", "-")
			check(t, t.departments.Insert(ctx, &department{Site: "Sales", Name: name, ManagerSite: "Sales", ManagerID: id, ManagerName: "?"}))
			check(t, t.details.Refresh(ctx, departmentKey("Sales", name)))
			t.want(name, "")
		}
		check(t, t.details.Refresh(ctx, departmentKey("Sales", "is-not-there")))
		if err := t.details.Refresh(ctx, departmentKey("Sales", "X")); !errors.Is(err, patterns.ErrNotFound) {
			t.Fatalf("error is %v", err)
		}
	})
}

// TestRivalOfTheSameDepartment: what the department's own writers change is not lost, in the middle of a manager's change.
func TestRivalOfTheSameDepartment(t *testing.T) {
	for _, p := range placements() {
		t.Run(string(p), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Simulator(t, nil)
			w := newWorld(t, s, p)
			own := must[*process](t)(w.start(s))
			check(t, own.departments.Insert(ctx, &department{Site: "Sales", Name: "A"}))
			spent := 0
			rival := storagetest.Before("a rival", func() {
				_, err := own.departments.Update(ctx, departmentKey("Sales", "A"), func(d *department) error { d.Budget++; return nil })
				check(t, err)
				spent++
			})
			faulty, _ := s.Faulty(storagetest.On(storagetest.Batch, storagetest.Times(3, storagetest.Always(rival))))
			check(t, must[*process](t)(w.start(faulty)).employees.Insert(ctx, jones()))
			check(t, drainNow(ctx, must[*process](t)(w.start(faulty)).queue))
			found := must[*state](t)(w.read(ctx, s))
			check(t, found.agree())
			if n := found.departments[departmentKey("Sales", "A")].Budget; n != spent || n == 0 {
				t.Fatalf("the budget is %d after %d changes", n, spent)
			}
		})
	}
}

// TestRefusedLinks: what does not fit is refused when the repository is made.
func TestRefusedLinks(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	for _, c := range []struct {
		name  string
		where placement
		in    bool
		edit  func(l *denormalization.Link[employee, department])
		want  string
	}{
		{"no target", anywhere, false, func(l *denormalization.Link[employee, department]) { l.Target = nil }, "no Target"},
		{"no holders", anywhere, false, func(l *denormalization.Link[employee, department]) { l.Holders = nil }, "either Holders or Find"},
		{"no copy", anywhere, false, func(l *denormalization.Link[employee, department]) { l.Copy = nil }, "Copy and Held"},
		{"no properties", anywhere, false, func(l *denormalization.Link[employee, department]) { l.Properties = nil }, "no Properties"},
		{"unknown property", anywhere, false, func(l *denormalization.Link[employee, department]) { l.Properties = []string{"Boss"} }, "property Boss"},
		{"limit", anywhere, false, func(l *denormalization.Link[employee, department]) { l.Limit = -1 }, "Limit of -1"},
		{"another table", elsewhere, true, nil, "not in the sources' partitions"},
		{"Find in the partition", anywhere, true, func(l *denormalization.Link[employee, department]) {
			l.Holders, l.Find = nil, func(context.Context, patterns.Key) iter.Seq2[*department, error] { return nil }
		}, "need Holders"},
		{"effects outside", nested, true, nil, "effects outside"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, s, c.where)
			p := must[*process](t)(w.start(s))
			link := managing(p.departments)
			if c.edit != nil {
				c.edit(&link)
			}
			var pattern patterns.Pattern = denormalization.New("other", link)
			if c.in {
				pattern = denormalization.NewInPartition("other", link)
			}
			schema := patterns.Schema[employee]{Name: "others", Key: p.employees.KeyOf, Intents: p.queue}
			_, err := patterns.NewRepository(p.employees.Table(), schema, pattern)
			if !errors.Is(err, patterns.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error is %v", err)
			}
		})
	}
}

// TestRefusedChanges: what a link does not allow is refused before anything is sent.
func TestRefusedChanges(t *testing.T) {
	ctx, s := context.Background(), storagetest.Simulator(t, nil)
	for _, c := range []struct {
		name string
		in   bool
		edit func(l *denormalization.Link[employee, department])
		want string
	}{
		{"a holder elsewhere", true, func(l *denormalization.Link[employee, department]) {
			l.Holders = func(*employee) []patterns.Key { return []patterns.Key{departmentKey("Marketing", "A")} }
		}, "in another partition"},
		{"itself", false, func(l *denormalization.Link[employee, department]) {
			l.Holders = func(e *employee) []patterns.Key { return []patterns.Key{employeeKey(e.Site, e.ID)} }
		}, "a copy of itself"},
		{"no key", false, func(l *denormalization.Link[employee, department]) {
			l.Holders = func(*employee) []patterns.Key { return []patterns.Key{{Partition: "a/b"}} }
		}, "the key of a holder"},
		{"another property", false, func(l *denormalization.Link[employee, department]) {
			l.Copy = func(_ *employee, d *department) { d.Budget = 7 }
			l.Holders = func(*employee) []patterns.Key { return []patterns.Key{departmentKey("Marketing", "A")} }
		}, "property Budget"},
		{"too many", false, func(l *denormalization.Link[employee, department]) {
			l.Limit = 1
			l.Holders = func(*employee) []patterns.Key {
				return []patterns.Key{departmentKey("Sales", "A"), departmentKey("Sales", "B")}
			}
		}, "more than 1 holders"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, s, anywhere)
			counter := &storagetest.RequestCounter{}
			counted := *s
			counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
			p := must[*process](t)(w.start(&counted))
			link := managing(p.departments)
			c.edit(&link)
			var pattern patterns.Pattern = denormalization.New("other", link)
			if c.in {
				pattern = denormalization.NewInPartition("other", link)
			}
			repo := must[*patterns.Repository[employee]](t)(patterns.NewRepository(p.employees.Table(),
				patterns.Schema[employee]{Name: "others", Key: p.employees.KeyOf, Intents: p.queue}, pattern))
			err := repo.Insert(ctx, jones())
			if !errors.Is(err, patterns.ErrInvalid) && !errors.Is(err, patterns.ErrTooLarge) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error is %v", err)
			}
			if counter.Count() != 0 {
				t.Fatalf("%d requests", counter.Count())
			}
		})
	}
}
