package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestReadsWithoutARepository: an index that was given to no repository says so, whatever is read through it.
func TestReadsWithoutARepository(t *testing.T) {
	ctx, x := context.Background(), ofShared(interpartition.NewIndex("email", emailOf, &interpartition.Options[employee]{ByPartition: true}))
	key := compoundkey.String("jonesj@contoso.com")
	reads := map[string]func() error{
		"Get":     func() error { _, err := x.In("Sales").Get(ctx, key); return err },
		"GetFull": func() error { _, err := x.In("Sales").GetFull(ctx, key); return err },
		"Query":   func() error { _, err := x.Query().Partition("p").Top(1).First(ctx); return err },
	}
	for name, read := range reads {
		if err := read(); !errors.Is(err, tables.ErrWiring) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string][]error{
		"All":   errorsOf(x.In("Sales").All(ctx, key)),
		"Range": errorsOf(x.In("Sales").Range(ctx)),
	} {
		if len(err) != 1 || !errors.Is(err[0], tables.ErrWiring) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// errorsOf reads to the end.
func errorsOf(all func(func(*employee, error) bool)) (errs []error) {
	for _, err := range all {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// numbered is number i of n employees, in the order of their emails and against that of their keys.
func numbered(n, i int) *employee {
	return &employee{Department: "Sales", ID: n - i, Email: fmt.Sprintf("e%03d", i)}
}

// TestRangeOfMany: many entities come in order, with whole pages of marked copies too, also where the caller stops. A row that cannot be read hides no
// others, and of a read that fails the error comes once, last.
func TestRangeOfMany(t *testing.T) {
	const n = 150
	for _, k := range []kind{{unique: true}, {}, {unique: true, spread: true}, {spread: true}} {
		t.Run(k.String(), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Simulator(t, nil)
			w := newWorld(t, s, k)
			p := assert.Must[*process](t)(w.start(s))
			for i := range n {
				if i%3 > 0 {
					assert.Check(t, p.repo.Insert(ctx, numbered(n, i)))
				}
			}
			dies := storagetest.If(func(c storagetest.Call) bool { return c.Kind == storagetest.Batch && c.Resource == w.table }, storagetest.OnIndex(max(k.spreadOver(), 1), storagetest.DiesAfter))
			dying, _ := s.Faulty(dies) // at the commit, after the marks: one of three copies stays marked
			dead := assert.Must[*process](t)(w.start(dying))
			x := dead.repo.Table().NewTransaction()
			for i := 0; i < n; i += 3 {
				dead.repo.StageInsert(x, numbered(n, i))
			}
			if _, err := x.Commit(ctx); err == nil {
				t.Fatal("the process did not die")
			}
			if marked := assert.Must[int](t)(p.marked(ctx)); marked != n/3 {
				t.Fatalf("%d copies are marked", marked)
			}
			index := p.email.In("Sales")
			var all []string
			for e, err := range index.Range(ctx) {
				assert.Check(t, err)
				all = append(all, e.Email)
			}
			if len(all) != n || !slices.IsSorted(all) {
				t.Fatalf("%d entities: %q", len(all), all)
			}
			for _, stop := range []int{1, 10, 64, 100} {
				var some []string
				for e, err := range index.Range(ctx) {
					assert.Check(t, err)
					if some = append(some, e.Email); len(some) == stop {
						break
					}
				}
				if !slices.Equal(some, all[:stop]) {
					t.Errorf("the first %d: %q", stop, some)
				}
			}
			between := compoundkey.Between(compoundkey.String("e010"), compoundkey.String("e020"))
			if err := each(10, index.Range(ctx, between)); err != nil {
				t.Error(err)
			}
			for _, fails := range []storagetest.Kind{storagetest.QueryEntities, storagetest.GetEntity} {
				faulty, _ := s.Faulty(storagetest.On(fails, storagetest.Always(storagetest.NotSent)))
				broken := assert.Must[*process](t)(w.start(faulty.WithRetries(0)))
				if errs := errorsOf(broken.email.In("Sales").Range(ctx)); len(errs) != 1 {
					t.Errorf("%v fails: %v", fails, errs)
				}
			}
		})
	}
}

// TestDamagedRows: a copy or an entity that cannot be read is an error of its row, and hides no others.
func TestDamagedRows(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := newWorld(t, s, kind{unique: true})
	p := assert.Must[*process](t)(w.start(s))
	for i := range 10 {
		assert.Check(t, p.repo.Insert(ctx, &employee{Department: "Sales", ID: i, Email: fmt.Sprintf("e%03d", i)}))
	}
	write := func(body string, mode aztables.UpdateMode) {
		t.Helper()
		_, err := p.repo.Table().Client().UpsertEntity(ctx, []byte(body), &aztables.UpsertEntityOptions{UpdateMode: mode})
		assert.Check(t, err)
	}
	write(`{"PartitionKey":"email_Sales","RowKey":"e003","ID":"no number"}`, aztables.UpdateModeMerge)
	write(`{"PartitionKey":"email_Sales","RowKey":"e005","_tpMark":"M"}`, aztables.UpdateModeMerge)
	write(`{"PartitionKey":"Sales","RowKey":"empid_000005","ID":"no number"}`, aztables.UpdateModeMerge)
	var read, bad int
	for _, err := range p.email.In("Sales").Range(ctx) {
		var e *tables.Error
		switch {
		case err == nil:
			read++
		case errors.Is(err, tables.ErrGarbled) && errors.As(err, &e) && e.OfRow:
			bad++
		default:
			t.Error(err)
		}
	}
	if read != 8 || bad != 2 {
		t.Errorf("%d entities and %d damaged rows", read, bad)
	}
}

// TestProjectedChanges: an entity that was read through a projection is merged and deleted as it was read, also through a marked copy; it is not replaced.
func TestProjectedChanges(t *testing.T) {
	for _, mark := range []bool{false, true} {
		ctx, s := t.Context(), storagetest.Simulator(t, nil)
		w := newWorld(t, s, kind{unique: true})
		p := assert.Must[*process](t)(w.start(s))
		badge := compoundkey.String("B-1")
		get := func() *employee {
			t.Helper()
			if mark {
				_, err := p.badges.Client().UpsertEntity(ctx, []byte(`{"PartitionKey":"badge","RowKey":"B-1","_tpMark":"M","Name":"old"}`), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge})
				assert.Check(t, err)
			}
			return assert.Must[*employee](t)(p.badge.Get(ctx, badge))
		}
		e := jones()
		assert.Check(t, p.repo.Insert(ctx, e))
		found := get()
		if found.Name != "June Jones" || found.Email != "" {
			t.Fatalf("%+v", found)
		}
		harness.WantKind(t, p.repo.Replace(ctx, found), tables.ErrInvalid)
		found = get()
		found.Name = "June Merged"
		assert.Check(t, p.repo.Merge(ctx, found, "Name"))
		if whole := assert.Must[*employee](t)(p.repo.Get(ctx, e.Key())); whole.Name != "June Merged" || whole.Email != e.Email {
			t.Errorf("%+v", whole)
		}
		// What was read has changed, in a property that the copy holds.
		for name, change := range map[string]func(*employee) error{"Merge": func(v *employee) error { return p.repo.Merge(ctx, v, "Name") }, "Delete": func(v *employee) error { return p.repo.Delete(ctx, v) }} {
			stale := get()
			if _, err := p.repo.Update(ctx, e.Key(), func(v *employee) error { v.Name += "!"; return nil }); err != nil {
				t.Fatal(err)
			}
			if err := change(stale); !errors.Is(err, tables.ErrConflict) {
				t.Errorf("marked %v: %s of what has changed: %v", mark, name, err)
			}
		}
		assert.Check(t, p.repo.Delete(ctx, get()))
		if _, err := w.check(ctx, s); err != nil {
			t.Error(err)
		}
	}
}

// TestVerifyOfIndexesInOneTable: a row that is nobody's any more is reported of the index whose key it has, although the
// other's name begins with the same text.
func TestVerifyOfIndexesInOneTable(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := newWorld(t, s, kind{})
	p := assert.Must[*process](t)(w.start(s))
	mail := interpartition.NewUnique("mail", emailOf, &interpartition.Options[employee]{Table: p.badges})
	byDepartment := interpartition.NewUnique("mail-2", emailOf, &interpartition.Options[employee]{ByPartition: true, Table: p.badges})
	repo := p.open(t, s, "other", mail, byDepartment)
	if err := repo.Insert(ctx, jones()); err != nil {
		t.Fatal(err)
	}
	options := &patterns.JobOptions{Lag: time.Millisecond}
	if got := discrepancies(t, repo, options); len(got) != 0 {
		t.Fatalf("right after the write: %q", got)
	}
	for _, partition := range []string{"mail", "mail-2_Sales"} {
		moveRow(t, p.badges, tables.Key{Partition: partition, Row: "jonesj@contoso.com"}, "old@contoso.com")
	}
	want := []string{"missing mail", "missing mail-2", "spurious mail", "spurious mail-2"}
	if got := discrepancies(t, repo, options); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
}

func discrepancies(t testing.TB, repo *patterns.Repository[employee], options *patterns.JobOptions) (all []string) {
	t.Helper()
	found, err := harness.Findings(t.Context(), repo.Verify, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		all = append(all, fmt.Sprintf("%v %s", d.Kind, d.Pattern))
	}
	slices.Sort(all)
	return all
}

// moveRow gives a stored row another row key.
func moveRow(t testing.TB, table *tables.Table, key tables.Key, row string) {
	t.Helper()
	answer, err := table.Client().GetEntity(t.Context(), key.Partition, key.Row, nil)
	if err != nil {
		t.Fatal(err)
	}
	var e aztables.EDMEntity
	if err := e.UnmarshalJSON(answer.Value); err != nil {
		t.Fatal(err)
	}
	e.RowKey, e.Timestamp, e.ETag = row, aztables.EDMDateTime{}, ""
	moved, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Client().AddEntity(t.Context(), moved, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Client().DeleteEntity(t.Context(), key.Partition, key.Row, nil); err != nil {
		t.Fatal(err)
	}
}
