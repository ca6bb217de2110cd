package archive_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
)

// TestFIPSOnly: entities are moved into containers and read there where the standard library refuses what FIPS 140-3 does not approve.
func TestFIPSOnly(t *testing.T) {
	harness.FIPSOnly(t, "TestArchivedFormat")
}
