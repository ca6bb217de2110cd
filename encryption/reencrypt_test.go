package encryption_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func byName() *intrapartition.Unique[employee, compoundkey.Part] {
	return intrapartition.NewUnique("name", func(e *employee) compoundkey.Part {
		return compoundkey.Tuple(compoundkey.String(e.Name), compoundkey.Int(e.ID, 6))
	}, nil)
}

// TestReencrypt: from an old data key to none of its uses, with copies, and only then is it removed.
func TestReencrypt(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	const n = 30
	r := w.employees(t, w.s.TableName(t), nil, byName())
	for id := range n {
		assert.Check(t, r.Insert(ctx, june([]string{"Sales", "Works"}[id%2], id)))
	}
	var old encryption.DataKeyID
	for info, err := range w.registry.DataKeys(ctx) {
		assert.Check(t, err)
		old = info.ID
	}
	const each = 2 * 9 // rows, encrypted properties with the seal
	uses := assert.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(ctx, r.Table()))
	if len(uses) != 1 || uses[old] != n*each {
		t.Fatalf("before: %v", uses)
	}
	refused := func(what string) {
		t.Helper()
		assert.ErrorIs(t, w.registry.RemoveUnusedDataKey(ctx, old, r.Table()), tables.ErrConflict, what)
	}
	refused("the current key")
	now := assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(ctx))
	refused("its successor is new")
	w.registry.SetNow(func() time.Time { return time.Now().Add(25 * time.Hour) })
	refused("it has uses")
	assert.ErrorIs(t, w.registry.RemoveUnusedDataKey(ctx, old), tables.ErrInvalid, "no table to look at")

	// Cut off after each page, and resumed.
	var progress patterns.RewriteReport
	cut, runs := errors.New("cut off"), 0
	for {
		runs++
		stopped, stop := context.WithCancelCause(ctx)
		p, err := encryption.Reencrypt(stopped, r, &patterns.JobOptions{Partitions: []string{"Sales", "Works"}, Resume: progress.Resume, Concurrency: 3,
			Progress: func(tables.Progress) { stop(cut) },
			Found:    func(f patterns.Finding) error { return fmt.Errorf("found %v", f) }})
		stop(nil)
		progress.Read += p.Read
		progress.Written += p.Written
		progress.Resume = p.Resume
		if err == nil || p.Resume == "" {
			assert.Equal(t, p.Resume, "", "a token at the end: %+v", p)
			break
		}
	}
	if progress.Written != n || progress.Read != n || runs != 2 {
		t.Errorf("%+v in %d runs", progress, runs)
	}
	uses = assert.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(ctx, r.Table()))
	if uses[old] != 0 || uses[now] != n*each {
		t.Errorf("after: %v", uses)
	}
	whole := assert.Must[patterns.RewriteReport](t)(encryption.Reencrypt(ctx, r, nil))
	if whole.Written != 0 || whole.Read != n {
		t.Errorf("another run: %+v", whole)
	}
	assert.Check(t, w.registry.RemoveUnusedDataKey(ctx, old, r.Table()))
	reader := assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), w.open(t, w.wrapper, nil), nil))
	for id := range n {
		assert.Check(t, assert.Err(reader.Get(ctx, employeeKey([]string{"Sales", "Works"}[id%2], id))))
	}
	assert.Check(t, w.registry.Check(ctx))
	for what, o := range map[string]*patterns.JobOptions{"a mark of another run": {Partitions: []string{"Sales"}, Resume: "7 x"}, "no mark": {Partitions: []string{"Sales"}, Resume: "x"}, "-1": {Concurrency: -1},
		"Patterns": {Patterns: []string{"encryption"}}, "Lag": {Lag: 1}, "Rows": {Rows: 1}, "DryRun": {DryRun: true}} {
		if _, err := encryption.Reencrypt(ctx, r, o); !errors.Is(err, map[bool]error{true: tables.ErrInvalid, false: tables.ErrWiring}[o.Resume != ""]) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestReencryptFaults: cut off at any call by any fault, what is there stays readable, and the next run brings it to the end.
func TestReencryptFaults(t *testing.T) {
	points := 0
	for i := 0; ; i++ {
		struck := false
		for _, fault := range storagetest.SweepFaults() {
			w := worldOn(t, storagetest.Simulator(t, nil))
			r := w.employees(t, "Employees", nil, byName())
			for id := range 3 {
				assert.Check(t, r.Insert(t.Context(), june("Sales", id)))
			}
			current := assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(t.Context()))
			faulty, faults := w.s.Faulty(storagetest.OnIndex(i, storagetest.Once(storagetest.Always(fault))))
			account := open(t, faulty)
			registry := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(account.Table(w.keys.Name()), w.wrapper, nil))
			struckBy := assert.Must[*patterns.Repository[employee]](t)(employeesOf(account.Table("Employees"), registry, nil, byName()))
			_, _ = encryption.Reencrypt(t.Context(), struckBy, &patterns.JobOptions{Concurrency: 1})
			if len(faults.Met()) > 0 {
				struck = true
				points++
			}
			for id := range 3 {
				assert.Check(t, assert.Err(r.Get(t.Context(), employeeKey("Sales", id))))
			}
			if p := assert.Must[patterns.RewriteReport](t)(encryption.Reencrypt(t.Context(), r, nil)); p.Failed != 0 {
				t.Errorf("call %d, %v: the next run: %+v", i, fault, p)
			}
			uses := assert.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(t.Context(), r.Table()))
			if len(uses) != 1 || uses[current] != 3*2*9 {
				t.Errorf("call %d, %v: %v", i, fault, uses)
			}
			assert.NoError(t, harness.Clean(t.Context(), r.Verify, nil), "call %d, %v", i, fault)
		}
		if !struck {
			break
		}
	}
	t.Logf("%d points", points)
	if points < 40 {
		t.Errorf("only %d points", points)
	}
}

