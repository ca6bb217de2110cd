package httpapi_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
)

// TestFIPSOnly: page tokens are sealed and opened where the standard library refuses what FIPS 140-3 does not approve.
func TestFIPSOnly(t *testing.T) {
	harness.FIPSOnly(t, "TestPageTokens")
}
