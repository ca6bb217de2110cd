package rangescan_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/rangescan"
)

// TestRangeKeepsNoPage: whoever keeps the ranges of pages, as a backup keeps those of its chunks, does not keep the pages.
func TestRangeKeepsNoPage(t *testing.T) {
	const pages = 100
	var held atomic.Int64
	type page [1 << 16]byte
	scan := rangescan.New([]rangescan.Range{{}}, rangescan.State{}, rangescan.Options{Readers: 1, Together: true},
		func(_ context.Context, _ rangescan.Leg, token string, accept func(rangescan.Key) bool) (*page, string, error) {
			p := new(page)
			held.Add(1)
			runtime.AddCleanup(p, func(int) { held.Add(-1) }, 0)
			n := len(token)
			accept(rangescan.Key{Partition: fmt.Sprintf("%03d", n)})
			if n == pages {
				return p, "", nil
			}
			return p, token + "x", nil
		})
	var ranges []rangescan.Range
	most := int64(0)
	for _, err := range scan.Pages(t.Context()) {
		assert.Check(t, err)
		ranges = append(ranges, scan.Yielded())
		for range 3 { // a cleanup runs after the collection
			runtime.GC()
			runtime.Gosched()
		}
		most = max(most, held.Load())
	}
	if len(ranges) != pages+1 || most > 10 {
		t.Errorf("%d pages in memory at once, of %d", most, len(ranges))
	}
	runtime.KeepAlive(ranges)
}
