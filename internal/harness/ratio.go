package harness

import (
	"runtime"
	"testing"
	"time"
)

// Contender is one side of a comparison of processor time.
type Contender struct {
	Name string
	Run  func() error
}

// Ratios reports the processor time of each contender, including its garbage collection, divided by the time
// of the first contender. In every round each contender runs for the same time. A run starts with a swept
// heap, and is long enough to include the collection of its own garbage.
func Ratios(b *testing.B, contenders []Contender) {
	const turn = 50 * time.Millisecond
	cost, runs := make([]time.Duration, len(contenders)), make([]int, len(contenders))
	for b.Loop() {
		for i, c := range contenders {
			runtime.GC()
			start, clock := CPUTime(), time.Now()
			for time.Since(clock) < turn {
				if err := c.Run(); err != nil {
					b.Fatal(err)
				}
				runs[i]++
			}
			cost[i] += CPUTime() - start
		}
	}
	ours := float64(cost[0]) / float64(runs[0])
	b.ReportMetric(0, "ns/op") // suppress this metric, since wall-clock time does not matter
	b.ReportMetric(ours, "cpu-ns-"+contenders[0].Name)
	for i, c := range contenders[1:] {
		b.ReportMetric(float64(cost[i+1])/float64(runs[i+1])/ours, "x-"+c.Name)
	}
}
