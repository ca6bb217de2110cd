package entity

import (
	"fmt"
	"testing"
)

// BenchmarkInsertInTheMiddle puts rows at random places among 100,000.
func BenchmarkInsertInTheMiddle(b *testing.B) {
	var set Set
	for i := range 100_000 {
		set.Put(&Stored{Partition: "p", Row: fmt.Sprintf("%08d", i)})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		set.Put(&Stored{Partition: "p", Row: fmt.Sprintf("%08d-%d", i*7919%100_000, i)})
	}
}
