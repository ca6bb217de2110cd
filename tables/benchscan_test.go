package tables_test

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// live is the heap that the last collection has left.
func live() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// BenchmarkAllParallel reads 1 M rows with one reader and with eight, at latencies of a request of 5 and 25 ms, which it waits for. The
// last run of each table is without latency and with many collections, and reports how much the live heap grows.
func BenchmarkAllParallel(b *testing.B) {
	const n = 1_000_000
	for _, skewed := range []bool{false, true} {
		s := storagetest.Simulator(b, nil)
		table := on(b, s).Table("Events")
		assert.Check(b, table.Create(b.Context()))
		if _, err := table.Entities().BulkNonAtomic(b.Context(), spreadRows(n, skewed), nil); err != nil {
			b.Fatal(err)
		}
		d := &delayed{}
		q := on(b, s.WithTransport(d.transport)).Table("Events").Entities().Query().AllowTableScan()
		read := func(readers int, each func()) time.Duration {
			rows, began := 0, time.Now()
			d.made = 0
			for _, err := range q.AllParallel(b.Context(), &tables.ParallelOptions[tables.Entity]{Concurrency: readers, Unordered: true}) {
				assert.Check(b, err)
				if rows++; rows%tables.MaxPageSize == 0 {
					each()
				}
			}
			if rows != n {
				b.Fatal(rows)
			}
			return time.Since(began)
		}
		for _, wait := range []time.Duration{5 * time.Millisecond, 25 * time.Millisecond} {
			b.Run(fmt.Sprintf("skewed=%v/%v", skewed, wait), func(b *testing.B) {
				d.wait = wait
				for b.Loop() {
					one := read(1, func() {})
					eight := read(8, func() {})
					b.ReportMetric(one.Seconds(), "one-s")
					b.ReportMetric(eight.Seconds(), "eight-s")
					b.ReportMetric(float64(one)/float64(eight), "times-faster")
					b.ReportMetric(float64(d.made), "requests")
				}
			})
		}
		b.Run(fmt.Sprintf("skewed=%v/heap", skewed), func(b *testing.B) {
			d.wait = 0
			defer debug.SetGCPercent(debug.SetGCPercent(3))
			for b.Loop() {
				for _, readers := range []int{1, 8} {
					debug.FreeOSMemory()
					before, most := live(), int64(0)
					read(readers, func() { most = max(most, live()-before) })
					b.ReportMetric(float64(most)/(1<<20), fmt.Sprintf("MiB-of-%d", readers))
				}
			}
		})
	}
}
