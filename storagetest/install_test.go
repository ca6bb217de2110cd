package storagetest

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/npm"
)

// The lock must pin every package by its hash, and must not name where packages come from: npm takes the registry it is
// set up with.
func TestLockFilePinsByHashAndNamesNoRegistry(t *testing.T) {
	assert.Check(t, npm.CheckLock(packageLock))
	assert.Contains(t, string(packageJSON), `"azurite": "3.35.0"`, "azurite is not 3.35.0: later ones need Node 22")
}
