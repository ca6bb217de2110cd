package tables_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// concurrent writer is what another writer does between our first attempt and what follows it.
type concurrentWrite struct {
	name string
	act  func(t *testing.T, table *tables.Table, key tables.Key)
}

func concurrentWrites() []concurrentWrite {
	ctx := context.Background()
	overwrite := func(t *testing.T, table *tables.Table, key tables.Key) {
		assert.Check(t, table.Entities().Upsert(ctx, harness.Bag(key.Partition, key.Row, "concurrent writer's")))
	}
	remove := func(t *testing.T, table *tables.Table, key tables.Key) {
		if err := table.Entities().DeleteUnconditional(ctx, key); err != nil && !errors.Is(err, tables.ErrNotFound) {
			t.Fatal(err)
		}
	}
	return []concurrentWrite{
		{name: "nobody"},
		{name: "an overwriter", act: overwrite},
		{name: "a remover", act: remove},
		{name: "a remover and inserter", act: func(t *testing.T, table *tables.Table, key tables.Key) {
			remove(t, table, key)
			overwrite(t, table, key)
		}},
	}
}

// cell is one point of the sweep.
type cell struct {
	trial           trial
	script          []fault
	retries         int32
	concurrentWrite concurrentWrite
	target          int // the row the concurrent writer acts on
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %v, %d retries, %s at row %d", c.trial.name, c.script, c.retries, c.concurrentWrite.name, c.target)
}

func cells() []cell {
	var all []cell
	scripts := [][]fault{{faultNone}, {faultNotSent}, {faultLost}, {faultLost500}, {fault503}, {faultCutOff}, {faultLost, faultNotSent, faultNotSent, faultNotSent},
		{faultLost, fault429, fault429, fault429}, {fault503, fault503, fault503, fault503}, {fault429},
		{faultBusy}, {faultBusy, faultBusy, faultBusy, faultBusy}, {faultLost, faultBusy, faultBusy, faultBusy}}
	for _, tr := range trials() {
		own := scripts
		if len(tr.rows) > 1 {
			// The answer to a lone write has no body to shorten, and no failure inside.
			own = append(slices.Clone(scripts), []fault{faultCutShort}, []fault{faultInside}, []fault{faultInside, faultInside, faultInside, faultInside}, []fault{faultInsideLost})
		}
		for _, script := range own {
			for _, retries := range []int32{3, -1} {
				if retries < 0 && len(script) > 1 {
					continue
				}
				for _, r := range concurrentWrites() {
					if r.act == nil {
						all = append(all, cell{tr, script, retries, r, 0})
					} else if len(script) == 1 && (script[0] == faultLost || script[0].before()) {
						for target := range tr.rows[:min(2, len(tr.rows))] {
							all = append(all, cell{tr, script, retries, r, target})
						}
					}
				}
			}
		}
	}
	return all
}

// want is the outcome that can be known without concurrent writers.
func (c cell) want() error {
	doubt := slices.ContainsFunc(c.script, fault.doubtful)
	repeated := c.retries > 0 && len(c.script) == 1
	if c.retries > 0 && c.script[0] == faultCutOff && !repeatsCutOff(c.trial.name) {
		repeated = false
	}
	if c.trial.full && doubt {
		// No id to be found: only a repetition that itself succeeds tells.
		if repeated && c.script[0].before() {
			return nil
		}
		return tables.ErrUnknownOutcome
	}
	switch {
	case c.script[0].before() && !repeated:
		return tables.ErrUnknownOutcome
	case c.script[0].refused() && !repeated:
		return tables.ErrUnavailable
	}
	return nil
}

// repeatsCutOff: the SDK repeats PUT and DELETE after an answer that breaks off, and nothing else.
func repeatsCutOff(name string) bool {
	return strings.Contains(name, "Replace") || strings.HasPrefix(name, "Upsert of") || strings.HasPrefix(name, "Delete")
}

