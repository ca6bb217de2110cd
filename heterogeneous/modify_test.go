package heterogeneous_test

import (
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func visit(e *tables.Entity) error {
	visits, ok := e.Get("Visits").Int()
	if !ok {
		return errors.New("it has no visits")
	}
	e.Set("Visits", tables.Int64(visits+1))
	return nil
}

// TestModify: of a known type, an old version, one with copies, and an unknown type.
func TestModify(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	for what, more := range map[string][]patterns.Pattern[employee]{"plain": nil, "with copies": {byVisits()}} {
		t.Run(what, func(t *testing.T) {
			name, p := newTable(t, s, more...)
			before := assert.Must[*program](t)(startOld(s, name))
			car := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: "car"}}
			car.Set("Visits", tables.Int64(1))
			car.Set("Color", tables.String("red"))
			assert.Check(t, p.employees.Insert(ctx, current(1)), before.v1.Insert(ctx, old(2)), p.table.Entities().Insert(ctx, car))
			keys := []tables.Key{keyOf("Sales", 1), keyOf("Sales", 2), car.Key}
			for _, key := range keys {
				assert.Check(t, p.registry.Modify(ctx, key, visit))
			}
			for id := 1; id <= 2; id++ {
				want := current(id)
				want.Visits = 2
				assert.Equal(t, text(assert.Must[*employee](t)(p.employees.Get(ctx, keyOf("Sales", id)))), text(want))
			}
			e := assert.Must[*tables.Entity](t)(p.table.Entities().Get(ctx, car.Key))
			if n, _ := e.Get("Visits").Int(); n != 2 || len(e.Properties) != 2 {
				t.Errorf("the car is %v", e.Properties)
			}
			assert.NoError(t, harness.Clean(ctx, p.employees.Verify, nil))
			refused := map[string]func(*tables.Entity) error{
				"a removed property": func(e *tables.Entity) error { e.Properties.Delete("Visits"); return nil },
				"a new key":          func(e *tables.Entity) error { e.Key.Row = "x"; return nil },
				"a new type":         func(e *tables.Entity) error { e.Set(heterogeneous.EntityType, tables.String("Car@2")); return nil },
			}
			for _, key := range keys {
				was := stored(t, p.table, key)
				for what, change := range refused {
					assert.ErrorIs(t, p.registry.Modify(ctx, key, change), tables.ErrInvalid, "%s of %s", what, key.Row)
				}
				own := errors.New("own")
				assert.ErrorIs(t, p.registry.Modify(ctx, key, func(*tables.Entity) error { return own }), own, "an error of the change")
				assert.Check(t, p.registry.Modify(ctx, key, func(*tables.Entity) error { return nil }))
				assert.Equal(t, stored(t, p.table, key), was, "after what was refused, or nothing")
			}
			assert.ErrorIs(t, p.registry.Modify(ctx, tables.Key{Partition: "Sales", Row: "none"}, visit), tables.ErrNotFound, "an entity that is not")
			assert.ErrorIs(t, p.registry.Modify(ctx, keys[0], nil), tables.ErrWiring, "no change")
		})
	}
	_, p := newTable(t, s, byVisits())
	assert.Check(t, p.employees.Insert(ctx, current(1)))
	for what, value := range map[string]tables.Value{"Color": tables.String("red"), "Email": tables.Int64(1)} {
		if err := p.registry.Modify(ctx, keyOf("Sales", 1), func(e *tables.Entity) error { e.Set(what, value); return nil }); err == nil {
			t.Errorf("a %s that an employee cannot have was written", what)
		}
	}
}

// TestRequestCounts holds what the package's comment says of requests.
func TestRequestCounts(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	counted, counter := harness.CountedService(s)
	name, plain := newTable(t, s)
	before := assert.Must[*program](t)(startOld(s, name))
	assert.Check(t, plain.employees.Insert(ctx, current(1)), before.v1.Insert(ctx, old(2)), before.v1.Insert(ctx, old(3)), before.v1.Insert(ctx, old(4)))
	other := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: "other"}}
	other.Set("Visits", tables.Int64(1))
	assert.Check(t, plain.table.Entities().Insert(ctx, other))
	p := assert.Must[*program](t)(start(counted, name))
	cost := func(want int, what string, err error) {
		t.Helper()
		assert.Check(t, err)
		assert.Equal(t, counter.Reset(), want, "%s: requests", what)
	}
	e := current(5)
	cost(1, "Insert", p.employees.Insert(ctx, e))
	cost(1, "Replace", p.employees.Replace(ctx, e))
	cost(2, "Merge", p.employees.Merge(ctx, e, "Visits"))
	cost(1, "Delete", p.employees.Delete(ctx, e))
	_, err := p.registry.Get(ctx, keyOf("Sales", 2))
	cost(1, "Get", err)
	page, err := p.registry.Query().Partition("Sales").Page(ctx, "")
	cost(1, "a page", err)
	v := page.Items[1].(*employee)
	cost(2, "Replace of what a query has read", p.employees.Replace(ctx, v))
	cost(2, "Modify, known", p.registry.Modify(ctx, keyOf("Sales", 1), visit))
	cost(2, "Modify, unknown", p.registry.Modify(ctx, other.Key, visit))
	cost(4, "Modify, an older version", p.registry.Modify(ctx, keyOf("Sales", 3), visit))
	_, err = p.employee.Upgrade(ctx, &patterns.JobOptions{Partitions: []string{"Sales"}})
	cost(1+1, "Upgrade of one", err)
	read, err := p.registry.Get(ctx, keyOf("Sales", 4))
	cost(1, "Get of one that was upgraded", err)
	cost(2, "Delete of what the registry has read", p.registry.Delete(ctx, read))
	indexed := assert.Must[*program](t)(start(counted, name, byVisits()))
	cost(1, "Insert with copies", indexed.employees.Insert(ctx, current(6)))
	cost(4, "Modify, with copies", indexed.registry.Modify(ctx, keyOf("Sales", 6), visit))
	repo, registry, err := reports(p.table, rot[report]{})
	assert.Check(t, err, repo.Insert(ctx, &report{Department: "R", ID: 1}), repo.Insert(ctx, &report{Department: "R", ID: 2}))
	counter.Reset()
	_, err = registry.Query().Partition("R").Page(ctx, "")
	cost(1+2, "a page of two that the repository reads", err)
}
