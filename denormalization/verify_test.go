package denormalization_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// wrong lists what Verify finds.
func wrong[R any](t testing.TB, verify harness.RepositoryJob[R]) []string {
	t.Helper()
	found, err := harness.Findings(t.Context(), verify, atOnce())
	assert.Check(t, err)
	var all []string
	for _, f := range found {
		all = append(all, fmt.Sprintf("%v %s %s", f.Kind, f.Location, f.Entity.Row))
	}
	slices.Sort(all)
	return all
}

// repaired repairs, and returns how much was done.
func repaired[R any](t testing.TB, repair harness.RepositoryJob[R]) int {
	t.Helper()
	found, err := harness.Findings(t.Context(), repair, atOnce())
	assert.Check(t, err)
	for _, f := range found {
		if assert.Check(t, f.NotRepaired); !f.Repaired {
			t.Fatalf("not done: %v", f)
		}
	}
	return len(found)
}

func atOnce() *patterns.JobOptions { return &patterns.JobOptions{Lag: time.Millisecond} }

// TestVerify: what others did to the departments is found and repaired; a department that is not there is no discrepancy.
func TestVerify(t *testing.T) {
	everywhere(t, func(t tested) {
		ctx := t.Context()
		t.found("A", "B", "C", "D")
		for i, name := range []string{"A", "B", "C", "nowhere"} {
			assert.Check(t, t.employees.Insert(ctx, &employee{Site: "Sales", ID: i + 1, Name: name + "'s", ManagesSite: "Sales", Manages: name}))
		}
		assert.Check(t, drainNow(ctx, t.queue))
		if got := wrong(t, t.employees.Verify); len(got) != 0 {
			t.Fatalf("%q", got)
		}
		edit := func(name string, edit func(d *department)) {
			_, err := t.w.unlinked(t, t.s).Update(ctx, departmentKey("Sales", name), func(d *department) error { edit(d); return nil })
			assert.Check(t, err)
		}
		edit("A", func(d *department) { d.ManagerName = "?" })
		edit("B", func(d *department) { d.ManagerID, d.ManagerSite, d.ManagerName = 0, "", "" })
		edit("D", func(d *department) { d.ManagerID, d.ManagerSite = 3, "Sales" })
		want := []string{"different Sales\tdept_A empid_000001", "missing Sales\tdept_B empid_000002", "spurious Sales\tdept_D empid_000003"}
		if got := wrong(t, t.employees.Verify); !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
		if n := repaired(t, t.employees.Repair); n != 3 {
			t.Fatalf("%d repaired", n)
		}
		t.want("A", "A's")
		t.want("D", "")
		if got := wrong(t, t.employees.Verify); len(got) != 0 {
			t.Fatalf("%q", got)
		}
	})
}

// TestVerifyFanOut: members with another city than their office are found one by one, and repaired.
func TestVerifyFanOut(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newOffices(t, s, 50)
	p := assert.Must[*officeProcess](t)(w.start(s))
	assert.Check(t, p.offices.Insert(ctx, &office{Code: "L", City: "London"}), p.offices.Insert(ctx, &office{Code: "empty", City: "Paris"}))
	if got := wrong(t, p.offices.Verify); len(got) != 0 {
		t.Fatalf("%q", got)
	}
	for _, id := range []int{3, 30} {
		_, err := w.unlinked(t, s).Update(ctx, memberKey(id), func(m *member) error { m.OfficeCity = "?"; return nil })
		assert.Check(t, err)
	}
	_, err := w.unlinked(t, s).Update(ctx, memberKey(7), func(m *member) error { m.Office = "gone"; return nil })
	assert.Check(t, err)
	want := []string{"spurious members\tmember_000003 office_L", "spurious members\tmember_000007 office_gone", "spurious members\tmember_000030 office_L"}
	if got := wrong(t, p.offices.Verify); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	if n := repaired(t, p.offices.Repair); n != 3 {
		t.Fatalf("%d repaired", n)
	}
	assert.Must[map[string]int](t)(w.checkCopies(ctx, s))
}
