package heterogeneous_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

// readAll reads a partition with all types.
func readAll(t *testing.T, q heterogeneous.Query) []string {
	t.Helper()
	var found []string
	for v, err := range q.All(t.Context()) {
		assert.Check(t, err)
		found = append(found, text(v))
	}
	return found
}

// TestSeveralTypes: one query yields typed values of all types and versions; copies are left out, and what nobody knows comes
// as a bag, wherever in the page it is.
func TestSeveralTypes(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name, p := newTable(t, s, byVisits())
	before := assert.Must[*program](t)(startOld(s, name))
	bag := func(row, entityType string) *tables.Entity {
		e := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: row}}
		e.Set("Color", tables.String("red"))
		if entityType != "" {
			e.Set(heterogeneous.EntityType, tables.String(entityType))
		}
		return e
	}
	garbage := bag("empid_5", "")
	garbage.Set(heterogeneous.EntityType, tables.Int32(7))
	for _, e := range []*tables.Entity{bag("empid_000002x", "Car@1"), bag("empid_000004", "Employee@4"), bag("plain", ""),
		bag("empid_000006", "Employee@01"), bag("dept_x", ""), garbage} {
		assert.Check(t, p.table.Entities().Insert(ctx, e))
	}
	assert.Check(t, p.employees.Insert(ctx, current(3)), before.v1.Insert(ctx, old(1)), before.v1.Insert(ctx, old(2)),
		p.departments.Insert(ctx, &department{DepartmentName: "Sales", EmployeeCount: 3}))
	want := []string{
		"department dept_Sales Sales 3",
		"department dept_x  0", // no EntityType: known by its key
		"employee 1 June Jones1 <jones1@contoso.com> 1",
		"employee 2 June Jones2 <jones2@contoso.com> 1",
		"bag empid_000002x Car@1 2",
		"employee 3 June Jones3 <jones3@contoso.com> 1",
		"bag empid_000004 Employee@4 2", // a later version
		"bag empid_000006 Employee@01 2",
		"bag empid_5  2",
		"bag plain  1",
	}
	for _, size := range []int{0, 1, 2, 3, 4} {
		q := p.registry.Query().Partition("Sales").PageSize(size)
		assert.NoDiff(t, cmp.Diff(want, readAll(t, q)), "pages of %d", size)
		assert.Slices(t, readAll(t, q.Top(6)), want[:6], "top 6 of pages of %d", size)
	}
	if found := readAll(t, p.registry.Query().Partition("Sales").Where(p.employee.Is(), tables.Eq("Visits", 1))); !slices.Equal(found, []string{want[2], want[3], want[5]}) {
		t.Errorf("the employees are %q", found)
	}
	first := readAll(t, before.registry.Query().Partition("Sales").Rows(compoundkey.All().Under("empid")).Top(3))
	assert.Slices(t, first, []string{"first 1 June Jones1 1", "first 2 June Jones2 1", "bag empid_000002x Car@1 2"}, "the old program")
	assert.Equal(t, text(assert.Must[any](t)(p.registry.Get(ctx, keyOf("Sales", 1)))), want[2], "Get")
	if _, err := p.registry.Get(ctx, tables.Key{Partition: "Sales", Row: "visits_000001_000001"}); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("a copy reads as %v", err)
	}
	assert.ErrorIs(t, assert.Err(p.registry.Query().Page(ctx, "")), tables.ErrTableScan, "a scan")
}

// TestWritesOfWhatWasRead: a value of a query goes into its repository, which also writes its other rows, under the ETag.
func TestWritesOfWhatWasRead(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name, p := newTable(t, s, byVisits())
	assert.Check(t, p.employees.Insert(ctx, current(1)), assert.Must[*program](t)(startOld(s, name)).v1.Insert(ctx, old(2)),
		p.departments.Insert(ctx, &department{DepartmentName: "Sales"}))
	for v, err := range p.registry.Query().Partition("Sales").All(ctx) {
		assert.Check(t, err)
		switch v := v.(type) {
		case *employee:
			stale := *v
			v.Visits = 5
			assert.Check(t, p.employees.Replace(ctx, v))
			assert.ErrorIs(t, p.employees.Replace(ctx, &stale), tables.ErrConflict, "a stale Replace")
		case *department:
			if v.PartitionKey != "Sales" || v.RowKey != "dept_Sales" || v.ETag == "" || v.Timestamp.IsZero() {
				t.Errorf("%+v", v)
			}
			assert.Check(t, p.registry.Delete(ctx, v))
		default:
			t.Errorf("%s", text(v))
		}
	}
	assert.NoError(t, harness.Clean(ctx, p.employees.Verify, nil))
	want := []string{"employee 1 June Jones1 <jones1@contoso.com> 5", "employee 2 June Jones2 <jones2@contoso.com> 5"}
	assert.Slices(t, readAll(t, p.registry.Query().Partition("Sales")), want)
	bag := assert.Must[*tables.Entity](t)(p.table.Entities().Get(ctx, keyOf("Sales", 1)))
	assert.ErrorIs(t, p.registry.Delete(ctx, bag), tables.ErrInvalid, "deleting an entity with copies as a bag")
	assert.ErrorIs(t, p.registry.Delete(ctx, &employeeV1{}), tables.ErrWiring, "deleting a type that is not registered")
}

