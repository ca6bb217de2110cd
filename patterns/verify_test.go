package patterns_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestVerifyFindsNothing: a table without discrepancies is reported as such, in every pattern.
func TestVerifyFindsNothing(t *testing.T) {
	d := newOffice(t, storagetest.Simulator(t, nil)).open(t)
	d.fill(t, 300, 5)
	for _, o := range []patterns.JobOptions{{}, {Partitions: []string{"D00", "D03"}}, {Partitions: []string{}}, {Patterns: []string{"email"}},
		{Patterns: []string{"mail"}}, {Patterns: []string{"badge", "roster"}}, {Partitions: []string{"D01"}, Patterns: []string{"marks", "mail"}}} {
		o.Lag = fixed().Lag
		found, last := d.verified(t, o)
		if len(found) > 0 {
			t.Errorf("%v: %d found, such as %s", o, len(found), found[0])
		}
		t.Logf("%q %q: %+v", o.Partitions, o.Patterns, last)
		if last.Candidates > 0 {
			t.Errorf("%q %q: %d candidates", o.Partitions, o.Patterns, last.Candidates)
		}
	}
}

// writers change colleagues of their own until they are stopped: keys move, entities go and come again.
type writers struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	changes atomic.Int64
	failed  atomic.Pointer[error]
}

func (d *desk) write(t testing.TB, from, n, departments int) *writers {
	w := &writers{}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(t.Context())
	for part := range 2 {
		w.running.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(part), 7))
			for ctx.Err() == nil {
				v := colleague(from+2*dice.IntN(n/2)+part, departments)
				if err := d.changeOne(t.Context(), v, dice); err != nil {
					w.failed.Store(&err)
					return
				}
				w.changes.Add(1)
				time.Sleep(2 * time.Millisecond) // who verifies waits, too, and has the machine for itself no longer
			}
		})
	}
	return w
}

// changeOne makes one change of a colleague.
func (d *desk) changeOne(ctx context.Context, v *staff, dice *rand.Rand) error {
	if dice.IntN(10) == 0 {
		if err := d.repo.DeleteUnconditional(ctx, staffKey(v)); err != nil && !errors.Is(err, tables.ErrNotFound) {
			return err
		}
		return d.repo.Insert(ctx, v)
	}
	moves := dice.IntN(2) == 0
	_, err := d.repo.Update(ctx, staffKey(v), func(e *staff) error {
		if e.Age++; moves {
			e.Email, e.Badge = v.Email+"x", v.Badge+"x"
			e.Tag = v.Tag + "x"
		} else {
			e.Email, e.Badge, e.Tag = v.Email, v.Badge, v.Tag
		}
		return nil
	})
	return err
}

func (w *writers) end(t testing.TB) {
	t.Helper()
	w.stop()
	w.running.Wait()
	if err := w.failed.Load(); err != nil {
		t.Fatal(*err)
	}
}

// patience is how long a difference outside must last while writers are at work that share the machine with the test.
const patience = 500 * time.Millisecond

// TestVerifyFindsAll: of every kind of damage to a table in use all is found and nothing else is, and Repair leaves none of it.
func TestVerifyFindsAll(t *testing.T) {
	const departments, busy = 40, 100
	n, times := 500, 1
	if harness.Shortened() {
		n = 200
	}
	if harness.Thorough() {
		n, times = 10_000, 8
	}
	d := newOffice(t, storagetest.Simulator(t, nil)).open(t)
	d.fill(t, n+busy, departments)
	seed := uint64(time.Now().UnixNano())
	x := &damage{t: t, d: d, dice: rand.New(rand.NewPCG(seed, 1))}
	x.harm(n, departments, times)
	w := d.write(t, n, busy, departments)
	began := time.Now()
	o := patterns.JobOptions{Lag: patience}
	o.SmallPages(250) // so that several readers have something to do
	got, last := d.verified(t, o)
	t.Logf("seed %d: %d found in %v beside %d changes: %+v", seed, len(got), time.Since(began), w.changes.Load(), last)
	if !slices.Equal(got, x.wants) {
		t.Errorf("%d found, want %d:%s", len(got), len(x.wants), differences(got, x.wants))
	}
	if last.Marked != x.marked {
		t.Errorf("%d marked, want %d", last.Marked, x.marked)
	}
	dry := o
	dry.DryRun = true
	if planned := d.repair(t, dry, func(r patterns.Finding) bool { return !r.Repaired }); !slices.Equal(planned, got) {
		t.Errorf("a dry run is about something else:%s", differences(planned, got))
	}
	before := w.changes.Load()
	repaired := d.repair(t, o, func(r patterns.Finding) bool { return r.Repaired != beyondRepair(r) })
	t.Logf("%d repaired beside %d changes", len(repaired), w.changes.Load()-before)
	for _, r := range repaired { // what is in the partition is repaired first, and with it most of what is outside
		if _, ok := slices.BinarySearch(x.wants, r); !ok {
			t.Errorf("repaired what was right: %s", r)
		}
	}
	w.end(t)
	left, last := d.verified(t, fixed())
	if len(left) != 3*times {
		t.Errorf("%d are left, want the %d that are beyond repair: %q", len(left), 3*times, left)
	}
	if last.Marked != 0 {
		t.Errorf("%d are marked after Repair", last.Marked)
	}
}

