package patterns_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// crowd is a table of n entities with two indexes in their partitions, on a simulator.
func crowd(t testing.TB, n, departments int) *desk {
	t.Helper()
	o := newOffice(t, storagetest.Simulator(t, nil))
	o.without = []string{"mail", "badge", "roster", "marks"}
	d := o.open(t)
	all := iter.Seq2[*staff, error](func(yield func(*staff, error) bool) {
		for i := range n {
			if !yield(colleague(i, departments), nil) {
				return
			}
		}
	})
	if _, err := d.repo.BulkInsertNonAtomic(t.Context(), all, nil); err != nil {
		t.Fatal(err)
	}
	return d
}

// scan reads all rows of the table, for comparison.
func (d *desk) scan(ctx context.Context) (rows int, err error) {
	for _, err := range d.table.Entities().Query().AllowTableScan().All(ctx) {
		if err != nil {
			return rows, err
		}
		rows++
	}
	return rows, nil
}

// heap is the live heap.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkVerify compares Verify with a plain scan of the same table in the same run.
func BenchmarkVerify(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := crowd(b, n, 50)
			var scanned, verified time.Duration
			for b.Loop() {
				clock := cpuTime()
				if rows, err := d.scan(b.Context()); err != nil || rows != 3*n {
					b.Fatal(rows, err)
				}
				scanned += cpuTime() - clock
				clock = cpuTime()
				if found := d.verify(b, fixed()); len(found) > 0 {
					b.Fatal(found[0])
				}
				verified += cpuTime() - clock
			}
			b.ReportMetric(float64(verified)/float64(scanned), "x-scan")
			b.ReportMetric(float64(verified.Microseconds())/float64(b.N)/float64(n), "cpu-us/entity")
			b.ReportMetric(float64(growth(b, d))/(1<<20), "MiB-heap")
		})
	}
}

// growth is how much the live heap grows at most during a Verify.
func growth(t testing.TB, d *desk) int64 {
	before, most, calls := heap(), int64(0), 0
	o := fixed()
	o.Progress = func(patterns.VerifyProgress) {
		if calls++; calls%20 == 1 {
			most = max(most, heap()-before)
		}
	}
	d.verify(t, o)
	return most
}

// TestVerifyIsFlat: memory does not grow with the table, and the number of requests grows no quicker than it.
func TestVerifyIsFlat(t *testing.T) {
	sizes := []int{1000, 10_000}
	var grown []int64
	for _, n := range sizes {
		d := crowd(t, n, 50)
		var last patterns.VerifyProgress
		o := fixed()
		o.Progress = func(p patterns.VerifyProgress) { last = p }
		// Wherever a sum is looked at, something is wrong.
		for i := 0; i < n; i += 40 {
			deleteRaw(t, d.table, emailRow(colleague(i, 50)))
		}
		if found := d.verify(t, o); len(found) != n/40 {
			t.Fatalf("%d found", len(found))
		}
		if most := int64(7*n) + 1000; last.Rows > most {
			t.Errorf("%d entities: %d rows were read, more than twice the table", n, last.Rows)
		}
		grown = append(grown, growth(t, d))
	}
	t.Logf("the heap grew by %d bytes for %d entities", grown, sizes)
	if grown[1] > grown[0]+8<<20 {
		t.Errorf("the heap grew by %d bytes for %d entities", grown, sizes)
	}
}