// report is spread over several rows where its text is long.
type report struct {
	tables.Meta
	EntityType string
	Department string
	ID         int
	Text       string
}

// rot is a pattern that rewrites a property.
type rot[T any] struct{}

func (r rot[T]) Attach(driver.Host, *T) (driver.Implementation, error) {
	return driver.Implementation{Name: "rot", Transform: &driver.Transform{Stage: driver.StageSpill,
		Store: func(_ context.Context, _ *driver.Change, p tables.Properties) (tables.Properties, error) {
			return r.turn(p)
		},
		Load: func(_ context.Context, _ driver.Reading, p tables.Properties) (tables.Properties, error) {
			return r.turn(p)
		},
		Filterable: func(property string) bool { return property != "Text" },
	}}, nil
}

func (rot[T]) turn(p tables.Properties) (tables.Properties, error) {
	p = slices.Clone(p)
	if text, ok := p.Get("Text").Text(); ok {
		letters := []byte(text)
		slices.Reverse(letters)
		p.Set("Text", tables.String(string(letters)))
	}
	return p, nil
}

// reports keeps reports on a table; more are its patterns after the type.
func reports(table *tables.Table, more ...patterns.Pattern[report]) (*patterns.Repository[report], *heterogeneous.Registry, error) {
	typ := heterogeneous.NewType[report]("Report", 1, nil)
	repo, err := patterns.NewRepository(table, patterns.Schema[report]{Prefix: "report", Key: func(r *report) tables.Key {
		return tables.Key{Partition: r.Department, Row: compoundkey.Join("report", compoundkey.Int(r.ID, 3))}
	}}, append([]patterns.Pattern[report]{typ}, more...)...)
	if err != nil {
		return nil, nil, err
	}
	registry, err := heterogeneous.NewRegistry(table, typ)
	return repo, registry, err
}

func longReport(id int) *report {
	return &report{Department: "Sales", ID: id, Text: strings.Repeat("long text ", 7000) + fmt.Sprint(id)}
}

func wide() patterns.Pattern[report] {
	return widentities.New[report](&widentities.Options{FirstRow: []string{"EntityType"}})
}

// TestUnknownEntitiesAreGuarded: the bag of an entity with copies, or in several rows, cannot be written by itself.
func TestUnknownEntitiesAreGuarded(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	_, p := newTable(t, s, byVisits())
	repo, _, err := reports(p.table, wide())
	long := longReport(1)
	assert.Check(t, err, p.employees.Insert(ctx, current(1)), repo.Insert(ctx, long))
	ignorant := assert.Must[*heterogeneous.Registry](t)(heterogeneous.NewRegistry(p.table))
	for _, key := range []tables.Key{keyOf("Sales", 1), long.Key()} {
		v := assert.Must[any](t)(ignorant.Get(ctx, key))
		bag, ok := v.(*tables.Entity)
		if !ok || bag.Timestamp.IsZero() || bag.ETag == "" || bag.Properties.Has(" spread") {
			t.Fatalf("read %v", v)
		}
		bag.Set("Visits", tables.Int64(9))
		entities := p.table.Entities()
		for _, err := range []error{entities.Merge(ctx, bag), entities.Replace(ctx, bag), ignorant.Delete(ctx, bag),
			ignorant.Modify(ctx, bag.Key, func(e *tables.Entity) error { e.Set("Visits", tables.Int64(9)); return nil })} {
			assert.ErrorIs(t, err, tables.ErrInvalid, "writing")
		}
	}
}

