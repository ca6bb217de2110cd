package denormalization_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// held collects what an auditor holds, as texts.
func held[T any](t testing.TB, a *seen[T], scope driver.Scope) []string {
	t.Helper()
	var all []string
	for fact, err := range a.Effect.List(t.Context(), scope) {
		assert.Check(t, err, fact.Err)
		all = append(all, textOfFact(fact))
	}
	slices.Sort(all)
	return all
}

func textOfFact(f driver.Fact) string {
	return fmt.Sprintf("%q for %q: %x", f.Place, f.Entity.Row, f.Digest)
}

func facts[T any](t testing.TB, a *seen[T], entities ...*T) []string {
	t.Helper()
	var all []string
	for _, e := range entities {
		for _, fact := range assert.Must[[]driver.Fact](t)(a.Effect.Expected(e)) {
			all = append(all, textOfFact(fact))
		}
	}
	slices.Sort(all)
	return all
}

// TestAudit: what the departments hold is what the employees ask for, until somebody changes it behind their backs.
func TestAudit(t *testing.T) {
	everywhere(t, func(t tested) {
		ctx := t.Context()
		t.found("A", "B")
		june, ken := jones(), kwok()
		ken.ManagesSite, ken.Manages = "Sales", "B"
		assert.Check(t, t.employees.Insert(ctx, june), t.employees.Insert(ctx, ken), drainNow(ctx, t.queue))
		asked := facts(t, t.details, june, ken)
		if got := held(t, t.details, driver.Scope{}); !slices.Equal(got, asked) || len(got) != 2 {
			t.Fatalf("held: %q, asked for: %q", got, asked)
		}
		if got := held(t, t.details, driver.Scope{Partitions: []string{"Sales"}}); len(got) != 2 {
			t.Fatalf("held for Sales: %q", got)
		}
		if got := held(t, t.details, driver.Scope{Partitions: []string{"Marketing"}}); len(got) != 0 {
			t.Fatalf("held for Marketing: %q", got)
		}
		_, err := t.w.unlinked(t, t.s).Update(ctx, departmentKey("Sales", "A"), func(d *department) error { d.ManagerName = "?"; return nil })
		assert.Check(t, err)
		if got := held(t, t.details, driver.Scope{}); slices.Equal(got, asked) {
			t.Fatal("the change was not seen")
		}
		t.reads(june.key(), "A", true, false)
		t.reads(june.key(), "B", false, false)
		t.reads(ken.key(), "B", true, true)
		assert.Check(t, t.departments.DeleteUnconditional(ctx, departmentKey("Sales", "A")))
		t.reads(june.key(), "A", true, true) // a department that does not exist counts as correct
		t.reads(ken.key(), "A", false, false)
		t.reads(employeeKey("Sales", 99), "A", false, false)
	})
}

// reads checks what Effect.Read returns for a department and an employee.
func (t tested) reads(who tables.Key, name string, wantHeld, wantCorrect bool) {
	t.Helper()
	place := "Sales\t" + departmentKey("Sales", name).Row
	fact, is, err := harness.ReadFact(t.Context(), &t.details.Effect, place, who)
	assert.Check(t, err)
	if is != wantHeld {
		t.Errorf("department %s holds something of %s: %v, want %v", name, who.Row, is, wantHeld)
	}
	if !is {
		return
	}
	e := assert.Must[*employee](t)(t.employees.Get(t.Context(), who))
	if correct := slices.Contains(facts(t, t.details, e), textOfFact(fact)); correct != wantCorrect || fact.Place != place || fact.Entity != who {
		t.Errorf("the copy of department %s is that of %s: %v, want %v", name, who.Row, correct, wantCorrect)
	}
}

// TestRemoveSpurious: Effect.Remove removes a copy that no employee requires, and no other.
func TestRemoveSpurious(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newWorld(t, s, inPartition)
	p := assert.Must[*process](t)(w.start(s))
	assert.Check(t, p.departments.Insert(ctx, &department{Site: "Sales", Name: "A", Budget: 3}), p.employees.Insert(ctx, jones()))
	audit := &p.details.Effect
	place := "Sales\t" + departmentKey("Sales", "A").Row
	says := func(wanted bool, err error) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) { return wanted, err }
	}
	manager := func() string {
		return assert.Must[*department](t)(p.departments.Get(ctx, departmentKey("Sales", "A"))).ManagerName
	}
	assert.Check(t, audit.Remove(ctx, place, kwok().key(), says(false, nil)), audit.Remove(ctx, place, jones().key(), says(true, nil)))
	if err := audit.Remove(ctx, place, jones().key(), says(false, errors.ErrUnsupported)); !errors.Is(err, errors.ErrUnsupported) || manager() != "Jones" {
		t.Fatalf("error is %v, manager %q", err, manager())
	}
	// The employee is written while it is being repaired: then she is asked for once more.
	asked := 0
	assert.Check(t, audit.Remove(ctx, place, jones().key(), func(ctx context.Context) (bool, error) {
		if asked++; asked == 1 {
			assert.Check(t, p.employees.Upsert(ctx, jones()))
			return false, nil
		}
		return true, nil
	}))
	if asked != 2 || manager() != "Jones" {
		t.Fatalf("asked %d times, manager %q", asked, manager())
	}
	assert.Check(t, audit.Remove(ctx, place, jones().key(), says(false, nil)))
	if manager() != "" {
		t.Fatalf("the manager is %q", manager())
	}
	assert.Check(t, audit.Remove(ctx, "Sales\tdept_X", jones().key(), says(false, nil)))
}

// TestAuditOfFanOut: only members with a wrong copy are reported as spurious, each at its own place.
func TestAuditOfFanOut(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newOffices(t, s, 4)
	p := assert.Must[*officeProcess](t)(w.start(s))
	london := &office{Code: "L", City: "London"}
	assert.Check(t, p.offices.Insert(ctx, london))
	for id, city := range map[int]string{1: "Rome", 2: "London", 3: ""} {
		_, err := w.unlinked(t, s).Update(ctx, memberKey(id), func(m *member) error {
			m.OfficeCity = city
			m.Office = map[bool]string{true: "L", false: "gone"}[id != 3]
			return nil
		})
		assert.Check(t, err)
	}
	city := p.city
	if got := held(t, city, driver.Scope{}); len(got) != 1 {
		t.Fatalf("held: %q", got)
	}
	if asked := facts(t, city, london); len(asked) != 0 {
		t.Fatalf("asked for: %q", asked)
	}
	for id, want := range map[int]bool{0: false, 1: true, 2: false, 3: false, 9: false} {
		_, wrong, err := harness.ReadFact(ctx, &city.Effect, "members\t"+memberKey(id).Row, london.Key())
		if assert.Check(t, err); wrong != want {
			t.Errorf("member %d is out of step: %v", id, wrong)
		}
	}
	assert.Check(t, harness.ReconcileOne(ctx, city.Effect.Reconcile, &driver.Reconciliation{Key: london.Key(), Entity: london, Keys: []string{"members\t" + memberKey(1).Row}}))
	if got := held(t, city, driver.Scope{}); len(got) != 0 {
		t.Fatalf("held: %q", got)
	}
}
