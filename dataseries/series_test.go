package dataseries_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func TestSetAndRead(t *testing.T) {
	onEach(t, func(t *testing.T, w *world, s *storagetest.Service) {
		ctx, c := t.Context(), assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
		show := func(want string) {
			t.Helper()
			if got := text(assert.Must[*dataseries.Values[int64]](t)(c.Read(ctx, today))); got != want {
				t.Errorf("the series is %s, want %s", got, want)
			}
		}
		show("[. . . . . . . . . .]")
		for _, err := range []error{c.Set(ctx, today, 9, 5), c.Set(ctx, today, 0, 0)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		show("[0 . . . . . . . . 5]")
		if err := c.SetMany(ctx, today, map[int]int64{0: 1, 3: 2, 4: 3, 9: 4}); err != nil {
			t.Fatal(err)
		}
		show("[1 . . 2 3 . . . . 4]")
		v := assert.Must[*dataseries.Values[int64]](t)(c.Read(ctx, today))
		if got := v.Fill(-1); !slices.Equal(got, []int64{1, -1, -1, 2, 3, -1, -1, -1, -1, 4}) || v.Key != today {
			t.Errorf("filled it is %v, of %v", got, v.Key)
		}
		if err := c.Delete(ctx, today); err != nil {
			t.Fatal(err)
		}
		show("[. . . . . . . . . .]")
		if err := c.Delete(ctx, today); !errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrUnknownOutcome) {
			t.Errorf("the second Delete: %v", err)
		}
	})
}

// TestManySlots: a day of hours, and a year of days.
func TestManySlots(t *testing.T) {
	for _, w := range []*world{{place: inRow, slots: 24}, {place: inRow, slots: dataseries.MaxSlotsPerRow}, {place: inRows, slots: 365}, {place: inBlob, slots: 365}, {place: inRows, slots: 24_000}} {
		t.Run(fmt.Sprint(w.place, w.slots), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Open(t)
			c := assert.Must[*dataseries.Counter[int64]](t)(w.open(t, s).start(s))
			values := map[int]int64{}
			for slot := range w.slots {
				values[slot] = int64(slot * slot)
			}
			if err := c.SetMany(ctx, today, values); err != nil {
				t.Fatal(err)
			}
			if err := c.Add(ctx, today, w.slots-1, 1); err != nil {
				t.Fatal(err)
			}
			values[w.slots-1]++
			v := assert.Must[*dataseries.Values[int64]](t)(c.Read(ctx, today))
			for slot, got := range v.Slots {
				if got.Value != values[slot] || !got.Present {
					t.Fatalf("slot %d is %+v", slot, got)
				}
			}
		})
	}
}

// roundTrip sets each value in a slot of its own and reads it back.
func roundTrip[V any](t *testing.T, same func(a, b V) bool, values ...V) {
	t.Helper()
	t.Run(fmt.Sprintf("%T", values[0]), func(t *testing.T) {
		onEach(t, func(t *testing.T, w *world, s *storagetest.Service) {
			series := seriesOf[V](t, w, s)
			for slot, v := range values {
				if err := series.Set(t.Context(), today, slot, v); err != nil {
					t.Fatalf("%v: %v", v, err)
				}
			}
			got := assert.Must[*dataseries.Values[V]](t)(series.Read(t.Context(), today))
			for slot, v := range values {
				if s := got.Slots[slot]; !s.Present || !same(s.Value, v) {
					t.Errorf("%v came back as %v", v, s)
				}
			}
			for slot := len(values); slot < fewSlots; slot++ {
				if got.Slots[slot].Present {
					t.Errorf("slot %d is there", slot)
				}
			}
		})
	})
}

func equal[V comparable](a, b V) bool { return a == b }

