package storagetest

import (
	"context"
	"testing"
)

// AzuriteDir returns the directory that Azurite is installed in, and installs it if it is missing.
func AzuriteDir(ctx context.Context) (string, error) { return azurite.Install(ctx, func(string) {}) }

// SweepRecorded is Sweep for a sweep that may fail.
func SweepRecorded(t *testing.T, c SweepCase) (points, divergences int, said string) {
	t.Helper()
	points, divergences, r := sweepFor(t, c)
	return points, divergences, r.said.String()
}
