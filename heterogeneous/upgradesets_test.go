package heterogeneous_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// oldEntities inserts entities of version 1.
func oldEntities(t *testing.T, s *storagetest.Service, name string, n int) *program {
	t.Helper()
	before := assert.Must[*program](t)(startOld(s, name))
	_, err := before.v1.BulkNonAtomic(t.Context(), func(yield func(*employeeV1, error) bool) {
		for id := range n {
			if !yield(old(id), nil) {
				return
			}
		}
	}, nil)
	assert.Check(t, err)
	return before
}

// TestUpgradeRequests: a page of old entities costs its transactions, with an index that none has yet two requests for each.
func TestUpgradeRequests(t *testing.T) {
	for what, c := range map[string]struct {
		n, want int
		more    []patterns.Pattern[employee]
	}{
		"plain":   {1000, 1 + 10, nil},
		"indexed": {200, 1 + 4*2, []patterns.Pattern[employee]{byVisits()}}, // a read of the keys of the copies, and a transaction, for each 50
	} {
		t.Run(what, func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Open(t)
			name, p := newTable(t, s, c.more...)
			oldEntities(t, s, name, c.n)
			counted, counter := harness.CountedService(s)
			upgrading := p
			if c.more == nil {
				upgrading = assert.Must[*program](t)(start(counted, name))
			} else {
				upgrading = assert.Must[*program](t)(start(counted, name, byVisits()))
			}
			report, err := upgrading.employee.Upgrade(ctx, &patterns.JobOptions{Concurrency: 1})
			if err != nil || report.Written != int64(c.n) || report.Read != int64(c.n) {
				t.Fatalf("%+v, %v", report, err)
			}
			assert.Equal(t, counter.Count(), c.want, "requests")
			assert.Check(t, harness.Clean(ctx, p.employees.Verify, nil))
		})
	}
}

// TestUpgradeBesideAHotRow: an entity that is changed before each write is upgraded by itself, and the others of its page in sets.
func TestUpgradeBesideAHotRow(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name, p := newTable(t, s)
	before := oldEntities(t, s, name, 150)
	changes, transactions := 0, 0
	faulty, _ := s.Faulty(storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
		if call.Kind == storagetest.Batch {
			transactions++
		}
		if call.Kind == storagetest.Batch && transactions == 1 || call.Kind == storagetest.ReplaceEntity && changes < 4 {
			changes++
			return storagetest.Before("concurrent writer", func() {
				assert.Check(t, assert.Err(before.v1.Update(ctx, keyOf("Sales", 7), func(e *employeeV1) error { e.Visits++; return nil })))
			})
		}
		return nil
	}))
	upgrading := assert.Must[*program](t)(start(faulty, name))
	report, err := upgrading.employee.Upgrade(ctx, &patterns.JobOptions{Concurrency: 1})
	if err != nil || report.Written != 150 || report.Failed != 0 || report.Conflicts != 3 || transactions != 3 {
		t.Errorf("%+v after %d transactions, %v", report, transactions, err)
	}
	assert.Equal(t, assert.Must[*employee](t)(p.employees.Get(ctx, keyOf("Sales", 7))).Visits, old(7).Visits+4, "visits")
}

// TestUpgradeResumes: a run that Found ends is resumed behind the last page, and options that Upgrade does not use are refused.
func TestUpgradeResumes(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name, p := newTable(t, s)
	before := oldEntities(t, s, name, 3)
	for _, e := range []*employeeV1{{place: place{"Legal", 1}, FullName: "Cher"}, {place: place{"Works", 1}, FullName: "Ann Lee"}} {
		assert.Check(t, before.v1.Insert(ctx, e))
	}
	enough := errors.New("enough")
	options := &patterns.JobOptions{Partitions: []string{"Works", "Sales", "Legal"}, Concurrency: 1} // one partition after another
	last := tables.Progress{}
	options.Progress = func(r tables.Progress) { last = r }
	options.Found = func(f patterns.Finding) error {
		if f.Entity != keyOf("Legal", 1) || f.Kind != patterns.Undecodable || !errors.Is(f.Err, tables.ErrGarbled) {
			t.Errorf("found %v", f)
		}
		return enough
	}
	report, err := p.employee.Upgrade(ctx, options)
	if !errors.Is(err, enough) || report.Failed > 1 || report.Resume != "" || last.Read != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	stopped, stop := context.WithCancel(ctx)
	options.Found, options.Progress = nil, func(r tables.Progress) { last = r; stop() }
	if report, err = p.employee.Upgrade(stopped, options); !errors.Is(err, context.Canceled) || report.Resume == "" || report.PartitionsDone != 1 || report.Failed != 1 || last.Resume != report.Resume {
		t.Fatalf("%+v, %v", report, err)
	}
	options.Resume, options.Progress = report.Resume, nil
	if report, err = p.employee.Upgrade(ctx, options); err != nil || report.Read != 4 || report.Written != 4 || report.PartitionsDone != 3 || report.Resume != "" {
		t.Errorf("%+v, %v", report, err)
	}
	for what, o := range map[string]*patterns.JobOptions{
		"Patterns": {Patterns: []string{}}, "DryRun": {DryRun: true}, "Lag is": {Lag: 1}, "Rows is": {Rows: 1}, "Concurrency": {Concurrency: -1}, "RowsPerSecond": {RowsPerSecond: -1},
		"other options": {Resume: options.Resume}, "not Report.Resume of an earlier Upgrade": {Resume: "x"},
	} {
		if _, err := p.employee.Upgrade(ctx, o); !errors.Is(err, map[bool]error{true: tables.ErrInvalid, false: tables.ErrWiring}[o.Resume != ""]) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if report, err := heterogeneous.NewType[employee]("Employee", 3, nil).Upgrade(ctx, nil); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("a type without a repository: %+v, %v", report, err)
	}
}
