package heterogeneous_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestNewProgramsReadOldVersions: step by step, and a write leaves the current one.
func TestNewProgramsReadOldVersions(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name, p := newTable(t, s)
	before := assert.Must[*program](t)(startOld(s, name))
	assert.Check(t, before.v1.Insert(ctx, old(1)), before.v1.Insert(ctx, old(2)), before.v1.Insert(ctx, old(3)))
	e := assert.Must[*employee](t)(p.employees.Get(ctx, keyOf("Sales", 1)))
	assert.Equal(assert.Fatal(t), text(e), text(current(1)), "version 1")
	assert.Check(t, p.employees.Replace(ctx, e))
	const replaced = `{"Department":"Sales","Email":"jones1@contoso.com","EntityType":"Employee@3","FirstName":"June","ID":"1","ID@odata.type":"Edm.Int64","LastName":"Jones1","PartitionKey":"Sales","RowKey":"empid_000001","Visits":"1","Visits@odata.type":"Edm.Int64"}`
	assert.Equal(t, stored(t, p.table, keyOf("Sales", 1)), replaced, "stored")
	// A merge writes all that the current version has, since the row has other properties.
	e = assert.Must[*employee](t)(p.employees.Get(ctx, keyOf("Sales", 2)))
	e.Visits = 7
	assert.Check(t, p.employees.Merge(ctx, e, "Visits"))
	if e = assert.Must[*employee](t)(p.employees.Get(ctx, keyOf("Sales", 2))); e.Visits != 7 || e.LastName != "Jones2" || e.Email != "jones2@contoso.com" {
		t.Errorf("after the merge it is %s", text(e))
	}
	for e, err := range p.employees.Query().Partition("Sales").Select("LastName", heterogeneous.EntityType, "FullName").All(ctx) {
		if assert.Check(t, err); e.LastName != fmt.Sprint("Jones", e.Key().Row[len("empid_00000"):]) {
			t.Errorf("the projection of %s reads %s", e.Key().Row, text(e))
		}
	}
	var version *heterogeneous.VersionError
	_, err := p.employees.Query().Partition("Sales").Select("LastName").First(ctx)
	if !errors.Is(err, tables.ErrGarbled) || !errors.As(err, &version) || version.Stored != "" {
		t.Errorf("a projection without EntityType is %v", err)
	}
	for property, ok := range map[string]bool{"Visits": true, "LastName": false, "FullName": false, "Email": false, heterogeneous.EntityType: true} {
		if _, err := p.employees.Query().Partition("Sales").Where(tables.Eq(property, map[bool]any{true: 1, false: "x"}[property == "Visits"])).Plan(); (err == nil) != ok {
			t.Errorf("a condition on %s: %v", property, err)
		}
	}
}

// TestOldProgramsMeetNewVersions: what they do not know they neither read as theirs nor write over, and do not lose.
func TestOldProgramsMeetNewVersions(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name, p := newTable(t, s)
	before := assert.Must[*program](t)(startOld(s, name))
	assert.Check(t, p.employees.Insert(ctx, current(1)))
	key := keyOf("Sales", 1)
	was := stored(t, p.table, key)
	_, get := before.v1.Get(ctx, key)
	_, update := before.v1.Update(ctx, key, func(*employeeV1) error { return nil })
	_, query := before.v1.Query().Partition("Sales").First(ctx)
	for what, err := range map[string]error{"Get": get, "Update": update, "Query": query, "Upsert": before.v1.Upsert(ctx, old(1)),
		"ReplaceUnconditional": before.v1.ReplaceUnconditional(ctx, old(1)), "DeleteUnconditional": before.v1.DeleteUnconditional(ctx, key)} {
		var version *heterogeneous.VersionError
		if !errors.Is(err, tables.ErrGarbled) || !errors.As(err, &version) || version.Stored != "Employee@3" || version.Newest != 1 {
			t.Errorf("%s is %v", what, err)
		}
	}
	assert.ErrorIs(t, before.v1.Insert(ctx, old(1)), tables.ErrExists, "Insert")
	assert.Equal(t, text(assert.Must[any](t)(before.registry.Get(ctx, key))), "bag empid_000001 Employee@3 7", "the registry")
	assert.Equal(t, stored(t, p.table, key), was, "stored")
	// What it knows of the entity it may change.
	assert.Check(t, before.registry.Modify(ctx, key, func(e *tables.Entity) error { e.Set("Visits", tables.Int64(2)); return nil }))
	if e := assert.Must[*employee](t)(p.employees.Get(ctx, key)); e.Visits != 2 || e.Email == "" {
		t.Errorf("there is %s", text(e))
	}
}

