package harness

import (
	"os"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/race"
)

// Shortened reports whether a test has to be quick: with -short, and under the race detector, where all of it would take
// minutes.
func Shortened() bool { return testing.Short() || race.Enabled }

// thoroughVariable is the environment variable with which tests do all that they can, if it is 1.
const thoroughVariable = "TABLEPATTERNS_THOROUGH"

// Thorough reports whether a test is to do more than what finds a mistake in most cases: all seeds, the largest worlds.
func Thorough() bool { return os.Getenv(thoroughVariable) == "1" && !Shortened() }

// Seeds is how many of a test's schedules to run: a tenth, and all if the test is to be thorough. It is half of that where it has to be
// quick, and a third where each takes ten times as long.
func Seeds(seeds int) int {
	switch {
	case race.Enabled:
		return max(1, seeds/30)
	case testing.Short():
		return max(1, seeds/20)
	case Thorough():
		return seeds
	}
	return max(1, seeds/10)
}

// SweepEvery is storagetest.SweepCase.Every: one point in three, all if the test is to be thorough, and fewer where it has to be quick. The numbers have no
// divisor in common with the points of a call, so that over the calls all faults and callers have their turn.
func SweepEvery() int {
	switch {
	case race.Enabled:
		return 29
	case testing.Short():
		return 7
	case Thorough():
		return 1
	}
	return 3
}

// WideSweepEvery is SweepEvery for sweeps of thousands of costly points: one in seven, and all if the test is to be thorough.
func WideSweepEvery() int {
	switch {
	case race.Enabled:
		return 59
	case Shortened() || Thorough():
		return SweepEvery()
	}
	return 7
}
