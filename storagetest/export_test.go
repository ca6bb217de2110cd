package storagetest

import "testing"

// SweepRecorded is Sweep for a sweep that may fail.
func SweepRecorded(t *testing.T, c SweepCase) (points, divergences int, said string) {
	t.Helper()
	points, divergences, r := sweepFor(t, c)
	return points, divergences, r.said.String()
}