// TestRowsThatTheRepositoryReads: an entity in several rows, or with rewritten properties, is read by its repository, in its
// place among the others.
func TestRowsThatTheRepositoryReads(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	for what, more := range map[string]patterns.Pattern[report]{"several rows": wide(), "rewritten": rot[report]{}} {
		t.Run(what, func(t *testing.T) {
			table := assert.Must[*tables.Table](t)(tableOf(s, s.TableName(t)))
			assert.Check(t, table.Create(ctx))
			repo, registry, err := reports(table, more)
			assert.Check(t, err)
			bag := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: "report_002x"}}
			bag.Set(heterogeneous.EntityType, tables.String("Other@1"))
			short := &report{Department: "Sales", ID: 1, Text: "short"}
			last := &report{Department: "Sales", ID: 3, Text: "last"}
			if what == "several rows" {
				last = longReport(3)
			}
			assert.Check(t, repo.Insert(ctx, short), repo.Insert(ctx, last), table.Entities().Insert(ctx, bag))
			var found []string
			for v, err := range registry.Query().Partition("Sales").All(ctx) {
				assert.Check(t, err)
				switch v := v.(type) {
				case *report:
					found = append(found, v.Text)
					assert.Check(t, repo.Replace(ctx, v))
				default:
					found = append(found, text(v))
				}
			}
			assert.Slices(t, found, []string{"short", "bag report_002x Other@1 1", last.Text})
			v := assert.Must[any](t)(registry.Get(ctx, last.Key()))
			if r, ok := v.(*report); !ok || r.Text != last.Text || r.EntityType != "Report@1" {
				t.Errorf("Get reads %T", v)
			}
			assert.Check(t, registry.Modify(ctx, last.Key(), func(e *tables.Entity) error { e.Set("Text", tables.String("new")); return nil }))
			assert.Equal(t, assert.Must[*report](t)(repo.Get(ctx, last.Key())).Text, "new")
			if _, err := registry.Query().Partition("Sales").Where(tables.Eq("Text", "x")).Plan(); !errors.Is(err, tables.ErrInvalid) {
				t.Errorf("a condition on what rows do not hold is %v", err)
			}
		})
	}
}

// TestRegistryIsRefused: what cannot be told apart, and what belongs to no repository here.
func TestRegistryIsRefused(t *testing.T) {
	s := storagetest.Open(t)
	table := assert.Must[*tables.Table](t)(tableOf(s, "Any"))
	typeOf := func(name string, version int, prefix string, o *heterogeneous.TypeOptions) heterogeneous.AnyType {
		typ := heterogeneous.NewType[employee](name, version, o)
		_, err := patterns.NewRepository(table, patterns.Schema[employee]{Key: func(_ *employee) tables.Key { return tables.Key{} }, Prefix: prefix}, typ)
		assert.Check(t, err)
		return typ
	}
	other := heterogeneous.NewType[employeeV1]("Employee", 3, nil)
	_, err := patterns.NewRepository(table, patterns.Schema[employeeV1]{Key: func(*employeeV1) tables.Key { return tables.Key{} }, Prefix: "b"}, other)
	assert.Check(t, err)
	foreign := heterogeneous.NewType[department]("D", 1, nil)
	_, err = patterns.NewRepository(assert.Must[*tables.Table](t)(tableOf(s, "Other")), patterns.Schema[department]{Key: func(*department) tables.Key { return tables.Key{} }}, foreign)
	assert.Check(t, err)
	var none *heterogeneous.Type[employee]
	for what, types := range map[string][]heterogeneous.AnyType{
		"one version twice":    {typeOf("Employee", 3, "a", versions()), other},
		"one Go type twice":    {typeOf("Employee", 1, "a", nil), typeOf("Worker", 1, "b", nil)},
		"one prefix twice":     {typeOf("Worker", 1, "b", nil), other},
		"one prefix, by key":   {typeOf("Employee", 1, "b", &heterogeneous.TypeOptions{ByKey: true}), other},
		"no repository":        {heterogeneous.NewType[employee]("Employee", 1, nil)},
		"another table":        {foreign},
		"nil":                  {nil},
		"a nil type":           {none},
		"the same value twice": {other, other},
	} {
		assert.ErrorIs(t, assert.Err(heterogeneous.NewRegistry(table, types...)), tables.ErrWiring, what)
	}
	assert.ErrorIs(t, assert.Err(heterogeneous.NewRegistry(nil)), tables.ErrWiring, "no table")
	r := assert.Must[*heterogeneous.Registry](t)(heterogeneous.NewRegistry(table, typeOf("Employee", 2, "b", nil), other))
	for text, want := range map[string]reflect.Type{"Employee@2": reflect.TypeFor[employee](), "Employee@3": reflect.TypeFor[employeeV1](),
		"Employee": nil, "Employee@4": nil, "": nil, "employee@2": nil} {
		if got, ok := r.TypeOf(text); got != want || ok != (want != nil) {
			t.Errorf("%q is a %v", text, got)
		}
	}
}

