package denormalization_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestHolderAfterItsSource: a department that is inserted, replaced, merged or upserted has the details of the manager whom it
// says, or of the one who names it, whatever its writer has put there.
func TestHolderAfterItsSource(t *testing.T) {
	everywhere(t, func(t tested) {
		ctx := t.Context()
		assert.Check(t, t.employees.Insert(ctx, jones()), t.employees.Insert(ctx, kwok()))
		a := &department{Site: "Sales", Name: "A", ManagerSite: "Sales", ManagerID: jones().ID, ManagerName: "?"}
		assert.Check(t, t.departments.Insert(ctx, a))
		if a.ManagerName != "Jones" {
			t.Errorf("the caller has the manager %q", a.ManagerName)
		}
		t.want("A", "Jones jones@contoso.com")
		assert.Check(t, t.departments.Insert(ctx, &department{Site: "Sales", Name: "B", ManagerSite: "Sales", ManagerID: kwok().ID, ManagerName: "?"}))
		t.want("B", "") // he does not name it
		assert.Check(t, t.departments.Insert(ctx, &department{Site: "Sales", Name: "C", ManagerName: "?"}))
		t.want("C", "")
		read := func() *department {
			return assert.Must[*department](t)(t.departments.Get(ctx, departmentKey("Sales", "A")))
		}
		a = read()
		a.ManagerID, a.ManagerName, a.ManagerEmail, a.Budget = 0, "", "", 2
		assert.Check(t, t.departments.Replace(ctx, a))
		t.want("A", "Jones jones@contoso.com")
		a = read()
		a.ManagerName, a.Budget = "?", 3
		assert.Check(t, t.departments.Merge(ctx, a, "ManagerName", "Budget"))
		t.want("A", "Jones jones@contoso.com")
		assert.Check(t, t.departments.Upsert(ctx, &department{Site: "Sales", Name: "A", Budget: 4}))
		t.want("A", "Jones jones@contoso.com")
		a = read()
		a.ManagerID = kwok().ID // who does not name it
		assert.Check(t, t.departments.Replace(ctx, a))
		t.want("A", "Jones jones@contoso.com")
		if a = read(); a.Budget != 4 {
			t.Errorf("the budget is %d", a.Budget)
		}
		assert.Check(t, t.departments.Delete(ctx, a), drainNow(ctx, t.queue))
		if got := wrong(t, t.employees.Verify); len(got) != 0 {
			t.Errorf("Verify finds %q", got)
		}
	})
}

// TestMergedHolderHasItsCopy: after a merge, by whatever verb, the caller's value has the copy that was stored, and keeps what the
// merge did not name.
func TestMergedHolderHasItsCopy(t *testing.T) {
	everywhere(t, func(t tested) {
		ctx := t.Context()
		assert.Check(t, t.employees.Insert(ctx, jones()), t.employees.Insert(ctx, kwok()))
		assert.Check(t, t.departments.Insert(ctx, &department{Site: "Sales", Name: "A", ManagerSite: "Sales", ManagerID: jones().ID}))
		for verb, merge := range map[string]func(d *department, names ...string) error{
			"Merge": func(d *department, names ...string) error { return t.departments.Merge(ctx, d, names...) },
			"StageMerge": func(d *department, names ...string) error {
				x := t.departments.Table().NewTransaction()
				t.departments.StageMerge(x, d, names...)
				_, err := x.Commit(ctx)
				return err
			},
			"BulkMerge": func(d *department, names ...string) error {
				_, err := t.departments.BulkNonAtomic(ctx, func(yield func(*department, error) bool) { yield(d, nil) }, &tables.BulkOptions{Verb: tables.BulkMerge, Properties: names})
				return err
			},
		} {
			for _, names := range [][]string{{"ManagerID"}, {"ManagerID", "ManagerName"}, nil} {
				d := assert.Must[*department](t)(t.departments.Get(ctx, departmentKey("Sales", "A")))
				d.ManagerID, d.Budget = kwok().ID, d.Budget+1 // Kwok does not name the department
				if slices.Contains(names, "ManagerName") {
					d.ManagerName = "?"
				}
				budget := d.Budget
				assert.Check(t, merge(d, names...))
				if d.ManagerID != jones().ID || d.ManagerName != "Jones" || d.Budget != budget {
					t.Errorf("after %s of %q the caller has %+v", verb, names, d)
				}
				assert.Check(t, t.departments.Replace(ctx, d))
				t.want("A", "Jones jones@contoso.com")
			}
			for part, err := range t.departments.Query().Partition("Sales").Select("Budget").All(ctx) {
				part.ManagerName = "?"
				assert.Check(t, err, merge(part, "ManagerName"))
				if part.ManagerName != "Jones" || part.ManagerEmail != "" || !part.Partial() {
					t.Errorf("after %s of a projection the caller has %+v", verb, part)
				}
			}
		}
	})
}

