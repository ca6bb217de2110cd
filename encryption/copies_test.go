package encryption_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// intruder writes rows as they are, with all their system properties, as whoever can write the table can.
type intruder struct{ client *aztables.Client }

func intrude(t testing.TB, s *storagetest.Service, table string) intruder {
	t.Helper()
	service := assert.Must[*aztables.ServiceClient](t)(aztables.NewServiceClientFromConnectionString(s.ConnectionString, &aztables.ClientOptions{ClientOptions: s.ClientOptions}))
	return intruder{service.NewClient(table)}
}

func (i intruder) read(t testing.TB, key tables.Key) map[string]any {
	t.Helper()
	answer := assert.Must[aztables.GetEntityResponse](t)(i.client.GetEntity(t.Context(), key.Partition, key.Row, nil))
	row := map[string]any{}
	assert.Check(t, json.Unmarshal(answer.Value, &row))
	for name := range row {
		if strings.HasPrefix(name, "odata.") || strings.HasPrefix(name, "Timestamp") {
			delete(row, name)
		}
	}
	return row
}

// put stores a row under a key, in the place of whatever is there.
func (i intruder) put(t testing.TB, key tables.Key, row map[string]any) {
	t.Helper()
	row["PartitionKey"], row["RowKey"] = key.Partition, key.Row
	text := assert.Must[[]byte](t)(json.Marshal(row))
	assert.Check(t, assert.Err(i.client.UpsertEntity(t.Context(), text, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})))
}

func (i intruder) copy(t testing.TB, from, to tables.Key) {
	t.Helper()
	i.put(t, to, i.read(t, from))
}

// lookups are indexes of every kind by a beacon of Number.
type lookups struct {
	near, nearLean *intrapartition.Unique[employee, compoundkey.Part]
	far, farLean   *interpartition.Unique[employee, compoundkey.Part]
	list           *indexentities.Index[employee, compoundkey.Part]
	beacon         *encryption.Beacon
	repo           *patterns.Repository[employee]
}

func (w *world) lookups(t testing.TB, table string, o *encryption.Options) *lookups {
	t.Helper()
	x := &lookups{}
	x.beacon = assert.Must[*encryption.Beacon](t)(fetchBeacon(t.Context(), w.registry, "number", 0))
	key := func(e *employee) compoundkey.Part { return x.beacon.Part(tables.String(e.Number)) }
	x.near, x.nearLean = intrapartition.NewUnique("near", key, nil), intrapartition.NewUnique("nearlean", key, &intrapartition.Options{Project: []string{"Salary"}})
	x.far, x.farLean = interpartition.NewUnique("far", key, &interpartition.Options[employee]{ByPartition: true}), interpartition.NewUnique("farlean", key, &interpartition.Options[employee]{ByPartition: true, Project: []string{"Salary"}})
	x.list = indexentities.NewInPartition("list", key)
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(w.account, w.s.QueueName(t), nil))
	assert.Check(t, queue.Create(t.Context()))
	x.repo = assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(w.account.Table(table), queue), patterns.Schema[employee]{
		Key: func(e *employee) tables.Key { return employeeKey(e.Department, e.ID) }, Prefix: "empid",
	}, encryption.New[employee]("encryption", w.registry, o), x.near, x.nearLean, x.far, x.farLean, x.list))
	assert.Check(t, x.repo.Table().CreateIfMissing(t.Context()))
	return x
}

// row is where an index has the copy of a value.
func (x *lookups) row(t testing.TB, index, number string) tables.Key {
	t.Helper()
	key := tables.Key{Partition: "Sales", Row: assert.Must[string](t)(compoundkey.Encode(index, x.beacon.Part(tables.String(number))))}
	if strings.HasPrefix(index, "far") {
		key = tables.Key{Partition: index + "_Sales", Row: assert.Must[string](t)(compoundkey.Encode("", x.beacon.Part(tables.String(number))))}
	}
	return key
}

// reads are all ways to look a value up.
func (x *lookups) reads(ctx context.Context, number string) map[string]func() (*employee, error) {
	part := x.beacon.Part(tables.String(number))
	first := func(seq func(func(*employee, error) bool)) (found *employee, err error) {
		err = tables.ErrNotFound
		seq(func(e *employee, failed error) bool { found, err = e, failed; return false })
		return found, err
	}
	query := func(q tables.Query[employee]) (*employee, error) {
		return q.AllowTableScan().Select("Name", "Salary").First(ctx)
	}
	return map[string]func() (*employee, error){
		"near Get":         func() (*employee, error) { return x.near.In("Sales").Get(ctx, part) },
		"near GetFull":     func() (*employee, error) { return x.near.In("Sales").GetFull(ctx, part) },
		"near Range":       func() (*employee, error) { return first(x.near.In("Sales").Range(ctx, compoundkey.Exactly(part))) },
		"near projection":  func() (*employee, error) { return query(x.near.Query(compoundkey.Exactly(part))) },
		"nearlean Get":     func() (*employee, error) { return x.nearLean.In("Sales").Get(ctx, part) },
		"nearlean GetFull": func() (*employee, error) { return x.nearLean.In("Sales").GetFull(ctx, part) },
		"nearlean Range":   func() (*employee, error) { return first(x.nearLean.In("Sales").Range(ctx, compoundkey.Exactly(part))) },
		"far Get":          func() (*employee, error) { return x.far.In("Sales").Get(ctx, part) },
		"far GetFull":      func() (*employee, error) { return x.far.In("Sales").GetFull(ctx, part) },
		"far Range":        func() (*employee, error) { return first(x.far.In("Sales").Range(ctx, compoundkey.Exactly(part))) },
		"far projection":   func() (*employee, error) { return query(x.far.Query(compoundkey.Exactly(part))) },
		"farlean Get":      func() (*employee, error) { return x.farLean.In("Sales").Get(ctx, part) },
		"farlean GetFull":  func() (*employee, error) { return x.farLean.In("Sales").GetFull(ctx, part) },
		"farlean Range":    func() (*employee, error) { return first(x.farLean.In("Sales").Range(ctx, compoundkey.Exactly(part))) },
		"list Find":        func() (*employee, error) { return first(x.list.In("Sales").Find(ctx, part, nil)) },
	}
}

