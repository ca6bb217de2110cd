package largeentities_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
)

// TestFIPSOnly: blobs are written, sealed and read where the standard library refuses what FIPS 140-3 does not approve.
func TestFIPSOnly(t *testing.T) {
	harness.FIPSOnly(t, "TestSealed")
}