// losesAnswer is a policy that loses the response to the first write of a table's row, and lets a concurrent writer follow.
type losesAnswer struct {
	once sync.Once
	then func()
}

func (l *losesAnswer) Do(req *policy.Request) (*http.Response, error) {
	response, err := req.Next()
	if err == nil && req.Raw().Method == http.MethodPut {
		l.once.Do(func() {
			response.Body.Close()
			l.then()
			response, err = nil, errors.New("the connection was closed")
		})
	}
	return response, err
}

// TestReencryptUnknownOutcome: if the outcome of a write is unknown, since its response was lost and a concurrent writer followed, the
// entity is written again.
func TestReencryptUnknownOutcome(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	r := w.employees(t, w.s.TableName(t), nil)
	assert.Check(t, r.Insert(ctx, june("Sales", 1)))
	assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(ctx))
	s, lost := *w.s, &losesAnswer{then: func() {
		assert.Must[*employee](t)(r.Update(ctx, employeeKey("Sales", 1), func(e *employee) error { e.Grade++; return nil }))
	}}
	s.ClientOptions.PerCallPolicies = append(slices.Clip(s.ClientOptions.PerCallPolicies), lost)
	again := assert.Must[*patterns.Repository[employee]](t)(employeesOf(open(t, &s).Table(r.Table().Name()), w.registry, nil))
	report, err := encryption.Reencrypt(ctx, again, nil)
	if err != nil || report.Failed != 0 || report.Written != 1 || report.Conflicts != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestReencryptUnderWriters: what concurrent writers write meanwhile is not lost, and what cannot be decrypted is told and passed over.
