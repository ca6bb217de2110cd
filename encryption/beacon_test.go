package encryption_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestBeacons: the same value has the same one, in every process; another value, name, type or registry has another one; no
// value has none.
func TestBeacons(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	number := assert.Must[*encryption.Beacon](t)(fetchBeacon(ctx, w.registry, "number", 0))
	again := assert.Must[*encryption.Beacon](t)(fetchBeacon(ctx, w.open(t, w.wrapper, nil), "number", 0))
	salary := assert.Must[*encryption.Beacon](t)(fetchBeacon(ctx, w.registry, "salary", 0))
	assert.Equal(t, number.Part(tables.String("x")), again.Part(tables.String("x")), "another process makes another beacon")
	seen := map[string]bool{}
	for _, part := range []compoundkey.Part{number.Part(tables.String("")), number.Part(tables.String("x")), number.Part(tables.String("X")), number.Part(tables.Binary([]byte("x"))),
		number.Part(tables.Int32(7)), number.Part(tables.Int64(7)), salary.Part(tables.String("x"))} {
		key := assert.Must[string](t)(compoundkey.Encode("", part))
		if seen[key] || len(key) != 32 {
			t.Errorf("beacon %s, %v", key, seen)
		}
		seen[key] = true
	}
	if !number.Part(tables.Value{}).IsZero() {
		t.Error("no value has a beacon")
	}
	if part := (&encryption.Beacon{}).Part(tables.String("x")); part.IsZero() || part.Err() == nil {
		t.Error("a beacon without a key makes keys")
	}
	short := assert.Must[*encryption.Beacon](t)(fetchBeacon(ctx, w.registry, "number", 12))
	values := map[string]int{}
	for i := range 5_000 {
		values[assert.Must[string](t)(compoundkey.Encode("", short.Part(tables.Int64(int64(i)))))]++
	}
	if len(values) < 2700 || len(values) > 3100 {
		t.Errorf("5,000 values have %d beacons of 12 bits", len(values))
	}
	for what, err := range map[string]error{
		"7 bits": assert.Err(fetchBeacon(ctx, w.registry, "number", 7)), "129 bits": assert.Err(fetchBeacon(ctx, w.registry, "number", 129)), "no name": assert.Err(fetchBeacon(ctx, w.registry, "", 0)),
	} {
		assert.ErrorIs(t, err, tables.ErrWiring, what)
	}
	unfetched := assert.Must[*encryption.Beacon](t)(w.registry.Beacon("number", 0))
	if part := unfetched.Part(tables.String("x")); part.Err() == nil || unfetched.KeyID() != (encryption.DataKeyID{}) {
		t.Error("a beacon makes keys before its key is fetched")
	}
	strict := w.open(t, w.wrapper, &encryption.RegistryOptions{Trusted: []encryption.DataKeyID{number.KeyID()}})
	assert.Check(t, assert.Err(fetchBeacon(ctx, strict, "number", 0)))
	assert.ErrorIs(t, assert.Err(fetchBeacon(ctx, strict, "missing", 0)), tables.ErrNotFound, "a key that Trusted does not name")
}

// fetchBeacon makes a beacon and fetches its key.
func fetchBeacon(ctx context.Context, r *encryption.Registry, name string, bits int) (*encryption.Beacon, error) {
	b, err := r.Beacon(name, bits)
	if err == nil {
		err = b.Ensure(ctx)
	}
	return b, err
}

// TestLookUpByBeacon: an index by a short beacon finds all that have the value, and others, which are filtered out; a
// list of keys by a beacon as well. The value itself is in no row.
func TestLookUpByBeacon(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	beacon := assert.Must[*encryption.Beacon](t)(fetchBeacon(ctx, w.registry, "number", 8))
	of := func(number string) compoundkey.Part { return beacon.Part(tables.String(number)) }
	byNumber := intrapartition.NewUnique("number", func(e *employee) compoundkey.Part { return compoundkey.Tuple(of(e.Number), compoundkey.Int(e.ID, 6)) }, nil)
	list := indexentities.NewInPartition("numbers", func(e *employee) compoundkey.Part { return of(e.Number) })
	r := w.employees(t, w.s.TableName(t), nil, byNumber, list)
	const n = 120 // of 60 numbers, which have 256 beacons
	for id := range n {
		e := june("Sales", id)
		e.Number = fmt.Sprint("number ", id/2)
		assert.Check(t, r.Insert(ctx, e))
		if id > 24 && testing.Short() {
			break
		}
	}
	for _, number := range []string{"number 0", "number 7", "number 100000"} {
		found, right := 0, 0
		hits := byNumber.In("Sales").Range(ctx, compoundkey.Exactly(of(number)))
		for e, err := range hits {
			assert.Check(t, err)
			if e.Number == number {
				right++
			}
			found++
		}
		filtered := 0
		for e, err := range encryption.Matching(hits, func(e *employee) bool { return e.Number == number }) {
			assert.Check(t, err)
			if filtered++; e.Number != number {
				t.Errorf("%s finds %s", number, e.Number)
			}
		}
		listed := 0
		for e, err := range list.In("Sales").Find(ctx, of(number), nil) {
			assert.Check(t, err)
			if e.Number == number {
				listed++
			}
		}
		want := 2
		if number == "number 100000" {
			want = 0
		}
		if right != want || filtered != want || listed != want {
			t.Errorf("%s: %d found, %d of them right, %d filtered, %d listed; want %d", number, found, right, filtered, listed, want)
		}
	}
	failing := func(yield func(*employee, error) bool) { yield(nil, tables.ErrUnavailable) }
	for _, err := range encryption.Matching(failing, func(*employee) bool { return true }) {
		assert.ErrorIs(t, err, tables.ErrUnavailable, "the error")
	}
}
