package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRebuild: indexes that are given to a table that has entities are filled while writers go on, also when the run is broken
// off and begun again.
func TestRebuild(t *testing.T) {
	const departments, busy = 6, 60
	n := 600
	switch {
	case harness.Shortened():
		n = 240
	case harness.Thorough():
		n = 1200
	}
	o := newOffice(t, storagetest.Simulator(t, nil))
	o.without = []string{"email", "name", "mail", "badge", "roster", "marks"}
	o.open(t).fill(t, n+busy, departments)
	o.without = nil
	d := o.open(t)
	w := d.write(t, n, busy, departments)
	options := &patterns.JobOptions{Progress: func(r tables.Progress) { t.Logf("%+v", r) }}
	options.SmallPages(50) // so that several readers have something to do
	ctx, stop := context.WithCancel(t.Context())
	first := &patterns.JobOptions{Progress: func(r tables.Progress) {
		if options.Resume = r.Resume; r.Resume != "" {
			stop()
		}
	}}
	first.SmallPages(50)
	_, err := d.repo.Rebuild(ctx, first)
	if !errors.Is(err, context.Canceled) || options.Resume == "" {
		t.Fatalf("the run was not broken off: %v", err)
	}
	report, err := d.repo.Rebuild(t.Context(), options)
	if err != nil || report.Failed > 0 || report.Read < int64(n) || report.Resume != "" {
		t.Fatalf("%+v, %v", report, err)
	}
	w.end(t)
	t.Logf("%+v beside %d changes", report, w.changes.Load())
	if left := d.verify(t, fixed()); len(left) > 0 {
		t.Fatalf("%d discrepancies are left: %q", len(left), left[:min(len(left), 10)])
	}
	again, err := d.repo.Rebuild(t.Context(), nil)
	if err != nil || again.Written != 0 || again.Unchanged != int64(n+busy) {
		t.Errorf("a second run: %+v, %v", again, err)
	}
}

// TestRebuildProblems: what cannot be entered is told, and the rest is entered.
func TestRebuildProblems(t *testing.T) {
	o := newOffice(t, storagetest.Open(t))
	o.without = []string{"email", "name", "mail", "badge", "roster", "marks"}
	bare := o.open(t)
	for i, email := range []string{"a", "b", "a", "c"} {
		v := colleague(i, 1)
		v.Email, v.Badge = email, email
		if err := bare.repo.Insert(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	row := readRaw(t, bare.table, staffKey(colleague(3, 1)))
	row["Age"] = "old"
	delete(row, "Age@odata.type")
	row.write(t, bare.table)
	o.without = nil
	d := o.open(t)
	for _, names := range [][]string{{"email"}, {"badge"}} {
		var found []patterns.Finding
		report, err := d.repo.Rebuild(t.Context(), &patterns.JobOptions{Patterns: names, Found: func(f patterns.Finding) error {
			found = append(found, f)
			return nil
		}})
		if err != nil || report.Failed != 2 || len(found) != 2 || report.Read != 4 {
			t.Fatalf("%v: %+v, %v", names, report, err)
		}
		kinds := []patterns.FindingKind{found[0].Kind, found[1].Kind}
		slices.Sort(kinds)
		if !slices.Equal(kinds, []patterns.FindingKind{patterns.Missing, patterns.Undecodable}) {
			t.Errorf("%v: %v", names, found)
		}
	}
	for _, bad := range []*patterns.JobOptions{{Patterns: []string{"none"}}, {Resume: "?"}, {Resume: "e30"}, {Concurrency: -1}} {
		_, err := d.repo.Rebuild(t.Context(), bad)
		harness.WantKind(t, err, map[bool]error{true: tables.ErrInvalid, false: tables.ErrWiring}[bad.Resume != ""])
	}
}

// TestRebuildInSets: an index in the partition is filled in change sets; a concurrent writer of one entity delays that entity alone.
func TestRebuildInSets(t *testing.T) {
	n := 1_000
	if harness.Thorough() {
		n = 10_000
	}
	ctx := t.Context()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	schema := patterns.Schema[person]{Prefix: "person", Key: func(p *person) tables.Key {
		return tables.Key{Partition: "red", Row: fmt.Sprintf("person_%06d", p.ID)}
	}}
	bare := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, schema))
	_, err := bare.BulkNonAtomic(ctx, func(yield func(*person, error) bool) {
		for id := range n {
			p := ann()
			p.ID, p.Email = id, fmt.Sprintf("p%d@contoso.com", id)
			if !yield(p, nil) {
				return
			}
		}
	}, nil)
	assert.Check(t, err)
	busy := true // what a program without the index writes while the first page is filled
	byEmail := intrapartition.NewUnique("email", func(p *person) string {
		if busy && p.ID == 123 {
			busy = false
			assert.Must[*person](t)(bare.Update(ctx, tables.Key{Partition: "red", Row: "person_000123"}, func(p *person) error { p.Name = "busy"; return nil }))
		}
		return p.Email
	}, nil)
	repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, schema, byEmail))
	requests.Store(0)
	report, err := repo.Rebuild(ctx, nil)
	t.Logf("%d requests, %v", requests.Load(), report)
	if err != nil || report.Written != int64(n) || report.Failed > 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	// A request for each page of 1,000 and each 50 entities; 2 of the concurrent writer, and 14 for halves of the set that it refused.
	if got := requests.Load(); got != int64(n/1000+n/50+16) {
		t.Errorf("%d requests", got)
	}
	if p := assert.Must[*person](t)(byEmail.In("red").Get(ctx, "p123@contoso.com")); p.Name != "busy" {
		t.Errorf("%+v", p)
	}
	assert.Check(t, harness.Clean(ctx, repo.Verify, nil))
}