func TestValuesComeBackEqual(t *testing.T) {
	floats := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	roundTrip(t, floats, math.Inf(1), math.Inf(-1), math.NaN(), 3, -0.5, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e21)
	roundTrip(t, equal[int64], math.MaxInt64, math.MinInt64, 0, -1, 1<<53+1)
	roundTrip(t, equal[int32], math.MaxInt32, math.MinInt32, 0)
	roundTrip(t, equal[uint64], math.MaxInt64, 0)
	roundTrip(t, equal[string], "", "O'Brien", "\u2028\n\x00\"\\", strings.Repeat("ü", 1000), "Edm.Int64", "12", "true")
	roundTrip(t, equal[bool], true, false)
	roundTrip(t, equal[uuid.UUID], uuid.UUID{}, uuid.MustParse("b8a5e8a0-97d5-4b6f-a8c1-3b8ecdb3b7f1"))
	roundTrip(t, time.Time.Equal, time.Date(2026, 11, 20, 12, 0, 0, 100, time.UTC), time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC))
	roundTrip(t, slices.Equal[[]byte], []byte{}, []byte{0, 255})
	roundTrip(t, equal[tables.Value], tables.String("12"), tables.Int32(12), tables.Int64(12), tables.Double(12), tables.Boolean(true), tables.Binary([]byte("12")))
	roundTrip(t, equal[time.Duration], time.Hour, -1)
}

