package patterns_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// crowd is a table of n entities with two indexes in their partitions, on a simulator.
func crowd(t testing.TB, n, departments int) *desk {
	t.Helper()
	_, d := crowdOn(t, storagetest.Simulator(t, nil), n, departments)
	return d
}

// crowdOn is a crowd on any service, and the office that it works in.
func crowdOn(t testing.TB, s *storagetest.Service, n, departments int, without ...string) (*office, *desk) {
	t.Helper()
	o := newOffice(t, s)
	o.without = append([]string{"mail", "badge", "roster", "marks"}, without...)
	d := o.open(t)
	all := iter.Seq2[*staff, error](func(yield func(*staff, error) bool) {
		for i := range n {
			if !yield(colleague(i, departments), nil) {
				return
			}
		}
	})
	if _, err := d.repo.BulkNonAtomic(t.Context(), all, nil); err != nil {
		t.Fatal(err)
	}
	return o, d
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
				clock := harness.CPUTime()
				if rows, err := d.scan(b.Context()); err != nil || rows != 3*n {
					b.Fatal(rows, err)
				}
				scanned += harness.CPUTime() - clock
				clock = harness.CPUTime()
				if found := d.verify(b, fixed()); len(found) > 0 {
					b.Fatal(found[0])
				}
				verified += harness.CPUTime() - clock
			}
			b.ReportMetric(float64(verified)/float64(scanned), "x-scan")
			b.ReportMetric(float64(verified.Microseconds())/float64(b.N)/float64(n), "cpu-us/entity")
			b.ReportMetric(float64(growth(b, d, 0))/(1<<20), "MiB-heap")
		})
	}
}

// BenchmarkVerifyOnService compares Verify, and a Rebuild of one index, with a plain scan of the same table on the service
// that the tests run on, by the clock.
func BenchmarkVerifyOnService(b *testing.B) {
	for _, n := range []int{1000, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var scanned, verified, rebuilt time.Duration
			for b.Loop() {
				o, d := crowdOn(b, storagetest.Open(b), n, 20, "email")
				begin := time.Now()
				if _, err := d.scan(b.Context()); err != nil {
					b.Fatal(err)
				}
				scanned += time.Since(begin)
				o.without = o.without[:4]
				d = o.open(b)
				begin = time.Now()
				if report, err := d.repo.Rebuild(b.Context(), nil); err != nil || report.Written != int64(n) {
					b.Fatal(report, err)
				}
				rebuilt += time.Since(begin)
				begin = time.Now()
				if found := d.verify(b, fixed()); len(found) > 0 {
					b.Fatal(found[0])
				}
				verified += time.Since(begin)
			}
			b.ReportMetric(float64(verified)/float64(scanned), "verify/scan")
			b.ReportMetric(float64(rebuilt)/float64(scanned), "rebuild/scan")
		})
	}
}

// growth is how much the live heap grows at most during a Verify.
func growth(t testing.TB, d *desk, readers int) int64 {
	before, most, calls := heap(), int64(0), 0
	o := fixed()
	o.Concurrency = readers
	o.Progress = func(tables.Report) {
		if calls++; calls%20 == 1 {
			most = max(most, heap()-before)
		}
	}
	d.verify(t, o)
	return most
}

// TestVerifyIsFlat: memory does not grow with the table, and the number of requests grows no quicker than it.
func TestVerifyIsFlat(t *testing.T) {
	sizes := []int{1000, 4_000}
	if harness.Thorough() {
		sizes[1] = 10_000
	}
	var grown []int64
	for _, n := range sizes {
		d := crowd(t, n, 50)
		var last tables.Report
		o := fixed()
		o.Progress = func(p tables.Report) { last = p }
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
		grown = append(grown, growth(t, d, 1))
		if most := growth(t, d, 8); most > 40<<20 { // a page of each reader, as JSON and as digests
			t.Errorf("%d entities: the heap grew by %d bytes with 8 readers", n, most)
		}
	}
	t.Logf("the heap grew by %d bytes for %d entities", grown, sizes)
	if grown[1] > grown[0]+8<<20 {
		t.Errorf("the heap grew by %d bytes for %d entities", grown, sizes)
	}
}

// TestJobsAreFlat: the memory of Verify, Repair and Rebuild does not grow with the table. The thorough run takes a million entities, each with a copy in
// its partition and one outside.
func TestJobsAreFlat(t *testing.T) {
	sizes := []int{1000, 4000}
	if harness.Thorough() {
		sizes = []int{10_000, 1_000_000}
	}
	grown := map[string][]int64{}
	for _, n := range sizes {
		d := crowd(t, n, 50)
		every := max(1, n/10_000)
		for name, job := range map[string]func(context.Context, *patterns.JobOptions) (tables.Report, error){
			"Verify": d.repo.Verify, "Repair": d.repo.Repair, "Rebuild": d.repo.Rebuild} {
			before, most, calls := heap(), int64(0), 0
			o := patterns.JobOptions{Concurrency: 1}
			o.Progress = func(tables.Report) {
				if calls++; calls%every == 0 {
					most = max(most, heap()-before)
				}
			}
			report, err := job(t.Context(), &o)
			if err != nil || calls < n/1000 {
				t.Fatalf("%s: %+v, %v", name, report, err)
			}
			grown[name] = append(grown[name], most)
		}
	}
	t.Logf("the heap grew by %v bytes for %d entities", grown, sizes)
	for name, g := range grown {
		if g[1] > g[0]+32<<20 {
			t.Errorf("%s: the heap grew by %d bytes for %d entities", name, g, sizes)
		}
	}
}