// TestLookUpsAreNotRedirected: a copy of B's row in an index, as it is, under A's key makes no look-up of A return B, by any kind of
// index and read; and each look-up that is honest finds its entity, for the requests that it takes without encryption.
func TestLookUpsAreNotRedirected(t *testing.T) {
	s := storagetest.Open(t)
	w := worldOn(t, s)
	ctx := t.Context()
	table := s.TableName(t)
	counted, counter := harness.CountedService(s)
	at := *w
	at.s, at.account = s, open(t, counted)
	x := at.lookups(t, table, nil)
	a, b := june("Sales", 1), june("Sales", 2)
	a.Number, b.Number, b.Salary = "A", "B", 1_000_000
	assert.Check(t, x.repo.Insert(ctx, a), x.repo.Insert(ctx, b), assert.Err(x.repo.Get(ctx, employeeKey("Sales", 1))))
	for what, read := range x.reads(ctx, "A") {
		counter.Reset()
		e, err := read()
		if err != nil || e.Salary != a.Salary {
			t.Errorf("%s: before: %+v, %v", what, e, err)
		}
		want := 1
		if strings.HasSuffix(what, "GetFull") || strings.HasPrefix(what, "list") {
			want = 2
		}
		assert.Equal(t, counter.Count(), want, "%s: requests", what)
	}
	rows := intrude(t, s, table)
	for _, index := range []string{"near", "nearlean", "far", "farlean", "list"} {
		rows.copy(t, x.row(t, index, "B"), x.row(t, index, "A"))
	}
	for what, read := range x.reads(ctx, "A") {
		e, err := read()
		if e != nil || err == nil {
			t.Errorf("%s: a look-up of A returns the entity with number %q, salary %d", what, e.Number, e.Salary)
		} else if !errors.Is(err, encryption.ErrNotAuthentic) && !errors.Is(err, tables.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, read := range x.reads(ctx, "B") {
		if e, err := read(); err != nil || e.Salary != b.Salary {
			t.Errorf("%s: B's own row: %+v, %v", what, e, err)
		}
	}
}

// TestCopiesThatProveNothing: an index that keeps less, and was attached after the entities were sealed, is read all the same, for 1
// request more, until the entities are written again. Copies that are forged are left out.
func TestCopiesThatProveNothing(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := worldOn(t, s)
	ctx := t.Context()
	for id := range 2 {
		assert.Check(t, w.employees(t, "Employees", nil).Insert(ctx, june("Sales", id)))
	}
	counted, counter := harness.CountedService(s)
	account := open(t, counted)
	lean := interpartition.NewUnique("lean", func(e *employee) compoundkey.Part { return compoundkey.Int(e.ID, 6) },
		&interpartition.Options[employee]{ByPartition: true, Project: []string{"Salary"}})
	queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(account, s.QueueName(t), nil))
	assert.Check(t, queue.Create(ctx))
	r := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(harness.In(account.Table("Employees"), queue), patterns.Schema[employee]{
		Key: func(e *employee) tables.Key { return employeeKey(e.Department, e.ID) }, Prefix: "empid",
	}, encryption.New[employee]("encryption", w.registry, nil), lean))
	assert.Must[patterns.RebuildReport](t)(r.Rebuild(ctx, nil))
	requests := func(when string, want int) {
		t.Helper()
		counter.Reset()
		e, err := lean.In("Sales").Get(ctx, compoundkey.Int(1, 6))
		if err != nil || e.Salary != june("Sales", 1).Salary || e.Number != "" {
			t.Errorf("%s: %+v, %v", when, e, err)
		}
		assert.Equal(t, counter.Count(), want, "%s: requests", when)
	}
	requests("before", 2)
	rows := intrude(t, s, "Employees")
	intact := rows.read(t, tables.Key{Partition: "lean_Sales", Row: "000001"})
	rows.copy(t, tables.Key{Partition: "lean_Sales", Row: "000000"}, tables.Key{Partition: "lean_Sales", Row: "000001"})
	if e, err := lean.In("Sales").Get(ctx, compoundkey.Int(1, 6)); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("a forged copy: %+v, %v", e, err)
	}
	rows.put(t, tables.Key{Partition: "lean_Sales", Row: "000001"}, intact)
	assert.Check(t, assert.Err(r.Update(ctx, employeeKey("Sales", 1), func(*employee) error { return nil })))
	requests("afterwards", 1)
}