// TestAmbiguousSweep walks every kind of write through every fault, with and without a concurrent writer, and holds the three
// outcomes against what really happened: nil only for what was applied, a plain error only for what was not.
func TestAmbiguousSweep(t *testing.T) {
	plain := harness.Account(t)
	table := harness.NewTable(t, plain)
	accounts := map[int32]*tables.Account{}
	faults := map[int32]*faulty{}
	for _, retries := range []int32{3, -1} {
		accounts[retries], faults[retries] = faultyAccount(t, retries)
	}
	all := cells()
	seen := map[string]int{}
	for i, c := range all {
		seen[runCell(t, c, fmt.Sprintf("cell%d", i), table, accounts[c.retries].Table(table.Name()), faults[c.retries])]++
		if t.Failed() {
			t.Fatalf("in %v", c)
		}
	}
	t.Logf("%d points: %v", len(all), seen)
	if len(all) < 650 {
		t.Errorf("the sweep has shrunk to %d points", len(all))
	}
}

// runCell makes one write and returns the name of its outcome.
func runCell(t *testing.T, c cell, partition string, plain, table *tables.Table, f *faulty) string {
	ctx := context.Background()
	old := map[string]*tables.Entity{}
	for _, row := range c.trial.old {
		e := harness.Bag(partition, row, "old")
		assert.Check(t, plain.Entities().Insert(ctx, e))
		old[row] = e
	}
	var after func()
	if c.concurrentWrite.act != nil {
		after = func() { c.concurrentWrite.act(t, plain, tables.Key{Partition: partition, Row: c.trial.rows[c.target]}) }
	}
	f.arm(after, c.script...)
	etags, err := c.trial.run(ctx, table, partition, old)
	if c.concurrentWrite.act == nil {
		if want := c.want(); want == nil && err != nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%v: error is %v, want %v", c, err, want)
		}
	}
	switch {
	case err == nil:
		checkApplied(t, c, partition, plain, f, etags)
		return "applied"
	case errors.Is(err, tables.ErrUnknownOutcome):
		if f.doubts == 0 {
			t.Errorf("%v: unknown, and no attempt was doubtful: %v", c, err)
		}
		return "unknown"
	}
	checkNotApplied(t, c, partition, plain, f, err)
	return "not applied"
}

// checkApplied holds a nil error against the rows: ours must have been applied, and its ETags be right.
func checkApplied(t *testing.T, c cell, partition string, plain *tables.Table, f *faulty, etags []azcore.ETag) {
	t.Helper()
	for i, row := range c.trial.rows {
		text, etag := rowText(t, plain, partition, row)
		gone := c.trial.deletes || row == "old3"
		switch {
		case !f.applied && !(c.trial.deletes && text == ""):
			t.Errorf("%v: nil, and the service never applied it", c)
		case gone && (text != "" && c.concurrentWrite.act == nil || etags[i] != "" && len(etags) > 1):
			t.Errorf("%v: deleted row %s says %q, ETag %q", c, row, text, etags[i])
		case !gone && c.concurrentWrite.act == nil && (text != "ours" || etag != etags[i]):
			t.Errorf("%v: row %s says %q with ETag %q, the write %q", c, row, text, etag, etags[i])
		case !gone && text == "ours" && etag != etags[i]:
			t.Errorf("%v: row %s is ours with ETag %q, the write says %q", c, row, etag, etags[i])
		case !gone && text == "concurrent writer's" && etags[i] == etag:
			t.Errorf("%v: row %s is the concurrent writer's, and its ETag was given to us", c, row)
		}
	}
}

// checkNotApplied holds a plain error against the rows: ours must not have been applied, and nothing of it be there.
func checkNotApplied(t *testing.T, c cell, partition string, plain *tables.Table, f *faulty, err error) {
	t.Helper()
	if f.applied {
		t.Errorf("%v: the service applied it, and the error denies it: %v", c, err)
	}
	var e *tables.Error
	if !errors.As(err, &e) || e.Kind == nil || e.Op == "" || e.Table != plain.Name() {
		t.Errorf("%v: error is %#v", c, err)
	}
	for _, row := range c.trial.rows {
		if text, _ := rowText(t, plain, partition, row); text == "ours" {
			t.Errorf("%v: row %s is there after %v", c, row, err)
		}
	}
}