// TestReadMany reads several series of a partition between other rows.
func TestReadMany(t *testing.T) {
	onEach(t, func(t *testing.T, w *world, s *storagetest.Service) {
		ctx, c := t.Context(), assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
		keys := []string{"day_a", "day_a b", "day_b", "day_c", "day_d/."} // in order
		for i, row := range keys {
			key := tables.Key{Partition: "p", Row: strings.ReplaceAll(row, "/", "-")}
			keys[i] = key.Row
			for _, err := range []error{c.SetMany(ctx, key, map[int]int64{0: int64(i), 5: 5, 9: 9}), c.Set(ctx, tables.Key{Partition: "q", Row: key.Row}, 1, 1)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if counted, err := c.AddOnce(ctx, tables.Key{Partition: "p", Row: keys[0]}, 0, 0, "once"); !counted || err != nil {
			t.Fatal(counted, err)
		}
		other := &tables.Entity{Key: tables.Key{Partition: "p", Row: "day_bb"}, Properties: tables.Properties{{Name: "Count", Value: tables.Int64(7)}}}
		if err := c.Table().Entities().Insert(ctx, other); err != nil {
			t.Fatal(err)
		}
		for _, span := range []struct {
			of   compoundkey.Span
			want []string
		}{
			{compoundkey.Span{}, keys},
			{compoundkey.Range("day_a", "day_c"), keys[:3]},
			{compoundkey.Range("day_a b", "day_d"), keys[1:4]},
			{compoundkey.Range("day_a", "day_a b"), keys[:1]}, // a row "day_a!0001" is behind the bound
			{compoundkey.Range("day_a ", "day_a c"), keys[1:2]},
			{compoundkey.Range("e", ""), nil},
		} {
			var rows []string
			for _, v := range all(t, c.ReadMany(ctx, "p", span.of)) {
				rows = append(rows, v.Key.Row)
				i := slices.Index(keys, v.Key.Row)
				if want := fmt.Sprintf("[%d . . . . 5 . . . 9]", i); text(v) != want || v.Key.Partition != "p" {
					t.Errorf("%v is %s, want %s", v.Key, text(v), want)
				}
			}
			if w.place == inBlob {
				slices.Sort(rows) // blobs come by their names, in which a blank sorts elsewhere
			}
			if !slices.Equal(rows, span.want) {
				t.Errorf("%q to %q: %q, want %q", span.of.From(), span.of.To(), rows, span.want)
			}
		}
		for range c.ReadMany(ctx, "p", compoundkey.Span{}) {
			break
		}
	})
}

// TestRefused: what cannot be is refused before any request.
func TestRefused(t *testing.T) {
	ctx := context.Background()
	s, requests := counting(storagetest.Simulator(t, nil))
	account := assert.Must[*tables.Account](t)(accountOf(s))
	table, blobs := account.Table("Refused"), blobstorage.Container(account, "refused")
	for name, make := range map[string]func() error{
		"no table":   func() error { _, err := dataseries.New[int](nil, "A", 1, nil); return err },
		"no slots":   func() error { _, err := dataseries.New[int](table, "A", 0, nil); return err },
		"many slots": func() error { _, err := dataseries.New[int](table, "A", dataseries.MaxSlotsPerRow+1, nil); return err },
		"too many rows": func() error {
			_, err := dataseries.New[int](table, "A", 1000, &dataseries.Options{SlotsPerRow: 9})
			return err
		},
		"too many a row": func() error {
			_, err := dataseries.New[int](table, "A", 1000, &dataseries.Options{SlotsPerRow: 246})
			return err
		},
		"most slots": func() error {
			_, err := dataseries.New[int](table, "A", dataseries.MaxSlots+1, &dataseries.Options{Container: blobs})
			return err
		},
		"both": func() error {
			_, err := dataseries.New[int](table, "A", 9, &dataseries.Options{SlotsPerRow: 4, Container: blobs})
			return err
		},
		"few digits": func() error {
			_, err := dataseries.New[int](table, "A", 101, &dataseries.Options{Digits: 2})
			return err
		},
		"attempts": func() error {
			_, err := dataseries.New[int](table, "A", 9, &dataseries.Options{MaxAttempts: -1})
			return err
		},
		"no prefix":       func() error { _, err := dataseries.New[int](table, "", 9, nil); return err },
		"our prefix":      func() error { _, err := dataseries.New[int](table, "_tpA", 9, nil); return err },
		"no identifier":   func() error { _, err := dataseries.New[int](table, "a-b", 9, nil); return err },
		"no value type":   func() error { _, err := dataseries.New[struct{}](table, "A", 9, nil); return err },
		"no value type 2": func() error { _, err := dataseries.New[[]int](table, "A", 9, nil); return err },
	} {
		if err := make(); !errors.Is(err, tables.ErrWiring) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []*dataseries.Options{nil, {SlotsPerRow: 4}, {Container: blobs}} {
		c := assert.Must[*dataseries.Counter[uint64]](t)(dataseries.NewCounter[uint64](table, "A", 9, o))
		long := strings.Repeat("a", 513)
		once := func(key tables.Key, slot int, v uint64, operation string) error {
			_, err := c.AddOnce(ctx, key, slot, v, operation)
			return err
		}
		staged := func(x *tables.Transaction, operation string) error {
			_, err := c.StageAddOnce(ctx, x, today, 0, 1, operation)
			return err
		}
		swept := func(age time.Duration, o *dataseries.SweepOptions) error {
			_, err := c.SweepMarkers(ctx, age, o)
			return err
		}
		for name, err := range map[string]error{
			"slot": c.Set(ctx, today, 9, 1), "slot below": c.Add(ctx, today, -1, 1), "slots": c.SetMany(ctx, today, map[int]uint64{0: 1, 9: 1}),
			"nothing": c.SetMany(ctx, today, nil), "too great": c.Set(ctx, today, 1, math.MaxUint64), "great delta": c.Add(ctx, today, 1, math.MaxUint64),
			"key": c.Set(ctx, tables.Key{Row: "a/b"}, 1, 1), "key 2": c.Delete(ctx, tables.Key{Partition: "a#"}),
			"marker's key": c.Set(ctx, tables.Key{Row: "\uFFFConce_A"}, 1, 1),
			"no operation": once(today, 0, 1, ""), "no text": once(today, 0, 1, "\xff"), "once": once(today, 9, 1, "a"),
			"no transaction": staged(nil, "a"), "no staged operation": staged(table.NewTransaction(), ""),
			"no age": swept(0, nil), "too short an age": swept(time.Hour, nil), "no partition": swept(age, &dataseries.SweepOptions{Partitions: []string{"a?"}}), "no token": swept(age, &dataseries.SweepOptions{Resume: "e30"}),
		} {
			if !errors.Is(err, map[bool]error{true: tables.ErrWiring, false: tables.ErrInvalid}[name == "no transaction"]) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := c.Read(ctx, tables.Key{Row: long})
		for name, err := range map[string]error{"long key": err, "long operation": once(today, 0, 1, long)} {
			if !errors.Is(err, tables.ErrTooLarge) || strings.Contains(err.Error(), "aaa") {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, err := range c.ReadMany(ctx, "a/b", compoundkey.Span{}) {
			if !errors.Is(err, tables.ErrInvalid) {
				t.Errorf("ReadMany: %v", err)
			}
		}
	}
	several := assert.Must[*dataseries.Counter[int]](t)(dataseries.NewCounter[int](table, "A", 9, &dataseries.Options{SlotsPerRow: 4}))
	if err := several.Set(ctx, tables.Key{Row: "a!0001"}, 0, 1); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("the key of a further row: %v", err)
	}
	if err := several.Set(ctx, tables.Key{Row: strings.Repeat("a", 508)}, 0, 1); !errors.Is(err, tables.ErrTooLarge) {
		t.Errorf("a key without room for a number: %v", err)
	}
	inBlobs := assert.Must[*dataseries.Counter[int]](t)(dataseries.NewCounter[int](table, "A", 9, &dataseries.Options{Container: blobs}))
	if _, err := inBlobs.StageAddOnce(ctx, table.NewTransaction(), today, 0, 1, "a"); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("a blob in a transaction: %v", err)
	}
	texts := assert.Must[*dataseries.Series[string]](t)(dataseries.New[string](table, "A", 9, nil))
	if err := texts.Set(ctx, today, 0, strings.Repeat("x", tables.MaxStringUnits+1)); !errors.Is(err, tables.ErrTooLarge) {
		t.Errorf("a long text: %v", err)
	}
	optional := assert.Must[*dataseries.Series[*int]](t)(dataseries.New[*int](table, "A", 9, nil))
	if err := optional.Set(ctx, today, 0, nil); !errors.Is(err, tables.ErrInvalid) {
		t.Errorf("no value: %v", err)
	}
	if n := requests.Count(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestDeclarationsThatChange: more slots are found by old and new programs; what would be missed in silence is an error.
func TestDeclarationsThatChange(t *testing.T) {
	onEach(t, func(t *testing.T, w *world, s *storagetest.Service) {
		ctx, account := t.Context(), assert.Must[*tables.Account](t)(accountOf(s))
		declare := func(slots int, change func(o *dataseries.Options)) *dataseries.Counter[int] {
			o := w.options(account)
			change(o)
			return assert.Must[*dataseries.Counter[int]](t)(dataseries.NewCounter[int](account.Table(w.table), "Count_", slots, o))
		}
		same := func(*dataseries.Options) {}
		old, grown := declare(fewSlots, func(o *dataseries.Options) { o.Digits = 2 }), declare(fewSlots+5, same)
		for _, err := range []error{grown.Set(ctx, today, 14, 14), old.Set(ctx, today, 3, 3), old.Add(ctx, today, 3, 3)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := text(assert.Must[*dataseries.Values[int]](t)(old.Read(ctx, today))); got != "[. . . 6 . . . . . .]" {
			t.Errorf("with fewer slots it is %s", got)
		}
		if got := text(assert.Must[*dataseries.Values[int]](t)(grown.Read(ctx, today))); got != "[. . . 6 . . . . . . . . . . 14]" {
			t.Errorf("with more slots it is %s", got)
		}
		if _, err := declare(fewSlots, same).Read(ctx, today); !errors.Is(err, tables.ErrGarbled) {
			t.Errorf("with other digits: %v", err)
		}
		if w.place == inRows {
			if _, err := declare(fewSlots+5, func(o *dataseries.Options) { o.SlotsPerRow = 5 }).Read(ctx, today); !errors.Is(err, tables.ErrGarbled) {
				t.Errorf("with other rows: %v", err)
			}
		}
		texts := assert.Must[*dataseries.Series[bool]](t)(dataseries.New[bool](account.Table(w.table), "Count_", fewSlots+5, w.options(account)))
		if _, err := texts.Read(ctx, today); !errors.Is(err, tables.ErrGarbled) {
			t.Errorf("of another type: %v", err)
		}
	})
}
