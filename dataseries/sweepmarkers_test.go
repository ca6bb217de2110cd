package dataseries_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// named makes a repository's rows have copies, without keys.
func named[T any]() *intrapartition.Unique[T, string] {
	return intrapartition.NewUnique("name", func(*T) string { return "x" }, nil)
}

func bareContainer(t *testing.T, s *storagetest.Service, name string) *container.Client {
	t.Helper()
	return assert.Must[*container.Client](t)(container.NewClientFromConnectionString(s.ConnectionString, name, &container.ClientOptions{ClientOptions: s.ClientOptions}))
}

const age = 7 * 24 * time.Hour

// operations makes n operations on each of the partitions' series.
func operations(t *testing.T, c *dataseries.Counter[int64], round string, n int, partitions ...string) {
	t.Helper()
	for _, p := range partitions {
		for i := range n {
			counted, err := c.AddOnce(t.Context(), tables.Key{Partition: p, Row: fmt.Sprint("day", i%2)}, i%fewSlots, 1, fmt.Sprint(round, i))
			if !counted || err != nil {
				t.Fatal(counted, err)
			}
		}
	}
}

func TestSweepMarkers(t *testing.T) {
	for _, p := range places {
		t.Run(string(p), func(t *testing.T) {
			ctx, s := t.Context(), storagetest.Simulator(t, nil)
			w := (&world{place: p}).open(t, s)
			c := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
			operations(t, c, "old", 105, "p")
			operations(t, c, "old", 3, "p b", "q")
			s.Wait(age - time.Minute)
			operations(t, c, "young", 5, "p", "q")
			s.Wait(2 * time.Minute)
			swept := func(o *dataseries.SweepOptions, old, removed int64) {
				t.Helper()
				report, err := c.SweepMarkers(ctx, age, o)
				if err != nil || report.Read != old || report.Deleted != removed || report.Resume != "" {
					t.Errorf("%+v, %v; want %d and %d", report, err, old, removed)
				}
			}
			swept(&dataseries.SweepOptions{DryRun: true}, 111, 0)
			swept(&dataseries.SweepOptions{Partitions: []string{"q", "other"}}, 3, 3)
			swept(&dataseries.SweepOptions{DryRun: true, Partitions: []string{"p", "p b", "q"}}, 108, 0)
			swept(nil, 108, 108)
			swept(nil, 0, 0)
			// Those that were swept count again, and the young ones do not.
			for operation, want := range map[string]bool{"old0": true, "young0": false} {
				if counted, err := c.AddOnce(ctx, tables.Key{Partition: "p", Row: "day0"}, 0, 1, operation); counted != want || err != nil {
					t.Errorf("%s: %t, %v", operation, counted, err)
				}
			}
		})
	}
}

// TestSweepMarkersResumes: a sweep that was broken off goes on where it was.
func TestSweepMarkersResumes(t *testing.T) {
	for _, p := range places {
		for _, partitions := range [][]string{nil, {"r", "p", "q"}} {
			t.Run(fmt.Sprint(p, len(partitions)), func(t *testing.T) {
				s := storagetest.Simulator(t, nil)
				w := (&world{place: p}).open(t, s)
				c := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
				operations(t, c, "old", 105, "q")
				operations(t, c, "old", 5, "p", "r")
				s.Wait(2 * age)
				token, calls := "", 0
				var report dataseries.SweepReport
				for runs := 1; ; runs++ {
					ctx, cancel := context.WithCancel(t.Context())
					var err error
					report, err = c.SweepMarkers(ctx, age, &dataseries.SweepOptions{DryRun: true, Partitions: partitions, Resume: token,
						Progress: func(tables.Progress) { calls++; cancel() }})
					cancel()
					if err == nil {
						if runs < 3 {
							t.Errorf("%d runs only", runs)
						}
						break
					}
					if token = report.Resume; !errors.Is(err, context.Canceled) || token == "" || runs > 20 {
						t.Fatalf("%+v, %v", report, err)
					}
				}
				if report.Read != 115 || report.Deleted != 0 {
					t.Errorf("%+v", report)
				}
				if _, err := c.SweepMarkers(t.Context(), age, &dataseries.SweepOptions{Partitions: []string{"x"}, Resume: token}); !errors.Is(err, tables.ErrInvalid) {
					t.Errorf("another sweep's token: %v", err)
				}
			})
		}
	}
}

