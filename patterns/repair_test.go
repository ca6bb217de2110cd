package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// drain lets every message appear and workers handle them, until none is left.
func (o *office) drain(ctx context.Context, s *storagetest.Service) error {
	for range 10 {
		s.Wait(31 * time.Second)
		d, err := o.start(s)
		if err != nil {
			return err
		}
		worker, err := eventual.NewWorker(d.queue, nil, &eventual.WorkerOptions{MaxDequeues: 1000, RetryDelay: func(int) time.Duration { return time.Second }})
		if err != nil {
			return err
		}
		if _, err := worker.Drain(ctx); err != nil {
			return err
		}
		if n, err := d.queue.Length(ctx); err != nil || n == 0 {
			return err
		}
	}
	return errors.New("the queue does not get empty")
}

// quick are options that make the same requests in the same order each time.
func quick() *patterns.JobOptions {
	return &patterns.JobOptions{Lag: time.Millisecond, Concurrency: 1}
}

// hasty is a context in which Repair settles what it has marked without a wait. It is for tests in which no change is under way.
func hasty(ctx context.Context) context.Context { return lease.Waive(ctx, lease.Terms) }

// repairAll is a Repair that is in error where anything is not done.
func (d *desk) repairAll(ctx context.Context) error {
	var undone []string
	all, err := harness.Findings(hasty(ctx), d.repo.Repair, quick())
	if err != nil {
		return err
	}
	for _, r := range all {
		if !r.Repaired {
			undone = append(undone, r.String())
		}
	}
	if len(undone) > 0 {
		return errors.New(strings.Join(undone, "\n"))
	}
	return nil
}

// check holds the table against what was harmed: nothing else is wrong, and nothing at all after a repair that has said so.
func (o *office) check(ctx context.Context, s *storagetest.Service, harmed []string, done bool, want string) error {
	d, err := o.start(s)
	if err != nil {
		return err
	}
	for _, last := range []bool{done, true} {
		all, err := harness.Findings(ctx, d.repo.Verify, quick())
		if err != nil {
			return err
		}
		for _, v := range all {
			if last || !slices.Contains(harmed, brief(v)) {
				return fmt.Errorf("%v, after a repair that is done: %v", v, last)
			}
		}
		if err := d.repairAll(ctx); err != nil {
			return err
		}
		if err := o.drain(ctx, s); err != nil {
			return err
		}
	}
	if got := d.everybody(ctx); got != want {
		return fmt.Errorf("the entities are\n%s\nand were\n%s", got, want)
	}
	return nil
}

// everybody lists all entities.
func (d *desk) everybody(ctx context.Context) string {
	var b strings.Builder
	for v, err := range d.repo.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, "%s %d %s %s %s %s %d\n", v.Department, v.ID, v.Name, v.Email, v.Badge, v.Tag, v.Age)
	}
	return b.String()
}

// sweptRepair is a table with some kinds of damage, to be repaired.
func sweptRepair(async bool, has []string, kinds ...string) storagetest.SweepCase {
	return storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		o := newOffice(t, s)
		o.async = async
		for _, name := range []string{"email", "name", "mail", "badge", "roster", "marks"} {
			if !slices.Contains(has, name) {
				o.without = append(o.without, name)
			}
		}
		d := assert.Must[*desk](t)(o.start(s))
		x := &damage{t: t, d: d, dice: rand.New(rand.NewPCG(1, 1))}
		for n := range len(kinds) {
			if err := d.repo.Insert(t.Context(), colleague(n, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.drain(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		for n, kind := range kinds {
			damages[slices.IndexFunc(damages, func(k damageKind) bool { return k.name == kind })].do(x, colleague(n, 1))
		}
		x.age()
		want := d.everybody(t.Context())
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				d, err := o.start(s)
				if err != nil {
					return err
				}
				return d.repairAll(ctx)
			},
			Recover: o.drain,
			Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
				return o.check(ctx, s, x.wants, end.Succeeded(), want)
			},
		}
	}}
}

// TestRepairSweep breaks Repair at every storage call, in every way: nothing gets worse, what it says is done is done, and
// another run does the rest.
func TestRepairSweep(t *testing.T) {
	for name, c := range map[string]storagetest.SweepCase{
		"Partition": sweptRepair(false, []string{"email", "name"}, "copy missing", "copy different", "copy under an old key"),
		"Together":  sweptRepair(false, []string{"email"}, "copy missing", "copy missing", "copy missing", "copy missing"),
		"Outside":   sweptRepair(false, []string{"badge"}, slices.Repeat([]string{"projected copy outside missing"}, 4)...),
		"Full":      sweptRepair(false, []string{"mail"}, "outside copy different", "outside copy of another version", "outside copy under an old key"),
		"Marked":    sweptRepair(false, []string{"badge"}, "outside copy marked", "outside copy marked for another entity", "outside copy of another entity"),
		"Async":     sweptRepair(true, []string{"marks"}, "not marked", "marked wrong"),
		"Auditors":  sweptRepair(false, []string{"roster", "marks"}, "not in the list", "in the wrong list", "marked wrong"),
	} {
		// A point repairs a whole office, so that fewer of them must do where the others do not.
		c.Floor, c.Every = repairPoints[name], harness.SweepEvery()*harness.WideSweepEvery()
		t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
	}
}

// repairPoints are the numbers of points that the sweeps had.
var repairPoints = map[string]int{"Partition": 844, "Together": 728, "Outside": 848, "Full": 716, "Marked": 1096, "Async": 784, "Auditors": 1192}

// TestRepairRequests holds Verify, Repair and Rebuild to what they say they cost.
func TestRepairRequests(t *testing.T) {
	o := newOffice(t, storagetest.Simulator(t, nil))
	o.without = []string{"roster", "marks"}
	requests := &storagetest.RequestCounter{}
	d := o.open(t, requests)
	d.fill(t, 100, 1)
	cost := func(f func()) map[storagetest.Kind]int {
		before := requests.Kinds()
		f()
		after := requests.Kinds()
		for kind, n := range before {
			if after[kind] -= n; after[kind] == 0 {
				delete(after, kind)
			}
		}
		return after
	}
	want := func(what string, got map[storagetest.Kind]int, want map[storagetest.Kind]int) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s costs %v, want %v", what, got, want)
		}
	}
	pages := func(n int) map[storagetest.Kind]int { return map[storagetest.Kind]int{storagetest.QueryEntities: n} }
	verify := func() { d.verify(t, fixed()) }
	want("a table without discrepancies", cost(verify), pages(2))
	want("one partition", cost(func() {
		v := fixed()
		v.Partitions, v.Patterns = []string{"D00"}, []string{"email"}
		d.verify(t, v)
	}), pages(1))
	want("nothing to fill", cost(func() {
		if _, err := d.repo.Rebuild(t.Context(), &patterns.JobOptions{Patterns: []string{"email"}}); err != nil {
			t.Error(err)
		}
	}), pages(1))
	deleteRaw(t, d.table, emailRow(colleague(7, 1)))
	want("a missing copy", cost(verify), map[storagetest.Kind]int{storagetest.QueryEntities: 3, storagetest.GetEntity: 4})
	repair := func() {
		d.repair(t, fixed(), func(r patterns.Finding) bool { return r.Repaired })
	}
	t.Logf("a missing copy is repaired with %v", cost(repair))
	want("a repaired table", cost(verify), pages(2))
	deleteRaw(t, d.badge, badgeRow(colleague(8, 1)))
	t.Logf("a missing copy outside is found with %v, and repaired with %v", cost(verify), cost(repair))
}
