package encryption_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// indexes are of every kind: full and lean, in the partition and outside.
type indexes struct {
	name, lean     *intrapartition.Unique[employee, compoundkey.Part]
	badge, badgeID *interpartition.Unique[employee, compoundkey.Part]
}

func newIndexes() indexes {
	byID := func(e *employee) compoundkey.Part { return compoundkey.Int(e.ID, 6) }
	return indexes{
		name:    byName(),
		lean:    intrapartition.NewUnique("lean", byID, &intrapartition.Options{Project: []string{"Name", "Salary"}}),
		badge:   interpartition.NewUnique("badge", byID, &interpartition.Options[employee]{ByPartition: true}),
		badgeID: interpartition.NewUnique("badgeid", byID, &interpartition.Options[employee]{ByPartition: true, Project: []string{"Number"}}),
	}
}

func (w *world) indexed(t testing.TB, table string, x indexes) (*patterns.Repository[employee], *eventual.Queue) {
	t.Helper()
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(w.account, w.s.QueueName(t), nil))
	assert.Check(t, queue.Create(t.Context()))
	r := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(w.account.Table(table), queue), patterns.Schema[employee]{
		Key: func(e *employee) tables.Key { return employeeKey(e.Department, e.ID) }, Prefix: "empid",
	}, encryption.New[employee]("encryption", w.registry, nil), x.name, x.lean, x.badge, x.badgeID))
	assert.Check(t, r.Table().CreateIfMissing(t.Context()))
	return r, queue
}

// TestCopies: copies in the partition and outside are read with the entity's key; those that keep less, and projections, with what they have.
func TestCopies(t *testing.T) {
	w := newWorld(t)
	ctx, x := t.Context(), newIndexes()
	r, _ := w.indexed(t, w.s.TableName(t), x)
	wrote := june("Sales", 223)
	assert.Check(t, r.Insert(ctx, wrote))
	for range 2 {
		assert.Check(t, sameEmployee(assert.Must[*employee](t)(x.badge.In("Sales").Get(ctx, compoundkey.Int(223, 6))), wrote))
		found := 0
		for e, err := range x.name.In("Sales").Range(ctx) {
			assert.Check(t, err, sameEmployee(e, wrote))
			found++
		}
		assert.Equal(t, found, 1, "found by name")
		lean, err := x.lean.In("Sales").Get(ctx, compoundkey.Int(223, 6))
		if err != nil || lean.Salary != wrote.Salary || lean.Number != "" || lean.Name != wrote.Name {
			t.Errorf("the lean copy: %+v, %v", lean, err)
		}
		number, err := x.badgeID.In("Sales").Get(ctx, compoundkey.Int(223, 6))
		if err != nil || number.Number != wrote.Number {
			t.Errorf("the lean copy outside: %+v, %v", number, err)
		}
		assert.Check(t, sameEmployee(assert.Must[*employee](t)(x.lean.In("Sales").GetFull(ctx, compoundkey.Int(223, 6))), wrote))
		wrote = assert.Must[*employee](t)(x.name.In("Sales").Get(ctx, compoundkey.Tuple(compoundkey.String("June Jones"), compoundkey.Int(223, 6))))
		wrote.Salary++
		assert.Check(t, r.Replace(ctx, wrote))
	}
	for e, err := range r.Query().Partition("Sales").Select("Number").All(ctx) {
		if err != nil || e.Number != wrote.Number || e.Salary != 0 {
			t.Errorf("a projection: %+v, %v", e, err)
		}
	}
	assert.Check(t, r.Delete(ctx, wrote))
}

