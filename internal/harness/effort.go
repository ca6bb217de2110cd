package harness

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/race"
)

// Shortened reports whether a test should be quick: with -short, and under the race detector, where a full test takes
// minutes.
func Shortened() bool { return testing.Short() || race.Enabled }

// thoroughVariable is the environment variable that makes tests thorough if it is 1.
const thoroughVariable = "TABLEPATTERNS_THOROUGH"

// Thorough reports whether a test should run all seeds and the largest worlds, not only enough to find most mistakes.
func Thorough() bool { return os.Getenv(thoroughVariable) == "1" && !Shortened() }

// Seeds returns how many of a test's schedules to run: all if the test is thorough, otherwise one in twenty;
// with -short half of that; under the race detector, where each schedule takes ten times as long, a third of
// that.
func Seeds(seeds int) int {
	switch {
	case race.Enabled:
		return max(1, seeds/60)
	case testing.Short():
		return max(1, seeds/40)
	case Thorough():
		return seeds
	}
	return max(1, seeds/20)
}

// SweepEvery is for storagetest.SweepCase.Every: all points if the test is thorough, otherwise one in eleven,
// and fewer if Shortened. The numbers have no common divisor with the number of points of a call (28 or 32, and 52 or
// 56 for a transaction), so that each fault and each kind of caller occurs in some of many calls.
func SweepEvery() int {
	switch {
	case race.Enabled:
		return 29
	case testing.Short():
		return 17
	case Thorough():
		return 1
	}
	return 11
}

// WideSweepEvery is the counterpart of SweepEvery for sweeps of thousands of expensive points: all if the
// test is thorough, otherwise one in twenty-three.
func WideSweepEvery() int {
	switch {
	case race.Enabled:
		return 59
	case Shortened() || Thorough():
		return SweepEvery()
	}
	return 23
}

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
