package encryption_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// counting counts the calls of a wrapper, and may hold them up.
type counting struct {
	encryption.KeyWrapper
	unwrapped atomic.Int64
	gate      chan struct{}
	fail      atomic.Bool
}

var errDown = errors.New("the vault is down")

func (c *counting) Unwrap(ctx context.Context, w encryption.WrappedKey) ([]byte, error) {
	c.unwrapped.Add(1)
	if c.gate != nil {
		select {
		case <-c.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if c.fail.Load() {
		return nil, errDown
	}
	return c.KeyWrapper.Unwrap(ctx, w)
}

// TestCache: an unwrapped key is fetched once, by one of many, again after its time and after its uses; an error is not kept.
func TestCache(t *testing.T) {
	w := worldOn(t, storagetest.Simulator(t, nil))
	wrapper := &counting{KeyWrapper: w.wrapper, gate: make(chan struct{})}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w.registry = w.open(t, wrapper, &encryption.RegistryOptions{TTL: time.Minute, MaxUses: 100})
	w.registry.SetNow(func() time.Time { return now })
	a := loaderIn(t, w, "Employees", nil)

	store := func(ctx context.Context) error {
		_, err := a.Store(ctx, &driver.Change{Key: aKey}, tables.Properties{text("A", "1")})
		return err
	}
	giveUp, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- store(giveUp) }() // is to fetch, and gives up
	for wrapper.unwrapped.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() { assert.Check(t, store(t.Context())) })
	}
	cancel()
	assert.ErrorIs(t, <-left, context.Canceled, "the one who gave up")
	close(wrapper.gate)
	wait.Wait()
	assert.Equal(t, wrapper.unwrapped.Load(), 2, "times that 20 writers at once, and one who gave up, unwrapped")
	for range 120 {
		assert.Check(t, store(t.Context()))
	}
	assert.Equal(t, wrapper.unwrapped.Load(), 3, "times it was unwrapped after 140 uses at 100 each")
	now = now.Add(time.Minute)
	wrapper.fail.Store(true)
	for range 3 {
		if err := store(t.Context()); !errors.Is(err, errDown) || errors.Is(err, tables.ErrInvalid) {
			t.Errorf("while the vault is down: %v", err)
		}
	}
	wrapper.fail.Store(false)
	assert.Check(t, store(t.Context()), store(t.Context()))
	assert.Equal(t, wrapper.unwrapped.Load(), 7, "times it was unwrapped in the end")
}

// TestConcurrentFirstKeys: one of them makes it, the others are told, and all use the same.
func TestConcurrentFirstKeys(t *testing.T) {
	w := newWorld(t)
	w.registry = w.open(t, w.wrapper, &encryption.RegistryOptions{Name: "concurrent"})
	var wait sync.WaitGroup
	var made atomic.Int64
	for range 8 {
		wait.Go(func() {
			_, err := w.open(t, w.wrapper, &encryption.RegistryOptions{Name: "concurrent"}).CreateDataKey(t.Context())
			if err == nil {
				made.Add(1)
			} else if !errors.Is(err, tables.ErrConflict) {
				t.Errorf("a concurrent writer: %v", err)
			}
		})
	}
	wait.Wait()
	keys, current := int64(0), 0
	for info, err := range w.registry.DataKeys(t.Context()) {
		assert.Check(t, err)
		keys++
		if info.Current {
			current++
		}
		if info.WrappedBy != "local" || time.Since(info.Created) > time.Hour {
			t.Errorf("%+v", info)
		}
	}
	if keys != made.Load() || current != 1 || keys == 0 {
		t.Errorf("%d were made, %d are there, %d are current", made.Load(), keys, current)
	}
	assert.Check(t, w.registry.Check(t.Context()))
}

// TestRewrap: with the wrapping key replaced, data and indexes stay readable, and the old one is not needed any more.
func TestRewrap(t *testing.T) {
	w, v := newWorld(t), newVault(t)
	ctx := t.Context()
	r := w.employees(t, w.s.TableName(t), nil)
	assert.Check(t, r.Insert(ctx, june("Sales", 1)), assert.Err(fetchBeacon(ctx, w.registry, "number", 0)))
	before := assert.Must[*encryption.Beacon](t)(fetchBeacon(ctx, w.registry, "number", 0)).Part(tables.String("x"))
	assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(ctx))
	assert.Check(t, r.Insert(ctx, june("Sales", 2)))

	both := w.open(t, encryption.NewChain(v.wrapper(t, nil), w.wrapper), &encryption.RegistryOptions{TrustTable: true})
	if n, err := both.Rewrap(ctx); n != 3 || err != nil {
		t.Fatalf("%d keys, %v", n, err)
	}
	if n, err := both.Rewrap(ctx); n != 0 || err != nil {
		t.Errorf("again: %d keys, %v", n, err)
	}
	v.rotate(t, secondVersion)
	if n, err := both.Rewrap(ctx); n != 3 || err != nil {
		t.Errorf("to a new version of the key: %d keys, %v", n, err)
	}
	delete(v.versions, firstVersion)
	alone := w.open(t, v.wrapper(t, nil), &encryption.RegistryOptions{TrustTable: true})
	assert.Check(t, alone.Check(ctx))
	reader := assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), alone, nil))
	for id := range 2 {
		assert.Must[*employee](t)(reader.Get(ctx, employeeKey("Sales", id+1)))
	}
	assert.Equal(t, assert.Must[*encryption.Beacon](t)(fetchBeacon(ctx, alone, "number", 0)).Part(tables.String("x")), before, "the beacon is another one")
	// The old key cannot unwrap, readers with it get the one error, writers a reason, and Check tells more.
	old := w.open(t, w.wrapper, nil)
	reader = assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), old, nil))
	_, err := reader.Get(ctx, employeeKey("Sales", 1))
	refusedBy(t, err, "without the wrapping key")
	if err := reader.Insert(ctx, june("Sales", 3)); !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "Check") {
		t.Errorf("a write without the wrapping key: %v", err)
	}
	if err := old.Check(ctx); !errors.Is(err, tables.ErrWiring) || strings.Count(err.Error(), vaultKeyID+"/"+secondVersion) != 3 {
		t.Errorf("Check: %v", err)
	}
	assert.ErrorIs(t, assert.Err(old.Rewrap(ctx)), tables.ErrWiring, "Rewrap without the wrapping key")
}