// TestSweepMarkersOnBoth runs on the service of the suite. Where its clock is the real one, no marker gets old enough.
func TestSweepMarkersOnBoth(t *testing.T) {
	s := storagetest.Open(t)
	counters := map[*world]*dataseries.Counter[int64]{}
	for _, p := range places {
		w := (&world{place: p}).open(t, s)
		counters[w] = assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
		operations(t, counters[w], "a", 3, "p", "q")
		if report, err := counters[w].SweepMarkers(t.Context(), 2*time.Hour, nil); err != nil || report.Read != 0 {
			t.Errorf("%s: %+v, %v", p, report, err)
		}
	}
	if s.Clock == nil {
		return
	}
	s.Wait(2*time.Hour + 2*time.Second) // its Date shows seconds
	for w, c := range counters {
		if report, err := c.SweepMarkers(t.Context(), 2*time.Hour, nil); err != nil || report.Deleted != 6 {
			t.Errorf("%s: %+v, %v", w.place, report, err)
		}
		if n, err := held(t.Context(), w, s, tables.Key{Partition: "p", Row: "day0"}, 0); n != 1 || err != nil {
			t.Errorf("%s: the slot holds %d, %v", w.place, n, err)
		}
	}
}

// TestSweepsAtOnce: two sweeps get in each other's way, and in that of an operation that comes after all.
func TestSweepsAtOnce(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	w := (&world{place: inRow}).open(t, s)
	concurrent := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
	operations(t, concurrent, "old", 20, "p")
	s.Wait(2 * age)
	faulty, _ := s.Faulty(storagetest.On(storagetest.Batch, storagetest.Once(storagetest.Always(storagetest.Before("a concurrent writer", func() {
		if report, err := concurrent.SweepMarkers(t.Context(), age, nil); err != nil || report.Deleted != 20 {
			t.Errorf("%+v, %v", report, err)
		}
		operations(t, concurrent, "old", 5, "p")
	})))))
	c := assert.Must[*dataseries.Counter[int64]](t)(w.start(faulty))
	report, err := c.SweepMarkers(t.Context(), age, nil)
	if err != nil || report.Read != 20 || report.Deleted != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if counted, err := concurrent.AddOnce(t.Context(), tables.Key{Partition: "p", Row: "day0"}, 0, 1, "old0"); counted || err != nil {
		t.Errorf("the new marker is gone: %t, %v", counted, err)
	}
}

// TestSweepOfArchivedSeries: a series whose blob is in the archive tier does not keep the markers of the others.
func TestSweepOfArchivedSeries(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := (&world{place: inBlob}).open(t, s)
	c := assert.Must[*dataseries.Counter[int64]](t)(w.start(s))
	operations(t, c, "old", 3, "p", "q", "r")
	s.Wait(age + time.Minute)
	tier := func(to blob.AccessTier) {
		for b, err := range blobio.List(ctx, bareContainer(t, s, w.container), "", container.ListBlobsInclude{}) {
			assert.Check(t, err)
			if strings.Contains(*b.Name, "/q/") {
				_, err := bareContainer(t, s, w.container).NewBlobClient(*b.Name).SetTier(ctx, to, nil)
				assert.Check(t, err)
			}
		}
	}
	tier(blob.AccessTierArchive)
	report, err := c.SweepMarkers(ctx, age, nil)
	if e := harness.WantKind(t, err, tables.ErrRefused); e.Code != "BlobArchived" || report.Deleted != 6 || report.Failed != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	_, err = c.Read(ctx, tables.Key{Partition: "q", Row: "day0"})
	harness.WantKind(t, err, tables.ErrRefused)
	harness.WantKind(t, c.Add(ctx, tables.Key{Partition: "q", Row: "day0"}, 0, 1), tables.ErrRefused)
	tier(blob.AccessTierHot)
	s.Wait(15 * time.Hour)
	if report := assert.Must[dataseries.SweepReport](t)(c.SweepMarkers(ctx, age, nil)); report.Deleted != 3 || report.Failed != 0 {
		t.Errorf("after the rehydration: %+v", report)
	}
}
