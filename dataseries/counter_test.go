package dataseries_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func TestAdd(t *testing.T) {
	onEach(t, func(t *testing.T, w *world, s *storagetest.Service) {
		ctx, c := t.Context(), assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
		for _, err := range []error{c.Add(ctx, today, 9, 5), c.Add(ctx, today, 9, -7), c.Add(ctx, today, 0, 0), c.Set(ctx, today, 1, 10), c.Add(ctx, today, 1, 1)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := text(assert.Must[*dataseries.Values[int64]](t)(c.Read(ctx, today))); got != "[0 11 . . . . . . . -2]" {
			t.Errorf("the series is %s", got)
		}
	})
}

func TestAddOnce(t *testing.T) {
	onEach(t, func(t *testing.T, w *world, s *storagetest.Service) {
		ctx, c := t.Context(), assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
		other := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
		yesterday := tables.Key{Partition: today.Partition, Row: "20261119"}
		for i, step := range []struct {
			c         *dataseries.Counter[int64]
			key       tables.Key
			slot      int
			delta     int64
			operation string
			counted   bool
			err       error
		}{
			{c, today, 3, 5, "message 1", true, nil},
			{c, today, 3, 5, "message 1", false, nil},
			{other, today, 3, 5, "message 1", false, nil},
			{c, today, 3, 5, "message 2", true, nil},
			{c, today, 3, 5, "message 2/3\n", true, nil},
			{c, yesterday, 3, 5, "message 1", true, nil}, // of another series
			{c, today, 4, 5, "message 1", false, dataseries.ErrOtherAddition},
			{c, today, 3, 6, "message 1", false, dataseries.ErrOtherAddition},
		} {
			counted, err := step.c.AddOnce(ctx, step.key, step.slot, step.delta, step.operation)
			if counted != step.counted || !errors.Is(err, step.err) || step.err != nil && !errors.Is(err, tables.ErrExists) {
				t.Errorf("step %d: %t, %v", i, counted, err)
			}
		}
		if got := text(assert.Must[*dataseries.Values[int64]](t)(c.Read(ctx, today))); got != "[. . . 15 . . . . . .]" {
			t.Errorf("the series is %s", got)
		}
		// A series that was deleted does not count its operations again.
		if err := c.Delete(ctx, yesterday); err != nil {
			t.Fatal(err)
		}
		counted, err := c.AddOnce(ctx, yesterday, 3, 5, "message 1")
		if counted != (w.place == inBlob) || err != nil { // whose marks are gone with it
			t.Errorf("after Delete: %t, %v", counted, err)
		}
	})
}

// overflows adds to a slot that is nearly full: nothing is wrapped, and nothing written.
func overflows[V dataseries.Number](t *testing.T, full, delta V) {
	t.Helper()
	t.Run(fmt.Sprintf("%T%v%+v", full, full, delta), func(t *testing.T) {
		onEach(t, func(t *testing.T, w *world, s *storagetest.Service) {
			ctx, c := t.Context(), assert.Must[*dataseries.Counter[V]](t)(counterOf[V](w, s))
			if counted, err := c.AddOnce(ctx, today, 0, full, "fill"); !counted || err != nil {
				t.Fatal(counted, err)
			}
			_, once := c.AddOnce(ctx, today, 0, delta, "more")
			for i, err := range []error{c.Add(ctx, today, 0, delta), once} {
				if !errors.Is(err, dataseries.ErrOverflow) || !errors.Is(err, tables.ErrInvalid) {
					t.Errorf("%d: %v", i, err)
				}
			}
			if counted, err := c.AddOnce(ctx, today, 0, full, "fill"); counted || err != nil {
				t.Errorf("what has filled the slot is repeated: %t, %v", counted, err)
			}
			if v := assert.Must[*dataseries.Values[V]](t)(c.Read(ctx, today)); v.Slots[0].Value != full {
				t.Errorf("the slot is %v", v.Slots[0])
			}
		})
	})
}

func TestOverflow(t *testing.T) {
	overflows[int64](t, math.MaxInt64, 1)
	overflows[int64](t, math.MinInt64, -1)
	overflows[int32](t, math.MaxInt32, math.MaxInt32)
	overflows[int8](t, 127, 1)
	overflows[uint8](t, 200, 56)
	overflows[uint64](t, math.MaxInt64, 1) // the service has no unsigned integers
	overflows[float64](t, math.MaxFloat64, math.MaxFloat64)
	overflows[float32](t, -math.MaxFloat32, -math.MaxFloat32)
}

// TestInfinity: what is infinite stays so, as numbers do.
func TestInfinity(t *testing.T) {
	onEach(t, func(t *testing.T, w *world, s *storagetest.Service) {
		ctx, c := t.Context(), assert.Must[*dataseries.Counter[float64]](t)(counterOf[float64](w, s))
		for _, err := range []error{c.Add(ctx, today, 0, math.Inf(1)), c.Add(ctx, today, 0, -1), c.Add(ctx, today, 1, 0.5), c.Add(ctx, today, 1, 0.25), c.Add(ctx, today, 2, math.NaN()), c.Add(ctx, today, 2, 1)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := text(assert.Must[*dataseries.Values[float64]](t)(c.Read(ctx, today))); got != "[+Inf 0.75 NaN . . . . . . .]" {
			t.Errorf("the series is %s", got)
		}
	})
}

// TestStageAddOnce: a count moves with a row of the caller's own, or not at all.
func TestStageAddOnce(t *testing.T) {
	for _, p := range []place{inRow, inRows} {
		t.Run(string(p), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Open(t)
			w := (&world{place: p}).open(t, s)
			c := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
			send := func(id string, slot int) (staged bool, err error) {
				x := c.Table().NewTransaction()
				if staged, err = c.StageAddOnce(ctx, x, today, slot, 1, id); err != nil || !staged {
					return staged, err
				}
				x.Insert(&tables.Entity{Key: tables.Key{Partition: today.Partition, Row: "message_" + id}})
				_, err = x.Commit(ctx)
				return staged, err
			}
			for i, want := range []bool{true, false} {
				if staged, err := send("1", 9); staged != want || err != nil {
					t.Fatalf("%d: %t, %v", i, staged, err)
				}
			}
			if staged, err := send("2", 9); !staged || err != nil {
				t.Fatal(staged, err)
			}
			// A message that is there already: its transaction counts nothing.
			if err := c.Table().Entities().Insert(ctx, &tables.Entity{Key: tables.Key{Partition: today.Partition, Row: "message_3"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := send("3", 9); !errors.Is(err, tables.ErrExists) {
				t.Errorf("error is %v", err)
			}
			// A transaction on another table, where nobody would find the count.
			other := assert.Must[*dataseries.Counter[int64]](t)((&world{place: p}).open(t, s).start(s)).Table()
			if _, err := c.StageAddOnce(ctx, other.NewTransaction(), today, 9, 1, "4"); !errors.Is(err, tables.ErrWiring) {
				t.Errorf("another table: %v", err)
			}
			// Two that were staged at the same time.
			first, second := c.Table().NewTransaction(), c.Table().NewTransaction()
			for _, x := range []*tables.Transaction{first, second} {
				if staged, err := c.StageAddOnce(ctx, x, today, 9, 1, fmt.Sprintf("%p", x)); !staged || err != nil {
					t.Fatal(staged, err)
				}
			}
			if _, err := first.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := second.Commit(ctx); !errors.Is(err, tables.ErrConflict) {
				t.Errorf("error is %v", err)
			}
			if n, err := held(ctx, w, s, today, 9); n != 3 || err != nil {
				t.Errorf("the slot holds %d, %v", n, err)
			}
			if _, err := send("1", 8); !errors.Is(err, dataseries.ErrOtherAddition) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// TestRepositoryRows: a series cannot be stored in a row that belongs to a repository with copies.
func TestRepositoryRows(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := (&world{place: inRow}).open(t, s)
	c := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
	type employee struct {
		tables.Meta
		Name string
	}
	repo := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(c.Table(), patterns.Schema[employee]{Key: func(*employee) tables.Key { return today }}, named[employee]()))
	if err := repo.Insert(ctx, &employee{Name: "June"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Add(ctx, today, 0, 1); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("error is %v", err)
	}
	if e := assert.Must[*employee](t)(repo.Get(ctx, today)); e.Name != "June" {
		t.Errorf("%+v", e)
	}
}

// TestErrorsNameTheSeries: an error says what was done to which series, and no value.
func TestErrorsNameTheSeries(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	account := assert.Must[*tables.Account](t)(accountOf(s))
	for _, o := range []*dataseries.Options{nil, {Container: blobstorage.Container(account, "missing")}} {
		c := assert.Must[*dataseries.Counter[int]](t)(dataseries.NewCounter[int](account.Table("Missing"), "A", 9, o))
		_, once := c.AddOnce(t.Context(), today, 0, 4711, "message")
		_, read := c.Read(t.Context(), today)
		for op, err := range map[string]error{"Set": c.Set(t.Context(), today, 0, 4711), "Add": c.Add(t.Context(), today, 0, 4711), "AddOnce": once, "Read": read, "Delete": c.Delete(t.Context(), today)} {
			var e *tables.Error
			if !errors.As(err, &e) || e.Op != op || e.Key != today && o == nil || strings.Contains(err.Error(), "4711") ||
				!errors.Is(err, tables.ErrMissingResource) && !errors.Is(err, tables.ErrNotFound) && op != "Read" {
				t.Errorf("%s: %v", op, err)
			}
		}
		if (read == nil) || errors.Is(read, context.Canceled) {
			t.Errorf("Read: %v", read)
		}
	}
}

// TestClientWithoutPolicies: a container's client of the caller's own says nothing of lost answers.
func TestClientWithoutPolicies(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	w := (&world{place: inBlob}).open(t, s)
	account := assert.Must[*tables.Account](t)(accountOf(s))
	c := assert.Must[*dataseries.Counter[int]](t)(dataseries.NewCounter[int](account.Table(w.table), "A", 9, &dataseries.Options{Container: bareContainer(t, s, w.container)}))
	if err := c.Add(ctx, today, 0, 1); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("error is %v", err)
	}
}