// TestDeclarationsAreRefused: by NewRepository, before anything is read or written.
func TestDeclarationsAreRefused(t *testing.T) {
	s := storagetest.Open(t)
	table := assert.Must[*tables.Table](t)(tableOf(s, "Any"))
	steps := func(steps ...heterogeneous.Step) *heterogeneous.TypeOptions {
		return &heterogeneous.TypeOptions{Steps: steps}
	}
	one, two := heterogeneous.From(1, splitName), heterogeneous.From(2, addEmail)
	attach := func(attached ...patterns.Pattern[employee]) error {
		_, err := patterns.NewRepository(table, patterns.Schema[employee]{Key: func(*employee) tables.Key { return tables.Key{} }}, attached...)
		return err
	}
	type unstorable struct{ F func() }
	for what, typ := range map[string]patterns.Pattern[employee]{
		"no name":             heterogeneous.NewType[employee]("", 1, nil),
		"a name with @":       heterogeneous.NewType[employee]("A@1", 1, nil),
		"version 0":           heterogeneous.NewType[employee]("A", 0, nil),
		"a huge version":      heterogeneous.NewType[employee]("A", 1<<31, nil),
		"a missing step":      heterogeneous.NewType[employee]("A", 3, steps(one)),
		"steps in disorder":   heterogeneous.NewType[employee]("A", 3, steps(two, one)),
		"a step from 0":       heterogeneous.NewType[employee]("A", 2, steps(heterogeneous.From(0, splitName), heterogeneous.From(1, addEmail))),
		"steps of two paths":  heterogeneous.NewType[employee]("A", 3, steps(one, heterogeneous.From(2, func(*department) (*employee, error) { return nil, nil }))),
		"a step elsewhere":    heterogeneous.NewType[employee]("A", 2, steps(one)),
		"a step of nothing":   heterogeneous.NewType[employee]("A", 2, steps(heterogeneous.Step{})),
		"a step without func": heterogeneous.NewType[employee]("A", 2, steps(heterogeneous.From[employee, employee](1, nil))),
		"an unstorable step":  heterogeneous.NewType[employee]("A", 2, steps(heterogeneous.From(1, func(*unstorable) (*employee, error) { return nil, nil }))),
		"an unstorable next":  heterogeneous.NewType[employee]("A", 2, steps(heterogeneous.From(1, func(*employee) (*unstorable, error) { return nil, nil }))),
		"by key, no prefix":   heterogeneous.NewType[employee]("A", 1, &heterogeneous.TypeOptions{ByKey: true}),
		"by key, version 2":   heterogeneous.NewType[employee]("A", 2, &heterogeneous.TypeOptions{ByKey: true}),
	} {
		assert.ErrorIs(t, attach(typ), tables.ErrWiring, what)
	}
	if _, _, err := reports(table, widentities.New[report](nil)); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("a layout that does not keep EntityType in the first row: %v", err)
	}
	typ := heterogeneous.NewType[employee]("A", 3, versions())
	lean := intrapartition.NewUnique("lean", func(e *employee) compoundkey.Part { return compoundkey.Int(e.ID, 6) }, &intrapartition.Options{Project: []string{"Visits"}})
	if err := attach(typ, lean); !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), `"lean" stores a projection`) {
		t.Errorf("copies without a version: %v", err)
	}
	assert.Check(t, attach(rot[employee]{}, typ))
	assert.ErrorIs(t, attach(typ), tables.ErrWiring, "attached twice")
	if _, err := heterogeneous.NewType[employee]("A", 1, nil).Upgrade(t.Context(), nil); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("Upgrade without a repository: %v", err)
	}
	if fmt.Sprint(typ) != "A@3" {
		t.Error(typ)
	}
}

// TestRegistryOfAStore: a store takes the repositories of several types on one table, and the registry of them.
func TestRegistryOfAStore(t *testing.T) {
	type ship struct {
		tables.Meta
		Fleet string
		Name  string
	}
	store := assert.Must[*patterns.Store](t)(patterns.Open("fleet", &patterns.StoreOptions{Account: harness.Account(t)}))
	table := store.Table(storagetest.Open(t).TableName(t))
	assert.Check(t, table.Create(t.Context()))
	var types []heterogeneous.AnyType
	for _, name := range []string{"Ship", "Boat"} {
		typ := heterogeneous.NewType[ship](name, 1, nil)
		repo := assert.Must[*patterns.Repository[ship]](t)(patterns.NewRepository(table, patterns.Schema[ship]{
			Name: name, Key: func(s *ship) tables.Key {
				return tables.Key{Partition: s.Fleet, Row: compoundkey.Join(name, compoundkey.String(s.Name))}
			},
			Prefix: name,
		}, typ))
		assert.Check(t, repo.Insert(t.Context(), &ship{Fleet: "north", Name: "June"}))
		types = append(types, typ)
	}
	assert.Check(t, assert.Err(heterogeneous.NewRegistry(table, types[0])))
}