// TestSwappedDataKeys: a wrapped key is no good in another row of the registry.
func TestSwappedDataKeys(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	r := w.employees(t, w.s.TableName(t), nil)
	assert.Check(t, r.Insert(ctx, june("Sales", 1)), assert.Err(fetchBeacon(ctx, w.registry, "number", 0)))
	second := assert.Must[encryption.DataKeyID](t)(w.registry.CreateDataKey(ctx))
	var rows []*tables.Entity
	for row, err := range w.keys.Entities().Query().Partition("datakeys").All(ctx) {
		assert.Check(t, err)
		if row.Key.Row != "current" {
			rows = append(rows, row)
		}
	}
	for i := range rows {
		put(t, w.keys, &tables.Entity{Key: rows[i].Key, Properties: rows[(i+1)%len(rows)].Properties})
	}
	fresh := w.open(t, w.wrapper, nil)
	r = assert.Must[*patterns.Repository[employee]](t)(employeesOf(r.Table(), fresh, nil))
	_, err := r.Get(ctx, employeeKey("Sales", 1))
	refusedBy(t, err, "a swapped data key")
	assert.ErrorIs(t, r.Insert(ctx, june("Sales", 2)), tables.ErrWiring, "a write under %v, which was swapped", second)
	assert.ErrorIs(t, assert.Err(fetchBeacon(ctx, fresh, "number", 0)), tables.ErrGarbled, "a beacon, which was swapped")
}

// TestRegistryFaults: whatever befalls a call of CreateDataKey or Rewrap, the registry stays whole, and the operation can be
// repeated.
func TestRegistryFaults(t *testing.T) {
	other := localKey(t, "other", 2)
	type stage struct {
		*world
		r *encryption.Registry
	}
	operations := map[string]func(ctx context.Context, r *encryption.Registry) error{
		"CreateDataKey": func(ctx context.Context, r *encryption.Registry) error { return assert.Err(r.CreateDataKey(ctx)) },
		"Rewrap":        func(ctx context.Context, r *encryption.Registry) error { return assert.Err(r.Rewrap(ctx)) },
	}
	for name, run := range operations {
		t.Run(name, func(t *testing.T) {
			points := 0
			for i := 0; ; i++ {
				struck := false
				for _, fault := range storagetest.SweepFaults() {
					w := worldOn(t, storagetest.Simulator(t, nil))
					table := w.account.Table("Employees")
					assert.Check(t, table.Create(t.Context()))
					r := assert.Must[*patterns.Repository[employee]](t)(employeesOf(table, w.registry, nil))
					assert.Check(t, r.Insert(t.Context(), june("Sales", 1)))
					faulty, faults := w.s.Faulty(storagetest.OnIndex(i, storagetest.Once(storagetest.Always(fault))))
					account := open(t, faulty)
					x := stage{w, assert.Must[*encryption.Registry](t)(encryption.NewRegistry(account.Table(w.keys.Name()), encryption.NewChain(other, w.wrapper), nil))}
					err := run(t.Context(), x.r)
					if len(faults.Met()) > 0 {
						struck = true
						points++
					}
					healthy := w.open(t, encryption.NewChain(other, w.wrapper), nil)
					assert.Check(t, healthy.Check(t.Context()))
					if err != nil {
						assert.Check(t, run(t.Context(), healthy))
					}
					r = assert.Must[*patterns.Repository[employee]](t)(employeesOf(table, healthy, nil))
					assert.Check(t, assert.Err(r.Get(t.Context(), employeeKey("Sales", 1))), r.Insert(t.Context(), june("Sales", 2)))
				}
				if !struck {
					break
				}
			}
			t.Logf("%d points", points)
			if points < 12 {
				t.Errorf("only %d points", points)
			}
		})
	}
}