// TestVerifyAndRepair: a correct table has no discrepancies; a missing copy is written again with the ciphertext that the entity has.
func TestVerifyAndRepair(t *testing.T) {
	w := newWorld(t)
	ctx, x := t.Context(), newIndexes()
	r, _ := w.indexed(t, w.s.TableName(t), x)
	for id := range 5 {
		assert.Check(t, r.Insert(ctx, june("Sales", id)))
	}
	o := &patterns.JobOptions{Lag: time.Millisecond}
	assert.NoError(t, harness.Clean(ctx, r.Verify, o))
	assert.Check(t, r.Table().Entities().DeleteUnconditional(ctx, tables.Key{Partition: "Sales", Row: "lean_000003"}))
	assert.Check(t, r.Table().Entities().DeleteUnconditional(ctx, tables.Key{Partition: "badge_Sales", Row: "000002"}))
	all := assert.Must[[]patterns.Finding](t)(harness.Findings(lease.Waive(ctx, lease.Terms), r.Repair, o))
	assert.Equal(t, len(all), 2, "repaired")
	assert.NoError(t, harness.Clean(ctx, r.Verify, o), "after the repair")
	assert.Check(t, sameEmployee(assert.Must[*employee](t)(x.badge.In("Sales").Get(ctx, compoundkey.Int(2, 6))), june("Sales", 2)))
	assert.Check(t, assert.Err(x.lean.In("Sales").Get(ctx, compoundkey.Int(3, 6))))
}

// TestOtherWrites: bulk, transactions of the caller's own, Upsert, Update and unconditional writes encrypt as well.
func TestOtherWrites(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	r := w.employees(t, w.s.TableName(t), nil, byName())
	p, err := r.BulkNonAtomic(ctx, func(yield func(*employee, error) bool) {
		for id := range 20 {
			if !yield(june("Sales", id), nil) {
				return
			}
		}
	}, nil)
	assert.Check(t, err)
	assert.Equal(t, p.Written, 20, "%+v", p)
	x := r.Table().NewTransaction()
	r.StageInsert(x, june("Sales", 20))
	assert.Check(t, assert.Err(x.Commit(ctx)))
	upserted := june("Sales", 21)
	assert.Check(t, r.Upsert(ctx, upserted), r.Upsert(ctx, june("Sales", 0)), r.ReplaceUnconditional(ctx, june("Sales", 1)))
	assert.Must[*employee](t)(r.Update(ctx, employeeKey("Sales", 2), func(e *employee) error { e.Grade++; return nil }))
	n := 0
	for e, err := range r.Query().Partition("Sales").All(ctx) {
		want := june("Sales", e.ID)
		if e.ID == 2 {
			want.Grade++
		}
		assert.Check(t, err, sameEmployee(e, want))
		n++
	}
	uses := assert.Must[map[encryption.DataKeyID]int64](t)(encryption.Uses(ctx, r.Table()))
	for _, count := range uses {
		if n != 22 || count != 22*2*9 {
			t.Errorf("%d entities, %v", n, uses)
		}
	}
}

// TestMover: a moved entity is encrypted again under its new key.
func TestMover(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	current := w.employees(t, w.s.TableName(t), nil)
	former := w.employees(t, w.s.TableName(t), nil)
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(w.account, w.s.QueueName(t), nil))
	assert.Check(t, queue.Create(ctx), current.Insert(ctx, june("Sales", 1)))
	mover := assert.Must[*archive.Mover[employee]](t)(archive.New(queue, "archive", current, archive.ToRepository(former, func(e *employee) { e.Department = "Left" }), nil))
	e := assert.Must[*employee](t)(current.Get(ctx, employeeKey("Sales", 1)))
	assert.Check(t, mover.Move(ctx, e))
	worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(queue, nil, nil))
	assert.Check(t, assert.Err(worker.Drain(ctx)))
	assert.Check(t, sameEmployee(assert.Must[*employee](t)(former.Get(ctx, employeeKey("Left", 1))), june("Left", 1)))
	assert.ErrorIs(t, assert.Err(current.Get(ctx, employeeKey("Sales", 1))), tables.ErrNotFound, "it is still in its old place")
}