func TestReencryptUnderWriters(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	table := w.account.Table(w.s.TableName(t))
	assert.Check(t, table.Create(ctx))
	before := assert.Must[*tables.Rows[tables.Entity]](t)(tables.RowsOf[tables.Entity](table))
	for id := range 12 { // in plaintext, from before
		assert.Check(t, before.Insert(ctx, &tables.Entity{Key: employeeKey("Sales", id), Properties: tables.Properties{
			text("Department", "Sales"), {Name: "ID", Value: tables.Int64(int64(id))}, text("Name", "June"), {Name: "Salary", Value: tables.Int64(0)},
			{Name: "Born", Value: assert.Must[tables.Value](t)(tables.DateTime(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)))}}}))
	}
	r := assert.Must[*patterns.Repository[employee]](t)(employeesOf(table, w.registry, &encryption.Options{AcceptPlaintext: true}))
	assert.Check(t, r.Insert(ctx, june("Sales", 99)))
	broken := bag(t, table, employeeKey("Sales", 99))
	broken.Properties.Delete(encryption.SealProperty)
	put(t, table, broken)

	done := make(chan error)
	go func() {
		for id := range 12 {
			for range 3 {
				if _, err := r.Update(ctx, employeeKey("Sales", id), func(e *employee) error { e.Salary++; return nil }); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	var failed []tables.Key
	p, err := encryption.Reencrypt(ctx, r, &patterns.JobOptions{Found: func(f patterns.Finding) error {
		refusedBy(t, f.Err, "the broken one")
		if f.Kind != patterns.Undecodable || f.Pattern != "encryption" || f.Table != table.Name() {
			t.Errorf("found %v", f)
		}
		failed = append(failed, f.Entity)
		return nil
	}})
	assert.Check(t, err, <-done)
	if len(failed) != 1 || failed[0] != employeeKey("Sales", 99) || p.Failed != 1 || p.Read != 13 {
		t.Errorf("failed: %v, %+v", failed, p)
	}
	strict := assert.Must[*patterns.Repository[employee]](t)(employeesOf(table, w.registry, nil))
	for id := range 12 {
		assert.Equal(t, assert.Must[*employee](t)(strict.Get(ctx, employeeKey("Sales", id))).Salary, 3, "the salary of employee %d", id)
	}
}

// TestFoundEndsReencrypt: an error of Found ends the run, and a run that resumes from its report reads the rest.
func TestFoundEndsReencrypt(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	r := w.employees(t, w.s.TableName(t), nil)
	for id := range 4 {
		assert.Check(t, r.Insert(ctx, june([]string{"Sales", "Works"}[id%2], id)))
	}
	for _, key := range []tables.Key{employeeKey("Sales", 2), employeeKey("Works", 1), employeeKey("Works", 3)} {
		broken := bag(t, r.Table(), key)
		broken.Properties.Delete(encryption.SealProperty)
		put(t, r.Table(), broken)
	}
	enough := errors.New("enough")
	var found []string
	o := patterns.JobOptions{Partitions: []string{"Sales", "Works"}, Concurrency: 1, Found: func(f patterns.Finding) error {
		if found = append(found, f.Entity.Partition); len(found) == 2 {
			return enough
		}
		return nil
	}}
	report, err := encryption.Reencrypt(ctx, r, &o)
	if !errors.Is(err, enough) || report.Resume == "" || report.PartitionsDone != 1 || report.Read != 2 || report.Unchanged != 1 || report.Elapsed <= 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	o.Resume = report.Resume
	report, err = encryption.Reencrypt(ctx, r, &o)
	if err != nil || report.Resume != "" || report.PartitionsDone != 2 || report.Read != 2 || report.Failed != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	if want := []string{"Sales", "Works", "Works", "Works"}; !slices.Equal(found, want) {
		t.Errorf("found in %q, want %q", found, want)
	}
}

// watching is a pattern that notes the kinds of the changes that it sees.
type watching struct{ kinds []driver.ChangeKind }

func (x *watching) Attach(driver.Host, *employee) (driver.Implementation, error) {
	return driver.Implementation{Name: "watching", Companions: func(_ context.Context, c *driver.Change, _ *tables.Transaction) error {
		x.kinds = append(x.kinds, c.Kind)
		return nil
	}}, nil
}

// TestReencryptRequests: entities of a partition are read by page and written in change sets, and other patterns see them touched.
func TestReencryptRequests(t *testing.T) {
	for what, want := range map[string]int{
		"plain": 1 + 1 + 2, "indexed": 1 + 1 + 4, "watched": 1 + 1 + 2,
	} {
		t.Run(what, func(t *testing.T) {
			w, ctx, n := newWorld(t), t.Context(), 200
			if what == "watched" {
				n = 60
			}
			seen := &watching{}
			others := func() []patterns.Pattern[employee] {
				return map[string][]patterns.Pattern[employee]{"indexed": {byName()}, "watched": {seen}}[what]
			}
			name := w.s.TableName(t)
			_, err := w.employees(t, name, nil, others()...).BulkNonAtomic(ctx, func(yield func(*employee, error) bool) {
				for id := range n {
					if !yield(june("Sales", id), nil) {
						return
					}
				}
			}, nil)
			assert.Check(t, err)
			assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(ctx))
			counted, counter := harness.CountedService(w.s)
			account := open(t, counted)
			registry := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(account.Table(w.keys.Name()), w.wrapper, nil))
			r := assert.Must[*patterns.Repository[employee]](t)(employeesOf(account.Table(name), registry, nil, others()...))
			assert.Check(t, assert.Err(r.Get(ctx, employeeKey("Sales", 0))), r.Insert(ctx, june("Warm", 1))) // so that it has read both data keys
			seen.kinds = nil
			counter.Reset()
			report, err := encryption.Reencrypt(ctx, r, &patterns.JobOptions{Concurrency: 1})
			if err != nil || report.Written != int64(n) || report.Read != int64(n)+1 || report.Unchanged != 1 {
				t.Fatalf("%+v, %v", report, err)
			}
			assert.Equal(t, counter.Count(), want, "requests")
			if what == "watched" && !slices.Equal(slices.Compact(seen.kinds), []driver.ChangeKind{driver.ChangeTouch}) {
				t.Errorf("it has seen %v", seen.kinds)
			}
		})
	}
}
