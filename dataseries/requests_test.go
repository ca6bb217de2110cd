package dataseries_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRequestCounts holds what the package comment says.
func TestRequestCounts(t *testing.T) {
	for _, c := range []struct {
		world
		set, addOnce, again, readMany, sweep, remove int
	}{
		{world{place: inRow, slots: 24}, 1, 2, 3, 1, 2, 1},
		{world{place: inRows, slots: 365}, 1, 2, 3, 1, 2, 2},
		{world{place: inBlob, slots: 365}, 2, 2, 1, 1 + 2, 1 + 2, 1},
	} {
		t.Run(fmt.Sprint(c.place, c.slots), func(t *testing.T) {
			s := storagetest.Open(t)
			w := c.world
			w.open(t, s)
			counted, requests := counting(s)
			ctx, counter := t.Context(), assert.Must[*dataseries.Counter[int64]](t)(w.start(counted))
			series := seriesOf[int64](t, &w, counted)
			yesterday := tables.Key{Partition: today.Partition, Row: "20261119"}
			last := w.slots - 1
			once := func(key tables.Key) func() error {
				return func() error { _, err := counter.AddOnce(ctx, key, last, 1, "message 1"); return err }
			}
			for _, step := range []struct {
				name string
				want int
				do   func() error
			}{
				{"Set", c.set, func() error { return series.Set(ctx, today, last, 5) }},
				{"SetMany", c.set, func() error { return series.SetMany(ctx, today, map[int]int64{0: 1, last: 2}) }},
				{"SetMany of another", c.set, func() error { return series.SetMany(ctx, yesterday, map[int]int64{0: 1, last: 2}) }},
				{"Set of a counter", 2, func() error { return counter.Set(ctx, today, last, 5) }},
				{"Add", 2, func() error { return counter.Add(ctx, today, last, 1) }},
				{"AddOnce", c.addOnce, once(today)},
				{"AddOnce again", c.again, once(today)},
				{"Read", 1, func() error { _, err := counter.Read(ctx, today); return err }},
				{"ReadMany", c.readMany, func() error {
					if n := len(all(t, counter.ReadMany(ctx, today.Partition, compoundkey.Span{}))); n != 2 {
						return fmt.Errorf("%d series", n)
					}
					return nil
				}},
				{"SweepMarkers", c.sweep, func() error {
					_, err := counter.SweepMarkers(ctx, age, &dataseries.SweepOptions{Partitions: []string{today.Partition}})
					return err
				}},
				{"Delete", c.remove, func() error { return counter.Delete(ctx, today) }},
			} {
				requests.Reset()
				if err := step.do(); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				if got := requests.Count(); got != step.want {
					t.Errorf("%s: %d requests, want %d", step.name, got, step.want)
				}
			}
			if w.place == inBlob {
				return
			}
			requests.Reset()
			if _, err := counter.StageAddOnce(ctx, counter.Table().NewTransaction(), today, last, 1, "message 2"); err != nil || requests.Count() != 2 {
				t.Errorf("StageAddOnce: %d requests, %v", requests.Count(), err)
			}
		})
	}
}

// TestSweepRequests: a hundred markers of a partition are one transaction.
func TestSweepRequests(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := (&world{place: inRow}).open(t, s)
	counted, requests := counting(s)
	c := assert.Must[*dataseries.Counter[int64]](t)(w.start(counted))
	operations(t, c, "old", 105, "p", "q")
	s.Wait(2 * age)
	requests.Reset()
	report, err := c.SweepMarkers(t.Context(), age, nil)
	if err != nil || report.Deleted != 210 || requests.Count() != 2+4 {
		t.Errorf("%+v, %v; %d requests", report, err, requests.Count())
	}
}

// TestSweepRowsPerSecond: 210 markers, 100 of them at once, are read and deleted at 1,000 rows a second.
func TestSweepRowsPerSecond(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := (&world{place: inRow}).open(t, s)
	c := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
	operations(t, c, "old", 105, "p", "q")
	s.Wait(2 * age)
	began := time.Now()
	report, err := c.SweepMarkers(t.Context(), age, &dataseries.SweepOptions{RowsPerSecond: 1000})
	// What the last request takes is paid by the next one, which there is not.
	if took := time.Since(began); err != nil || report.Deleted != 210 || took < 100*time.Millisecond {
		t.Errorf("%+v, %v, took %v", report, err, took)
	}
	_, err = c.SweepMarkers(t.Context(), age, &dataseries.SweepOptions{RowsPerSecond: -1})
	harness.WantKind(t, err, tables.ErrWiring)
}
