package encryption_test

import (
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// keysOf returns how many data keys a registry has.
func keysOf(t testing.TB, r *encryption.Registry) (n int) {
	t.Helper()
	for _, err := range r.DataKeys(t.Context()) {
		assert.Check(t, err)
		n++
	}
	return n
}

// TestStoreCreatesTheFirstDataKey: Store.Create of several processes at once makes one key of a beacon and one data key, under which all of them write, and no
// other later.
func TestStoreCreatesTheFirstDataKey(t *testing.T) {
	s := storagetest.Open(t)
	keys, table := s.TableName(t), s.TableName(t)
	const processes = 5
	failures := make(chan error)
	var registries [processes]*encryption.Registry
	var people [processes]*patterns.Repository[employee]
	var beacons [processes]*encryption.Beacon
	for i := range processes {
		store := assert.Must[*patterns.Store](t)(patterns.Open("people", &patterns.StoreOptions{Account: open(t, s)}))
		registries[i] = assert.Must[*encryption.Registry](t)(encryption.NewRegistry(store.Table(keys), localKey(t, "local", 1), nil))
		people[i] = assert.Must[*patterns.Repository[employee]](t)(employeesOf(store.Table(table), registries[i], nil))
		beacons[i] = assert.Must[*encryption.Beacon](t)(registries[i].Beacon("number", 0))
		go func() { failures <- store.Create(t.Context()) }()
	}
	for range processes {
		assert.Check(t, <-failures)
	}
	for _, b := range beacons {
		assert.Equal(t, b.Part(tables.String("x")), beacons[0].Part(tables.String("x")), "the beacon of another process")
	}
	for i, r := range people {
		assert.Check(t, r.Insert(t.Context(), june("Sales", i)))
		assert.Must[*employee](t)(people[0].Get(t.Context(), employeeKey("Sales", i)))
	}
	assert.Check(t, registries[0].EnsureDataKey(t.Context()))
	assert.Equal(t, keysOf(t, registries[0]), 1, "data keys")
}

// TestEnsureDataKey: it changes nothing where a key is named, also one that cannot be read, and nothing where the program names its keys.
func TestEnsureDataKey(t *testing.T) {
	w := newWorld(t)
	counted, counter := harness.CountedService(w.s)
	registry := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(open(t, counted).Table(w.keys.Name()), w.wrapper, nil))
	if assert.Check(t, registry.EnsureDataKey(t.Context())); counter.Count() != 1 {
		t.Errorf("%d requests", counter.Count())
	}
	current := bag(t, w.keys, tables.Key{Partition: "datakeys", Row: "current"})
	current.Set("DataKey", tables.String("none"))
	assert.Check(t, w.keys.Entities().ReplaceUnconditional(t.Context(), current))
	if err := registry.EnsureDataKey(t.Context()); tables.KindOf(err) != tables.ErrGarbled || !strings.Contains(err.Error(), "CreateDataKey") {
		t.Errorf("a row that names no key: %v", err)
	}
	assert.Equal(t, keysOf(t, registry), 1, "data keys")
	empty := w.account.Table(w.s.TableName(t))
	assert.Check(t, empty.Create(t.Context()))
	pinned := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(empty, w.wrapper, &encryption.RegistryOptions{Trusted: []encryption.DataKeyID{{1}}}))
	if assert.Check(t, pinned.EnsureDataKey(t.Context())); harness.CountRows(t, empty) != 0 {
		t.Error("a key was created that the program does not trust")
	}
}
