package simulator

import (
	"fmt"
	"testing"
)

// BenchmarkInsertInTheMiddle puts rows at random places among 100,000.
func BenchmarkInsertInTheMiddle(b *testing.B) {
	var set rowSet
	for i := range 100_000 {
		set.put(&entity{pk: "p", rk: fmt.Sprintf("%08d", i)})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		set.put(&entity{pk: "p", rk: fmt.Sprintf("%08d-%d", i*7919%100_000, i)})
	}
}