// TestMoverCoversWhatIsProtected: an entity is moved to a repository only if its encryption, under the entity's new key, protects at
// least what the source's does; what is refused stays, and nothing of it is in the destination or on the queue.
func TestMoverCoversWhatIsProtected(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(w.account, w.s.QueueName(t), nil))
	assert.Check(t, queue.Create(ctx))
	table := func() *tables.Table {
		made := w.account.Table(w.s.TableName(t))
		assert.Check(t, made.Create(ctx))
		return made
	}
	only := func(names string) func(string, string, string) bool {
		return func(_, _, name string) bool { return strings.Contains(names, name) }
	}
	source := anythings(t, table(), w.registry, &encryption.Options{Resolver: only("A"), Unsigned: []string{"P"}})
	for what, c := range map[string]struct {
		o       encryption.Options
		refused string
	}{
		"the same":             {encryption.Options{Resolver: only("A"), Unsigned: []string{"P"}}, ""},
		"more":                 {encryption.Options{Resolver: only("ASP")}, ""},
		"another property":     {encryption.Options{Resolver: only("P")}, "property A"},
		"signed only":          {encryption.Options{}, "property A"},
		"not signed":           {encryption.Options{Resolver: only("A"), Unsigned: []string{"S"}}, "property S"},
		"not in its partition": {encryption.Options{Resolver: func(partition, _, name string) bool { return partition == "p" && name == "A" }}, "property A"},
	} {
		key := tables.Key{Partition: "p", Row: "1"}
		former := anythings(t, table(), w.registry, &c.o)
		e := &anything{PartitionKey: "p", RowKey: "1", Rest: map[string]tables.Value{"A": tables.String(canary), "S": tables.String("x"), "P": tables.String("y")}}
		assert.Check(t, source.Insert(ctx, e))
		mover := assert.Must[*archive.Mover[anything]](t)(archive.New(queue, "archive "+what, source, archive.ToRepository(former, func(e *anything) { e.PartitionKey = "archived" }), nil))
		err := mover.Move(ctx, e)
		assert.Check(t, assert.Err(assert.Must[*eventual.Worker](t)(eventual.NewWorker(queue, nil, nil)).Drain(ctx)))
		_, moved := former.Get(ctx, tables.Key{Partition: "archived", Row: "1"})
		if c.refused == "" {
			assert.Check(t, err, moved)
			continue
		}
		if !errors.Is(err, tables.ErrInvalid) || !strings.Contains(err.Error(), c.refused) || !errors.Is(moved, tables.ErrNotFound) {
			t.Errorf("%s: %v; in the destination: %v", what, err, moved)
		}
		assert.Check(t, assert.Err(source.Get(ctx, key)), source.DeleteUnconditional(ctx, key))
	}
}

// TestRequestCounts holds what the package's comment says of requests.
func TestRequestCounts(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	table := w.account.Table(w.s.TableName(t))
	assert.Check(t, table.Create(ctx))
	counted, counter := harness.CountedService(w.s)
	account, vault := open(t, counted), &counting{KeyWrapper: w.wrapper}
	registry := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(account.Table(w.keys.Name()), vault, nil))
	r := assert.Must[*patterns.Repository[employee]](t)(employeesOf(account.Table(table.Name()), registry, nil))
	cost := func(want, unwrapped int, what string, errs ...error) {
		t.Helper()
		assert.Check(t, errs...)
		if got, asked := counter.Count(), int(vault.unwrapped.Load()); got != want || asked != unwrapped {
			t.Errorf("%s: %d requests and %d to unwrap, want %d and %d", what, got, asked, want, unwrapped)
		}
		counter.Reset()
		vault.unwrapped.Store(0)
	}
	e := june("Sales", 1)
	cost(3, 1, "the first Insert", r.Insert(ctx, e))
	cost(1, 0, "Replace", r.Replace(ctx, e))
	cost(1, 0, "Get", assert.Err(r.Get(ctx, employeeKey("Sales", 1))))
	fresh := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(account.Table(w.keys.Name()), vault, nil))
	reader := assert.Must[*patterns.Repository[employee]](t)(employeesOf(account.Table(table.Name()), fresh, nil))
	cost(2, 1, "the first Get", assert.Err(reader.Get(ctx, employeeKey("Sales", 1))))
	cost(3, 1, "CreateDataKey", assert.Err(registry.CreateDataKey(ctx))) // and 1 to wrap
	p, err := encryption.Reencrypt(ctx, r, nil)
	cost(1+1+1+1+1, 1, "Reencrypt of one entity, with the new data key", err) // which is current, twice; the key; the page; write
	cost(1+1, 0, "Reencrypt of none", assert.Err(encryption.Reencrypt(ctx, r, nil)))
	assert.Equal(t, p.Written, 1, "%+v", p)
	cost(1+0, 0, "Get", assert.Err(r.Get(ctx, employeeKey("Sales", 1))))
	cost(2, 2, "Rewrap of two keys that stay", assert.Err(registry.Rewrap(ctx)))
}