// beyondRepair reports whether only people can tell what to do.
func beyondRepair(r patterns.Finding) bool {
	return r.Kind == patterns.Undecodable || errors.Is(r.NotRepaired, tables.ErrDuplicate)
}

// repair lists what Repair says it has looked at, as texts in order.
func (d *desk) repair(t testing.TB, o patterns.JobOptions, ok func(patterns.Finding) bool) []string {
	t.Helper()
	found := []string{}
	all, err := harness.Findings(hasty(t.Context()), d.repo.Repair, &o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if !ok(r) {
			t.Errorf("%v: repaired %v, %v", r, r.Repaired, r.NotRepaired)
		}
		found = append(found, brief(r))
	}
	slices.Sort(found)
	return found
}

// TestVerifyGoesOn: from each token that a run gives, another run finds the rest; what was found before is not lost.
func TestVerifyGoesOn(t *testing.T) {
	const departments = 10
	n, step, rows, candidates := 500, 17, int64(700), int64(250)
	switch {
	case harness.Shortened():
		step = 29
	case harness.Thorough():
		n, step, rows, candidates = 1500, 24, 2000, 700
	}
	d := newOffice(t, storagetest.Simulator(t, nil)).open(t)
	d.fill(t, n, departments)
	x := &damage{t: t, d: d, dice: rand.New(rand.NewPCG(1, 1))}
	x.harm(n, departments, 1)
	for _, partitions := range [][]string{nil, {"D00", "D01", "D02", "D03", "D04", "D05", "D06", "D07", "D08", "D09"}} {
		o := fixed()
		o.Partitions = partitions
		o.SmallRuns(rows, candidates)
		tokens, before := []string{""}, []int{0}
		found := 0
		o.Progress = func(p tables.Progress) { tokens, before = append(tokens, p.Resume), append(before, found) }
		var all []string
		o.Found = func(f patterns.Finding) error {
			all = append(all, brief(f))
			found++
			return nil
		}
		if report, err := d.repo.Verify(t.Context(), &o); err != nil || report.Findings != int64(found) || report.Resume != "" {
			t.Fatalf("%+v, %v", report, err)
		}
		slices.Sort(all)
		if !slices.Equal(all, x.wants) {
			t.Fatalf("%d found, want %d:%s", len(all), len(x.wants), differences(all, x.wants))
		}
		o.Progress = nil
		for i := 0; i < len(tokens); i += step {
			o.Resume = tokens[i]
			if got := d.verify(t, o); len(got) < len(x.wants)-before[i] || len(got) > len(x.wants) {
				t.Errorf("token %d of %d: %d found after %d, of %d", i, len(tokens), len(got), before[i], len(x.wants))
			}
		}
		t.Logf("%d tokens, the longest has %d characters", len(tokens), len(slices.MaxFunc(tokens, func(a, b string) int { return len(a) - len(b) })))
	}
	o := fixed()
	o.Progress = func(p tables.Progress) {
		if p.Resume != "" {
			o.Resume = p.Resume
		}
	}
	d.verify(t, o)
	for _, other := range []patterns.JobOptions{{Resume: "?"}, {Resume: "e30"}, {Resume: o.Resume, Partitions: []string{"D01"}}, {Resume: o.Resume, Patterns: []string{"email"}},
		{Patterns: []string{"phone"}}, {Lag: -1}, {Partitions: []string{"a/b"}}} {
		_, err := d.repo.Verify(t.Context(), &other)
		harness.WantKind(t, err, map[bool]error{true: tables.ErrInvalid, false: tables.ErrWiring}[other.Resume != ""])
	}
}

