package encryption_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
)

// TestFIPSOnly: rows, streams and registries are written and read where the standard library refuses what FIPS 140-3 does not approve.
func TestFIPSOnly(t *testing.T) {
	harness.FIPSOnly(t, "TestRoundTrip", "TestStreamRoundTrip", "TestRewrap", "TestRegistryReplay", "TestGolden", "TestLookUpsAreNotRedirected")
}
