package storagetest

import (
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/npm"
)

// The lock must pin every package by its hash, and must not name where packages come from: npm takes the registry it is
// set up with.
func TestLockFilePinsByHashAndNamesNoRegistry(t *testing.T) {
	if err := npm.CheckLock(packageLock); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(packageJSON), `"azurite": "3.35.0"`) {
		t.Error("azurite is not 3.35.0: later ones need Node 22")
	}
}