// TestVerifyOnTheService: one of each kind of damage, on the service that the tests run on.
func TestVerifyOnTheService(t *testing.T) {
	n := len(damages)
	d := newOffice(t, storagetest.Open(t)).open(t)
	d.fill(t, n, 2)
	x := &damage{t: t, d: d, dice: rand.New(rand.NewPCG(3, 1))}
	x.harm(n, 2, 1)
	if got := d.verify(t, fixed()); !slices.Equal(got, x.wants) {
		t.Fatalf("%d found, want %d:%s", len(got), len(x.wants), differences(got, x.wants))
	}
	d.repair(t, fixed(), func(r patterns.Finding) bool { return r.Repaired != beyondRepair(r) })
	if left := d.verify(t, fixed()); len(left) != 3 {
		t.Fatalf("%d are left: %q", len(left), left)
	}
}

// TestVerifyOfAHotEntity: a copy that was left behind is found although its entity changes all the time, and what its writes
// are still about is not taken for a discrepancy.
func TestVerifyOfAHotEntity(t *testing.T) {
	d := newOffice(t, storagetest.Simulator(t, nil)).open(t)
	d.fill(t, 2, 1)
	v := colleague(0, 1)
	row := readRaw(t, d.table, mailRow(v))
	row["RowKey"] = "old"
	row.write(t, d.table)
	w := d.write(t, 0, 2, 1)
	defer w.end(t)
	o := fixed()
	o.Lag = patience
	want := brief(patterns.Finding{Kind: patterns.Spurious, Pattern: "mail", Location: "mail_D00\told", Entity: staffKey(v)})
	if got := d.verify(t, o); len(got) != 1 || got[0] != want {
		t.Fatalf("found %q, want %s", got, want)
	}
}

// strangers is an index whose table is another's as well.
type strangers struct {
	*interpartition.Index[staff, compoundkey.Part]
	prefix string
}

func (x strangers) Attach(host driver.Host, of *staff) (driver.Implementation, error) {
	implementation, err := x.Index.Attach(host, of)
	implementation.Outside.Owns = func(key tables.Key) bool { return strings.HasPrefix(key.Partition, x.prefix) }
	return implementation, err
}

// TestVerifyLeavesOthersAlone: rows of other types, and of other repositories in a table outside, are nobody's discrepancies.
func TestVerifyLeavesOthersAlone(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	a := harness.Account(t)
	table, second, shared := harness.NewTable(t, a), harness.NewTable(t, a), harness.NewTable(t, a)
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(a, s.QueueName(t), nil))
	if err := queue.Create(ctx); err != nil {
		t.Fatal(err)
	}
	open := func(table *tables.Table, name, prefix string) *patterns.Repository[staff] {
		key := func(v *staff) tables.Key {
			return tables.Key{Partition: v.Department, Row: compoundkey.Join(prefix, compoundkey.Int(v.ID, 6))}
		}
		outside := interpartition.NewIndex(name, func(v *staff) compoundkey.Part { return textKey(v.Email) }, &interpartition.Options[staff]{ByPartition: true, Table: shared})
		near := intrapartition.NewUnique(name+"near", func(v *staff) compoundkey.Part { return textKey(v.Email) }, nil)
		return assert.Must[*patterns.Repository[staff]](t)(patterns.NewRepository(harness.In(table, queue), patterns.Schema[staff]{Name: name, Key: key, Prefix: prefix},
			near, strangers{outside, name}))
	}
	repos := []*patterns.Repository[staff]{open(table, "one", "a"), open(table, "two", "b"), open(second, "three", "a")}
	for _, r := range repos {
		for i := range 3 {
			if err := r.Insert(ctx, colleague(i, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := table.Entities().Insert(ctx, &tables.Entity{Key: tables.Key{Partition: "D00", Row: "a note"}}); err != nil {
		t.Fatal(err)
	}
	for i, r := range repos {
		o := fixed()
		if err := harness.Clean(ctx, r.Verify, &o); err != nil {
			t.Errorf("repository %d: %v", i, err)
		}
	}
}
