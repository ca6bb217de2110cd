package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func emailIndex() patterns.Pattern[person] { return intrapartition.NewUnique("email", emailPart, nil) }

func nameIndex() patterns.Pattern[person] {
	return intrapartition.NewUnique("name", func(p *person) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.String(p.Name), compoundkey.Int(p.ID, 4))
	}, nil)
}

// othersIn lists the rows of a table that are not those of persons or of an index by name.
func othersIn(t *testing.T, table *tables.Table) (keys []string) {
	t.Helper()
	for row, err := range table.Entities().Query().AllowTableScan().Select("RowKey").All(t.Context()) {
		assert.Check(t, err)
		if !strings.HasPrefix(row.Key.Row, "person_") && !strings.HasPrefix(row.Key.Row, "name_") {
			keys = append(keys, row.Key.Partition+" "+row.Key.Row)
		}
	}
	return keys
}

// TestRemoveUnattached: the rows of a pattern that is no longer attached are removed, wherever they are, and those of the others stay.
func TestRemoveUnattached(t *testing.T) {
	const n = 60
	city := func(p *person) compoundkey.Part { return compoundkey.Int(int64(p.ID%5), 2) }
	for name, c := range map[string]struct {
		pattern         func(*patterns.Store) patterns.Pattern[person]
		deleted, listed int64
	}{
		"near":  {func(*patterns.Store) patterns.Pattern[person] { return emailIndex() }, n, n},
		"lists": {func(*patterns.Store) patterns.Pattern[person] { return indexentities.NewInPartition("email", city) }, 5, 0},
		"outside": {func(*patterns.Store) patterns.Pattern[person] {
			return interpartition.NewUnique("email", emailPart, nil)
		}, n, n},
		"table": {func(s *patterns.Store) patterns.Pattern[person] {
			return interpartition.NewIndex("email", emailPart, &interpartition.Options[person]{Table: s.Table("Emails" + strings.ReplaceAll(t.Name(), "/", ""))})
		}, n, n},
		"lists outside": {func(_ *patterns.Store) patterns.Pattern[person] {
			return indexentities.NewInTable("email", city, nil, nil)
		}, n, n},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			w := newDamagedTable(t, n, c.pattern, nameIndex())
			repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(w.repo.Table(), personSchema(), nameIndex()))
			unattached := []patterns.Pattern[person]{c.pattern(w.store)}
			found := 0
			options := &patterns.JobOptions{DryRun: true, Found: func(f patterns.Finding) error {
				if found++; f.Kind != patterns.Spurious || f.Pattern != "email" || f.Err != nil || f.Repaired != (found > int(c.deleted)) {
					t.Errorf("found %v", f)
				}
				return nil
			}}
			if report, err := repo.RemoveUnattached(ctx, unattached, options); err != nil || report.Deleted+report.Written != 0 || report.Findings != c.deleted {
				t.Fatalf("a dry run: %+v, %v", report, err)
			}
			options.DryRun = false
			if report, err := repo.RemoveUnattached(ctx, unattached, options); err != nil || report.Deleted != c.deleted || report.Written != c.listed || report.Failed != 0 || report.Findings != c.deleted || report.Resume != "" {
				t.Fatalf("%+v, %v", report, err)
			}
			if left := othersIn(t, w.repo.Table()); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if report, err := repo.RemoveUnattached(ctx, unattached, nil); err != nil || report.Deleted+report.Written != 0 {
				t.Errorf("another run: %+v, %v", report, err)
			}
			assert.Check(t, harness.Clean(ctx, repo.Verify, nil))
			next := assert.Must[*patterns.Store](t)(patterns.Open("again"+strings.ToLower(strings.ReplaceAll(name, " ", "")), &patterns.StoreOptions{Account: w.store.Account()}))
			again := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(next.Table(w.repo.Table().Name()), personSchema(), c.pattern(next), nameIndex()))
			assert.Check(t, next.Create(ctx))
			if report, err := again.Rebuild(ctx, nil); err != nil || report.Written != n {
				t.Errorf("attached again: %+v, %v", report, err)
			}
			assert.Check(t, harness.Clean(ctx, again.Verify, nil))
		})
	}
}

