package inspect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestManyPartitions: beyond the limit the largest partitions are bounded correctly, and their number is estimated.
func TestManyPartitions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p, truth := newPartitions(200), map[string]int64{}
	rows := int64(0)
	for range 200_000 {
		n := random.IntN(20_000)
		if random.IntN(4) == 0 {
			n = random.IntN(10) // ten partitions have a quarter of the rows
		}
		key := fmt.Sprint("partition ", n)
		truth[key]++
		rows++
		p.add(key, 100)
	}
	r := p.report()
	if r.Exact || len(r.Rows) != 0 || len(p.by) != 200 {
		t.Errorf("exact %v, %d buckets, %d partitions in memory", r.Exact, len(r.Rows), len(p.by))
	}
	if off := float64(r.Count)/float64(len(truth)) - 1; off > 0.05 || off < -0.05 {
		t.Errorf("%d partitions estimated, %d are there", r.Count, len(truth))
	}
	for _, c := range p.by {
		if n := truth[c.Partition.Partition]; n > c.Rows || n < c.Rows-c.Uncertain || c.Uncertain > rows/200 {
			t.Errorf("%+v has %d rows", c.Partition, n)
		}
	}
	for i := range 10 {
		if !slices.ContainsFunc(r.Largest, func(p Partition) bool { return p.Partition == fmt.Sprint("partition ", i) }) {
			t.Errorf("partition %d is not among the largest", i)
		}
	}
}

// TestExactPartitions: up to the limit every count is exact.
func TestExactPartitions(t *testing.T) {
	p := newPartitions(50)
	for i := range 500 {
		p.add(fmt.Sprint(i%50), 1)
	}
	if r := p.report(); !r.Exact || r.Count != 50 || r.Largest[0].Rows != 10 || !slices.Equal(r.Rows, []Bucket{{8, 16, 50}}) {
		t.Errorf("%+v", r)
	}
}

// TestDistribution: every number is in the step that contains it.
func TestDistribution(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 3, 4, 1023, 1024, 1 << 40} {
		var d distribution
		d.add(n)
		if b := d.buckets(); len(b) != 1 || n < b[0].From || n >= b[0].To {
			t.Errorf("%d is in %+v", n, b)
		}
	}
}

// BenchmarkTable scans 50,000 rows of 100 partitions.
func BenchmarkTable(b *testing.B) {
	table := harness.NewTable(b, harness.Account(b))
	assert.Must[tables.BulkReport](b)(table.Entities().BulkNonAtomic(b.Context(), harness.Bags(50_000, 100), nil))
	b.ReportAllocs()
	for b.Loop() {
		if r, err := Table(b.Context(), table, nil); err != nil || r.Rows != 50_000 {
			b.Fatal(r, err)
		}
	}
}
