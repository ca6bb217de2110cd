package patterns_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRepairWaitsForTheTerm: Verify says nothing of a reservation before its term and a grace are over, by the service's clock and
// whatever Lag it is given, and Repair leaves it. A reservation without a term that makes sense is reported, and never freed.
func TestRepairWaitsForTheTerm(t *testing.T) {
	for name, tc := range map[string]struct {
		term  any
		after time.Duration
		found bool
		freed bool
	}{
		"new":                   {2000, 0, false, false},
		"before the term ends":  {2000, 1999 * time.Second, false, false},
		"within the grace":      {2000, 2300 * time.Second, false, false},
		"over":                  {2000, 2336 * time.Second, true, true},
		"far over":              {2000, 1000 * time.Hour, true, true},
		"very long":             {1<<31 - 1, 1000 * time.Hour, false, false},
		"none, of old":          {nil, 1000 * time.Hour, true, false},
		"none, new":             {nil, 0, true, false},
		"zero":                  {0, 1000 * time.Hour, true, false},
		"negative":              {-5, 1000 * time.Hour, true, false},
		"a text":                {"2000", 1000 * time.Hour, true, false},
		"a fraction":            {0.5, 1000 * time.Hour, true, false},
		"a boolean":             {true, 1000 * time.Hour, true, false},
		"larger than a seconds": {1e300, 1000 * time.Hour, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newOffice(t, storagetest.Simulator(t, nil)).open(t)
			v := colleague(1, 1)
			if err := d.repo.Insert(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			x := &damage{t: t, d: d}
			key := tables.Key{Partition: "badge", Row: "R" + v.Badge}
			x.reserve(v, key, true)
			if tc.term == nil {
				x.set(d.badge, key, "_tpTerm", nil)
			} else {
				x.set(d.badge, key, "_tpTerm", tc.term)
			}
			d.service.Wait(tc.after)
			found, err := harness.Findings(t.Context(), d.repo.Repair, &patterns.JobOptions{Lag: 1})
			if err != nil {
				t.Fatal(err)
			}
			if (len(found) == 1) != tc.found || len(found) == 1 && found[0].Repaired != tc.freed {
				t.Fatalf("Repair says %v, want found %v, freed %v", found, tc.found, tc.freed)
			}
			if tc.found && !tc.freed && !strings.Contains(found[0].NotRepaired.Error(), "_tpTerm") {
				t.Errorf("the error does not tell what to do: %v", found[0].NotRepaired)
			}
			_, err = d.badge.Client().GetEntity(t.Context(), key.Partition, key.Row, nil)
			if (err != nil) != tc.freed {
				t.Errorf("freed %v: reading the row says %v", tc.freed, err)
			}
		})
	}
}

// TestRepairFillsWithoutFreeing: a reserved key whose claim is lost, and which its entity has, is filled where it stands. At no
// moment is it free, or another entity could take it.
func TestRepairFillsWithoutFreeing(t *testing.T) {
	o := newOffice(t, storagetest.Simulator(t, nil))
	d := o.open(t)
	v := colleague(1, 1)
	if err := d.repo.Insert(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	x := &damage{t: t, d: d}
	for _, kind := range damages {
		if kind.name == "reservation's row without its claim" {
			kind.do(x, v)
		}
	}
	taken := 0
	faulty, _ := o.service.Faulty(storagetest.InjectorFunc(func(c storagetest.Call) storagetest.Fault {
		if _, err := d.badge.Client().GetEntity(t.Context(), badgeRow(v).Partition, badgeRow(v).Row, nil); err != nil {
			t.Errorf("before %v the key is free: %v", c, err)
		}
		taken++
		return nil
	}))
	repairing := harness.Must[*desk](t)(o.start(faulty))
	if err := repairing.repairAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := d.verify(t, fixed()); len(left) != 0 || taken == 0 {
		t.Errorf("%q are left after %d calls", left, taken)
	}
}