// TestRemoveUnattachedRefuses: what is attached, and what is not rows, is refused before any request.
func TestRemoveUnattachedRefuses(t *testing.T) {
	w := newDamagedTable(t, 1, func(*patterns.Store) patterns.Pattern[person] { return emailIndex() })
	before := w.requests()
	bound := nameIndex()
	_ = assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(w.store.Table("Other"), personSchema(), bound))
	for what, c := range map[string]struct {
		patterns []patterns.Pattern[person]
		options  *patterns.JobOptions
	}{
		"no pattern is given":                           {},
		"a pattern of this name is attached":            {patterns: []patterns.Pattern[person]{emailIndex()}},
		"the name is given twice":                       {patterns: []patterns.Pattern[person]{nameIndex(), nameIndex()}},
		"pattern number 1 is nil":                       {patterns: []patterns.Pattern[person]{nil}},
		"already belongs to a repository on table Othe": {patterns: []patterns.Pattern[person]{bound}},
		"Lag is":              {patterns: []patterns.Pattern[person]{nameIndex()}, options: &patterns.JobOptions{Lag: 1}},
		"JobOptions.Patterns": {patterns: []patterns.Pattern[person]{nameIndex()}, options: &patterns.JobOptions{Patterns: []string{"email"}}},
		"not Report.Resume":   {patterns: []patterns.Pattern[person]{nameIndex()}, options: &patterns.JobOptions{Resume: "x"}},
	} {
		if _, err := w.repo.RemoveUnattached(t.Context(), c.patterns, c.options); !errors.Is(err, map[bool]error{true: tables.ErrInvalid, false: tables.ErrWiring}[what == "not Report.Resume"]) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := w.requests() - before; n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestRequestCountsOfRemoveUnattached holds what docs/reference/costs.md says, for entities that list the index.
func TestRequestCountsOfRemoveUnattached(t *testing.T) {
	w := newDamagedTable(t, 200, func(*patterns.Store) patterns.Pattern[person] { return emailIndex() })
	const want = 1 + 1 + 2 + 2 // the page, its entities, two sets of them, two transactions of copies
	before := w.requests()
	if report, err := w.bare.RemoveUnattached(t.Context(), []patterns.Pattern[person]{emailIndex()}, nil); err != nil || report.Deleted != 200 || report.Written != 200 {
		t.Fatalf("%+v, %v", report, err)
	}
	if got := w.requests() - before; got != want {
		t.Errorf("%d requests, want %d", got, want)
	}
}

// removal is a table of three persons with two indexes, the rows of one of which are removed.
func removal(attachedAgain bool, more func(t testing.TB, s *storagetest.Service, with *patterns.Repository[person])) storagetest.SweepCase {
	return storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		name := s.TableName(t)
		open := func(s *storagetest.Service, attached ...patterns.Pattern[person]) (*patterns.Repository[person], error) {
			a, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
			if err != nil {
				return nil, err
			}
			return patterns.NewRepository(a.Table(name), personSchema(), attached...)
		}
		with := assert.Must[*patterns.Repository[person]](t)(open(s, emailIndex(), nameIndex()))
		assert.Check(t, with.Table().Create(t.Context()))
		for id := range 3 {
			p := ann()
			p.ID, p.Email, p.Photo = id, fmt.Sprint(id), nil
			assert.Check(t, with.Insert(t.Context(), p))
		}
		if more != nil {
			more(t, s, with)
		}
		remove := func(ctx context.Context, s *storagetest.Service) (patterns.RemoveReport, error) {
			r, err := open(s, nameIndex())
			if err != nil {
				return patterns.RemoveReport{}, err
			}
			return r.RemoveUnattached(ctx, []patterns.Pattern[person]{emailIndex()}, &patterns.JobOptions{Concurrency: 1})
		}
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error { _, err := remove(ctx, s); return err },
			Check: func(ctx context.Context, s *storagetest.Service, end storagetest.Ending) error {
				// Whatever is left: another run removes the rest, or the index is attached again and filled.
				var report patterns.RemoveReport
				var err error
				if !attachedAgain {
					report, err = remove(ctx, s)
				}
				if err != nil || end.Succeeded() && report.Deleted+report.Written > 0 {
					return fmt.Errorf("another run: %+v, %v", report, err)
				}
				again, err := open(s, emailIndex(), nameIndex())
				if err != nil {
					return err
				}
				if rebuilt, err := again.Rebuild(ctx, nil); err != nil || rebuilt.Written != 3 && !attachedAgain {
					return fmt.Errorf("attached again: %+v, %v", rebuilt, err)
				}
				return harness.Clean(ctx, again.Verify, nil)
			},
		}
	}}
}

// TestRemoveUnattachedSweep breaks the removal at every storage call, in every way: another run removes the rest, and the
// index can be attached again.
func TestRemoveUnattachedSweep(t *testing.T) {
	for name, c := range map[string]storagetest.SweepCase{
		"Removed":  removal(false, nil),
		"Attached": removal(true, nil),
		"Orphans": removal(false, func(t testing.TB, _ *storagetest.Service, with *patterns.Repository[person]) {
			bare := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(with.Table(), personSchema(), nameIndex()))
			_, err := bare.Update(t.Context(), tables.Key{Partition: "red", Row: "person_0001"}, func(p *person) error { p.Email = "moved"; return nil })
			assert.Check(t, err, bare.DeleteUnconditional(t.Context(), tables.Key{Partition: "red", Row: "person_0002"}))
			p := ann()
			p.ID, p.Email = 3, "new" // its copies have no entity that lists them, or none at all
			assert.Check(t, bare.Insert(t.Context(), p))
		}),
	} {
		c.Floor, c.Every = removePoints[name], harness.SweepEvery()
		t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
	}
}