// TestHolderOfNoSource: where the source is required, a holder that refers to none that exists is refused before anything is
// written; elsewhere it has no copy, and gets it when the source is inserted.
func TestHolderOfNoSource(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := newOffices(t, s, 0)
	p := assert.Must[*officeProcess](t)(w.start(s))
	early := &member{ID: 1, Office: "L", Note: "kept", OfficeCity: "?"}
	assert.Check(t, p.members.Insert(ctx, early))
	if early.OfficeCity != "" {
		t.Errorf("the city is %q", early.OfficeCity)
	}
	assert.Check(t, p.offices.Insert(ctx, &office{Code: "L", City: "London"}))
	assert.Must[map[string]int](t)(w.checkCopies(ctx, s))

	w.required = true
	p = assert.Must[*officeProcess](t)(w.start(s))
	assert.Check(t, p.members.Insert(ctx, &member{ID: 2, Office: "L", Note: "kept"}))
	err := p.members.Insert(ctx, &member{ID: 3, Office: "X"})
	var e *tables.Error
	if !errors.Is(err, tables.ErrMissingReference) || !errors.As(err, &e) || e.Pattern != "city.holder" {
		t.Errorf("the insert without its office: %v", err)
	}
	_, err = p.members.Update(ctx, memberKey(2), func(m *member) error { m.Office = "X"; return nil })
	if !errors.Is(err, tables.ErrMissingReference) {
		t.Errorf("the move to no office: %v", err)
	}
	if n := assert.Must[int](t)(p.queue.Length(ctx)); n != 0 {
		t.Errorf("%d intents are left", n)
	}
	if cities := assert.Must[map[string]int](t)(w.checkCopies(ctx, s)); cities["London"] != 2 {
		t.Errorf("cities are %v", cities)
	}
	in := assert.Must[*process](t)(newWorld(t, s, inPartition).start(s))
	if err := in.departments.Insert(ctx, &department{Site: "Sales", Name: "A", ManagerSite: "Sales", ManagerID: 7}); !errors.Is(err, tables.ErrMissingReference) {
		t.Errorf("in the partition, without its manager: %v", err)
	}
	if err := in.departments.Insert(ctx, &department{Site: "Sales", Name: "A", ManagerSite: "North", ManagerID: 7}); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("in the partition, with a manager elsewhere: %v", err)
	}
}

// TestHolderWriterDies: the source changes after the holder's writer has read it, and the writer dies once the holder is stored.
// A worker gives the holder its source's copy.
func TestHolderWriterDies(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := newOffices(t, s, 0)
	own := assert.Must[*officeProcess](t)(w.start(s))
	assert.Check(t, own.offices.Insert(ctx, &office{Code: "L", City: "London"}))
	change := storagetest.Before("the office moves", func() {
		assert.Check(t, own.offices.Upsert(ctx, &office{Code: "L", City: "Leeds"}))
	})
	moved, _ := s.Faulty(storagetest.On(storagetest.InsertEntity, storagetest.Once(storagetest.Always(change))))
	dying, faults := moved.Faulty(storagetest.On(storagetest.InsertEntity, storagetest.Once(storagetest.DiesAfter)))
	alive, cancel := faults.Context(ctx)
	defer cancel()
	_ = assert.Must[*officeProcess](t)(w.start(dying)).members.Insert(alive, &member{ID: 1, Office: "L", Note: "kept"})
	if !faults.Dead() {
		t.Fatal("it lives")
	}
	if m := assert.Must[*member](t)(own.members.Get(ctx, memberKey(1))); m.OfficeCity != "London" {
		t.Fatalf("the city is %q before a worker comes", m.OfficeCity)
	}
	assert.Check(t, w.drain(ctx, s))
	if cities := assert.Must[map[string]int](t)(w.checkCopies(ctx, s)); cities["Leeds"] != 1 {
		t.Errorf("cities are %v", cities)
	}
}

// dated is a holder whose zero value cannot be stored: it has a plain time.
type dated struct {
	tables.Meta
	ID     int
	Hired  time.Time
	Office string
	City   string
}

