package denormalization_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestRequestCounts holds what the package's comment says of requests.
func TestRequestCounts(t *testing.T) {
	everywhere(t, func(t tested) {
		ctx := t.Context()
		t.found("A", "B")
		counter := &storagetest.RequestCounter{}
		counted := *t.s
		counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
		p := assert.Must[*process](t)(t.w.start(&counted))
		cost := func(want int, what string, err error) {
			t.Helper()
			assert.Check(t, err)
			if got := counter.Count(); got != want {
				t.Errorf("%s: %d requests, want %d", what, got, want)
			}
			assert.Check(t, drainNow(ctx, t.queue))
			counter.Reset()
		}
		// one and two are what a change costs that concerns one holder, or two; they begin with the source's own.
		one, two := 1+2+2+1, 1+2+2+1+1 // two holders of a partition are read each, and written together
		switch t.w.placement {
		case inPartition:
			one, two = 1+1, 1+2
		case async:
			one, two = 1+2, 1+2
		case nested:
			one, two = one+2, two+2 // the holders' copies elsewhere are marked and settled
		}
		e := jones()
		cost(one, "Insert", p.employees.Insert(ctx, e))
		e.Email = "j@contoso.com"
		cost(one, "Replace", p.employees.Replace(ctx, e))
		e.Manages = "B"
		cost(two, "Replace that names another holder", p.employees.Replace(ctx, e))
		other := kwok()
		cost(1, "Insert of one who names none", p.employees.Insert(ctx, other))
		cost(1, "Replace of one who names none", p.employees.Replace(ctx, other))
		unchanged := one
		switch t.w.placement {
		case anywhere, elsewhere:
			unchanged = one - 1
		case nested:
			unchanged = 1 + 2 + 1 + 1
		}
		cost(unchanged, "Replace that leaves the copy as it is", p.employees.Replace(ctx, e))
		_, err := p.departments.Get(ctx, departmentKey("Sales", "B"))
		cost(1, "reading a department with its manager", err)
		if t.w.placement == inPartition {
			cost(1+1, "Insert of a holder in the partition", p.departments.Insert(ctx, &department{Site: "Sales", Name: "C", ManagerSite: "Sales", ManagerID: 7}))
		}
		e = assert.Must[*employee](t)(p.employees.Get(ctx, e.Key()))
		counter.Reset()
		cost(one, "Delete", p.employees.Delete(ctx, e))
	})
}

// TestRequestCountsOfFanOut holds what the package's comment says of links with Find, beside TestFanOut.
func TestRequestCountsOfFanOut(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newOffices(t, s, 3)
	counter := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
	p := assert.Must[*officeProcess](t)(w.start(&counted))
	cost := func(want int, what string, err error) {
		t.Helper()
		assert.Check(t, err)
		if got := counter.Reset(); got != want {
			t.Errorf("%s: %d requests, want %d", what, got, want)
		}
	}
	cost(1+2+1+1+1, "Insert", p.offices.Insert(ctx, &office{Code: "L", City: "London"}))
	cost(1+2+1+0+1, "Insert without holders", p.offices.Insert(ctx, &office{Code: "P", City: "Paris"}))
	holder := &member{ID: 7, Office: "L", Note: "kept"}
	cost(1+2+1+1+1, "Insert of a holder", p.members.Insert(ctx, holder))
	holder.Note = "changed"
	cost(1, "Replace of a holder", p.members.Replace(ctx, holder))
	holder.Office = "P"
	cost(1+2+1+1+1, "Replace of a holder that changes its source", p.members.Replace(ctx, holder))
	cost(1, "Delete of a holder", p.members.Delete(ctx, holder))
	var n int
	for _, err := range p.city.Effect.List(ctx, driver.Scope{}) {
		assert.Check(t, err)
		n++
	}
	cost(1+1, "Held", nil)
	if n != 0 {
		t.Errorf("%d members have a wrong copy", n)
	}
}