var removePoints = map[string]int{"Removed": 176, "Attached": 176, "Orphans": 176}

// TestRemoveUnattachedBesideWriters: an entity and a copy that are written between the read and the write are read again.
func TestRemoveUnattachedBesideWriters(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name := s.TableName(t)
	open := func(s *storagetest.Service, attached ...patterns.Pattern[person]) *patterns.Repository[person] {
		a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
		return assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(a.Table(name), personSchema(), attached...))
	}
	with := open(s, emailIndex())
	assert.Check(t, with.Table().Create(ctx))
	for id := range 10 {
		p := ann()
		p.ID, p.Email, p.Photo = id, fmt.Sprint(id), nil
		assert.Check(t, with.Insert(ctx, p))
	}
	batches := 0
	faulty, _ := s.Faulty(storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
		if call.Kind != storagetest.Batch {
			return nil
		}
		if batches++; batches > 3 {
			return nil
		}
		return storagetest.Before("concurrent writer", func() {
			_, err := with.Update(ctx, tables.Key{Partition: "red", Row: fmt.Sprintf("person_%04d", batches)}, func(p *person) error { p.Salary++; return nil })
			assert.Check(t, err)
		})
	}))
	report, err := open(faulty).RemoveUnattached(ctx, []patterns.Pattern[person]{emailIndex()}, &patterns.JobOptions{Concurrency: 1})
	if err != nil || report.Deleted != 10 || report.Failed != 0 || report.Conflicts == 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	if report, err = open(s).RemoveUnattached(ctx, []patterns.Pattern[person]{emailIndex()}, nil); err != nil || report.Deleted+report.Written != 0 {
		t.Errorf("another run: %+v, %v", report, err)
	}
	if left := othersIn(t, with.Table()); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestRemoveUnattachedLeavesOtherTypes: in a table of two types without prefixes, an index of the other type under the same name stays.
func TestRemoveUnattachedLeavesOtherTypes(t *testing.T) {
	ctx, table := t.Context(), harness.NewTable(t, harness.Account(t))
	typed := func(prefix string, attached ...patterns.Pattern[person]) *patterns.Repository[person] {
		return assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, patterns.Schema[person]{Key: func(p *person) tables.Key {
			return tables.Key{Partition: p.Team, Row: compoundkey.Join(prefix, compoundkey.Int(p.ID, 4), compoundkey.String(p.Name))}
		}}, attached...))
	}
	ours, theirs := typed("a", emailIndex()), typed("b", emailIndex())
	for id, r := range []*patterns.Repository[person]{ours, theirs} {
		p := ann()
		p.ID, p.Email, p.Photo = id, fmt.Sprint(id), nil
		assert.Check(t, r.Insert(ctx, p))
	}
	if report, err := typed("a").RemoveUnattached(ctx, []patterns.Pattern[person]{emailIndex()}, nil); err != nil || report.Deleted != 1 || report.Written != 1 || report.Failed != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if left := othersIn(t, table); len(left) != 3 { // two entities, and the copy of one
		t.Errorf("left: %q", left)
	}
	assert.Check(t, harness.Clean(ctx, theirs.Verify, nil))
}

// TestRemoveUnattachedLeavesMarks: rows that the mover and the outbox keep beside entities have owners that a pattern's name may equal.
func TestRemoveUnattachedLeavesMarks(t *testing.T) {
	ctx, table := t.Context(), harness.NewTable(t, harness.Account(t))
	people := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(table, personSchema()))
	for row, owner := range map[string]string{"\uFFFCmovemark_x": "mover", "\uFFFCoutboxlock_x": "outbox", "outbox_x": "outbox"} {
		body := fmt.Sprintf(`{"PartitionKey":"Sales","RowKey":%q,"_tpShared":%q}`, row, owner)
		if _, err := table.Client().AddEntity(ctx, []byte(body), nil); err != nil {
			t.Fatal(err)
		}
	}
	city := func(*person) compoundkey.Part { return compoundkey.Part{} }
	unattached := []patterns.Pattern[person]{indexentities.NewInPartition("mover", city), indexentities.NewInPartition("outbox", city)}
	if report, err := people.RemoveUnattached(ctx, unattached, nil); err != nil || report.Deleted != 1 {
		t.Errorf("%+v, %v; want 1 deleted row, the list", report, err)
	}
}