// TestOtherTypesAreNotMisread: without Rows a repository meets entities of other types.
func TestOtherTypesAreNotMisread(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	_, p := newTable(t, s)
	typ := heterogeneous.NewType[place]("Place", 1, nil)
	if _, err := patterns.NewRepository(p.table, patterns.Schema[place]{Key: func(*place) tables.Key { return tables.Key{} }}, typ); !errors.Is(err, tables.ErrWiring) {
		t.Fatal("a repository without Meta")
	}
	plain := heterogeneous.NewType[employee]("Employee", 1, nil)
	employees := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(p.table, patterns.Schema[employee]{Key: func(e *employee) tables.Key {
		return tables.Key{Partition: e.Department, Row: fmt.Sprint(e.ID)}
	}}, plain))
	assert.Check(t, employees.Insert(ctx, current(1)), p.departments.Insert(ctx, &department{DepartmentName: "Sales"}))
	var version *heterogeneous.VersionError
	if _, err := employees.Get(ctx, departmentKey("Sales")); !errors.As(err, &version) || version.Stored != "Department@1" {
		t.Errorf("a department reads as %v", err)
	}
	n := 0
	for e, err := range employees.Query().Partition("Sales").Where(plain.Is()).All(ctx) {
		if assert.Check(t, err); text(e) != text(current(1)) {
			t.Errorf("read %s", text(e))
		}
		n++
	}
	assert.Equal(t, n, 1, "employees")
}

// TestUpgrade: what is older becomes current, once; what is not of the type stays.
func TestUpgrade(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name, p := newTable(t, s, byVisits())
	before := assert.Must[*program](t)(startOld(s, name))
	const n = 20
	for id := range n {
		assert.Check(t, before.v1.Insert(ctx, old(id)))
	}
	elsewhere := old(1)
	elsewhere.Department = "Marketing"
	assert.Check(t, before.v1.Insert(ctx, elsewhere), p.employees.Insert(ctx, current(n)), p.departments.Insert(ctx, &department{DepartmentName: "Sales"}))
	for _, want := range []patterns.RewriteReport{{Read: n, Written: n, PartitionsDone: 1}, {PartitionsDone: 1}} {
		got := assert.Must[patterns.RewriteReport](t)(p.employee.Upgrade(ctx, &patterns.JobOptions{Partitions: []string{"Sales"}}))
		if got.Elapsed = 0; got != want {
			t.Errorf("the report is %+v, want %+v", got, want)
		}
	}
	for _, want := range []int64{1, 0} {
		if got := assert.Must[patterns.RewriteReport](t)(p.employee.Upgrade(ctx, nil)); got.Written != want {
			t.Errorf("the report of the table is %+v", got)
		}
	}
	assert.NoError(t, harness.Clean(ctx, p.employees.Verify, nil))
	assert.ErrorIs(t, assert.Err(p.employee.Upgrade(ctx, &patterns.JobOptions{Concurrency: -1})), tables.ErrWiring, "a negative Concurrency")
	dead, cancel := context.WithCancel(ctx)
	cancel()
	assert.ErrorIs(t, assert.Err(p.employee.Upgrade(dead, nil)), context.Canceled, "a dead context")
}

// TestUpgradeTagsTheUntagged: entities that other programs wrote get EntityType, while the type has no steps yet.
func TestUpgradeTagsTheUntagged(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name, p := newTable(t, s)
	before := assert.Must[*program](t)(startOld(s, name))
	bag := &tables.Entity{Key: keyOf("Sales", 1)}
	for property, value := range map[string]tables.Value{"Department": tables.String("Sales"), "ID": tables.Int64(1), "FullName": tables.String("June Jones1"), "Visits": tables.Int64(1)} {
		bag.Set(property, value)
	}
	assert.Check(t, p.table.Entities().Insert(ctx, bag))
	assert.ErrorIs(t, assert.Err(p.employees.Get(ctx, bag.Key)), tables.ErrGarbled, "where there are steps")
	assert.Equal(t, text(assert.Must[any](t)(p.registry.Get(ctx, bag.Key))), "bag empid_000001  4", "the registry, where there are steps")
	typ := heterogeneous.NewType[employeeV1]("Employee", 1, nil)
	_, err := patterns.NewRepository(p.table, patterns.Schema[employeeV1]{Key: before.v1.KeyOf, Prefix: "empid"}, typ)
	assert.Check(t, err)
	got := assert.Must[patterns.RewriteReport](t)(typ.Upgrade(ctx, nil))
	if got.Elapsed = 0; got != (patterns.RewriteReport{Read: 1, Written: 1}) {
		t.Errorf("the report is %+v", got)
	}
	assert.Equal(t, text(assert.Must[*employee](t)(p.employees.Get(ctx, bag.Key))), text(current(1)), "the entity")
}