// TestHolderWithATime: what a holder holds beside the copy need not be storable in a zero holder.
func TestHolderWithATime(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	account, queue, err := connect(s, s.QueueName(t))
	assert.Check(t, err)
	link := denormalization.Link[office, dated]{
		Properties: []string{"City", "Office"},
		Holders:    func(_ *office) []tables.Key { return []tables.Key{memberKey(1), memberKey(2)} },
		Copy: func(o *office, d *dated) {
			if o == nil {
				o = &office{}
			}
			d.City, d.Office = o.City, o.Code
		},
		SourceOf: func(d *dated) (tables.Key, bool) { return officeKey(d.Office), d.Office != "" },
	}
	copies := denormalization.New("city", link, nil)
	holders := assert.Must[*patterns.Repository[dated]](t)(patterns.NewRepository(harness.In(account.Table(s.TableName(t)), queue),
		patterns.Schema[dated]{Key: func(d *dated) tables.Key { return memberKey(d.ID) }}, copies.Holder()))
	offices := assert.Must[*patterns.Repository[office]](t)(patterns.NewRepository(harness.In(account.Table(s.TableName(t)), queue),
		patterns.Schema[office]{Key: func(o *office) tables.Key { return officeKey(o.Code) }}, copies.Source()))
	assert.Check(t, queue.Create(ctx), holders.Table().Create(ctx), offices.Table().Create(ctx))
	hired := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	london := &office{Code: "L", City: "London"}
	assert.Check(t, holders.Insert(ctx, &dated{ID: 1, Hired: hired}), offices.Insert(ctx, london))
	assert.Check(t, holders.Insert(ctx, &dated{ID: 2, Hired: hired, Office: "L"}))
	london.City = "Leeds"
	assert.Check(t, offices.Replace(ctx, london))
	for id := 1; id <= 2; id++ {
		if d := assert.Must[*dated](t)(holders.Get(ctx, memberKey(id))); d.City != "Leeds" || !d.Hired.Equal(hired) {
			t.Errorf("holder %d is %+v", id, d)
		}
	}
	if got := wrong(t, offices.Verify); len(got) != 0 {
		t.Errorf("Verify finds %q", got)
	}
	err = holders.Insert(ctx, &dated{ID: 3})
	if !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("a holder that cannot be stored: %v", err)
	}
	assert.Check(t, offices.Delete(ctx, london))
	if d := assert.Must[*dated](t)(holders.Get(ctx, memberKey(2))); d.City != "" || d.Office != "" {
		t.Errorf("after its source it is %+v", d)
	}
}

// fanOutWorld is one employee who names n departments.
type fanOutWorld struct {
	n       int
	calls   atomic.Int64 // of Link.Holders
	holders *patterns.Repository[department]
	sources *patterns.Repository[employee]
}

func (w *fanOutWorld) insert(ctx context.Context) error { return w.sources.Insert(ctx, jones()) }

// stored is an error unless all holders have the copy.
func (w *fanOutWorld) stored(ctx context.Context) error {
	copied := 0
	for d, err := range w.holders.Query().Partition("Sales").All(ctx) {
		if err != nil {
			return err
		}
		if d.ManagerName == "Jones" {
			copied++
		}
	}
	if copied != w.n {
		return fmt.Errorf("%d holders of %d have the copy", copied, w.n)
	}
	return nil
}

func newFanOutWorld(t testing.TB, n int) *fanOutWorld {
	t.Helper()
	w := &fanOutWorld{n: n}
	s := storagetest.Simulator(t, nil)
	account, queue, err := connect(s, "queue")
	assert.Check(t, err)
	keys := make([]tables.Key, n)
	for i := range keys {
		keys[i] = departmentKey("Sales", fmt.Sprint(i))
	}
	l := managing()
	l.Holders = func(*employee) []tables.Key {
		w.calls.Add(1)
		return keys
	}
	copies := denormalization.New("manager", l, nil)
	schema := patterns.Schema[department]{Key: func(d *department) tables.Key { return departmentKey(d.Site, d.Name) }}
	w.holders = assert.Must[*patterns.Repository[department]](t)(patterns.NewRepository(harness.In(account.Table("Holders"), queue), schema, copies.Holder()))
	w.sources = assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(account.Table("Sources"), queue),
		patterns.Schema[employee]{Key: func(e *employee) tables.Key { return employeeKey(e.Site, e.ID) }}, copies.Source()))
	_, err = blobstorage.Container(account, "queue").Create(t.Context(), nil)
	assert.Check(t, err, queue.Create(t.Context()), w.holders.Table().Create(t.Context()), w.sources.Table().Create(t.Context()))
	older := assert.Must[*patterns.Repository[department]](t)(patterns.NewRepository(account.Table("Holders"), schema))
	_, err = older.BulkNonAtomic(t.Context(), func(yield func(*department, error) bool) {
		for i := range n {
			if !yield(&department{Site: "Sales", Name: fmt.Sprint(i)}, nil) {
				return
			}
		}
	}, nil)
	assert.Check(t, err)
	return w
}

// TestFanOutIsLinear: how often Link.Holders is called for a change does not depend on the number of holders.
func TestFanOutIsLinear(t *testing.T) {
	calls := map[int]int64{}
	for _, n := range []int{20, 400} {
		w := newFanOutWorld(t, n)
		assert.Check(t, w.insert(t.Context()), w.stored(t.Context()))
		calls[n] = w.calls.Load()
	}
	if calls[20] != calls[400] || calls[20] == 0 {
		t.Errorf("Link.Holders is called %d times for 20 holders, and %d times for 400", calls[20], calls[400])
	}
}

// BenchmarkFanOut is a change of a source whose holders all need the copy.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				w := newFanOutWorld(b, n)
				b.StartTimer()
				assert.Check(b, w.insert(b.Context()))
				b.StopTimer()
				assert.Check(b, w.stored(b.Context()))
				b.StartTimer()
			}
		})
	}
}