// TestUpgradeMeetsConcurrentWriters: who changes an entity between read and write keeps the change.
func TestUpgradeMeetsConcurrentWriters(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	for what, c := range map[string]struct {
		concurrent func(p, before *program) error
		want       string
	}{
		"old program": {func(_, before *program) error {
			_, err := before.v1.Update(ctx, keyOf("Sales", 1), func(e *employeeV1) error { e.Visits = 9; return nil })
			return err
		}, "employee 1 June Jones1 <jones1@contoso.com> 9"},
		"new program": {func(p, _ *program) error {
			_, err := p.employees.Update(ctx, keyOf("Sales", 1), func(e *employee) error { e.Visits = 8; return nil })
			return err
		}, "employee 1 June Jones1 <jones1@contoso.com> 8"},
		"delete": {func(p, _ *program) error { return p.employees.DeleteUnconditional(ctx, keyOf("Sales", 1)) }, ""},
	} {
		t.Run(what, func(t *testing.T) {
			name, p := newTable(t, s)
			before := assert.Must[*program](t)(startOld(s, name))
			assert.Check(t, before.v1.Insert(ctx, old(1)))
			var writers atomic.Int32
			faulty, _ := s.Faulty(storagetest.On(storagetest.ReplaceEntity, storagetest.Once(storagetest.Always(storagetest.Before("concurrent writer", func() {
				writers.Add(1)
				assert.Check(t, c.concurrent(p, before))
			})))))
			upgrading := assert.Must[*program](t)(start(faulty, name))
			report := assert.Must[patterns.RewriteReport](t)(upgrading.employee.Upgrade(ctx, nil))
			if report.Read != 1 || report.Written != map[string]int64{"old program": 1}[what] || writers.Load() != 1 {
				t.Errorf("the report is %+v, with %d concurrent writers", report, writers.Load())
			}
			v, err := p.registry.Get(ctx, keyOf("Sales", 1))
			if c.want == "" && !errors.Is(err, tables.ErrNotFound) || c.want != "" && (err != nil || text(v) != c.want) {
				t.Errorf("there is %v, %v", v, err)
			}
		})
	}
}

// TestStepsThatRefuse: an entity that cannot be upgraded is an error that says so, and stays as it is.
func TestStepsThatRefuse(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name, p := newTable(t, s)
	before := assert.Must[*program](t)(startOld(s, name))
	e := old(1)
	e.FullName = "Cher"
	assert.Check(t, before.v1.Insert(ctx, e))
	_, get := p.registry.Get(ctx, keyOf("Sales", 1))
	var upgrade error
	report, err := p.employee.Upgrade(ctx, &patterns.JobOptions{Found: func(f patterns.Finding) error {
		if upgrade = f.Err; f.Kind != patterns.Undecodable || f.Entity != keyOf("Sales", 1) || f.Pattern == "" {
			t.Errorf("found %v", f)
		}
		return nil
	}})
	if err != nil || report.Failed != 1 || report.Written != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	modify := p.registry.Modify(ctx, keyOf("Sales", 1), func(*tables.Entity) error { return nil })
	for _, err := range []error{get, upgrade, modify} {
		assert.ErrorIs(t, err, tables.ErrGarbled)
	}
	if e := assert.Must[*employeeV1](t)(before.v1.Get(ctx, keyOf("Sales", 1))); e.FullName != "Cher" {
		t.Errorf("there is %s", text(e))
	}
}

// TestBagSteps: a step from bag to bag, and what a typed step carries over.
func TestBagSteps(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name := s.TableName(t)
	table := assert.Must[*tables.Table](t)(tableOf(s, name))
	assert.Check(t, table.Create(ctx))
	type note struct {
		PartitionKey, RowKey string
		Text                 string
	}
	type kept struct {
		tables.Meta
		*Keys
		Body string
		Rest map[string]tables.Value `table:",rest"`
	}
	typ := heterogeneous.NewType[kept]("Note", 3, &heterogeneous.TypeOptions{Steps: []heterogeneous.Step{
		heterogeneous.From(1, func(old *tables.Entity) (*tables.Entity, error) {
			old.Set("Text", tables.String("from "+old.Key.Row))
			return old, nil
		}),
		heterogeneous.From(2, func(old *note) (*kept, error) { return &kept{Body: old.RowKey + ": " + old.Text}, nil }),
	}})
	repo := assert.Must[*patterns.Repository[kept]](t)(patterns.NewRepository(table, patterns.Schema[kept]{Key: func(k *kept) tables.Key {
		if k.Keys == nil {
			return tables.Key{}
		}
		return tables.Key{Partition: k.PartitionKey, Row: k.RowKey}
	}}, typ))
	registry := assert.Must[*heterogeneous.Registry](t)(heterogeneous.NewRegistry(table, typ))
	bag := &tables.Entity{Key: tables.Key{Partition: "p", Row: "r"}}
	bag.Set(heterogeneous.EntityType, tables.String("Note"))
	bag.Set("Color", tables.String("red"))
	assert.Check(t, table.Entities().Insert(ctx, bag))
	for range 2 {
		one, other := assert.Must[*kept](t)(repo.Get(ctx, bag.Key)), assert.Must[any](t)(registry.Get(ctx, bag.Key)).(*kept)
		for _, k := range []*kept{one, other} {
			if color, _ := k.Rest["Color"].Text(); k.Body != "r: from r" || color != "red" || k.PartitionKey != "p" || len(k.Rest) != 1 {
				t.Errorf("%+v", k)
			}
		}
		assert.Check(t, repo.Replace(ctx, other))
	}
}

// Keys are fields of an embedded pointer.
type Keys struct{ PartitionKey, RowKey string }
