package storagetest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The lock must pin every package by its hash, and must not name where packages come from: npm takes the registry it is
// set up with.
func TestLockFilePinsByHashAndNamesNoRegistry(t *testing.T) {
	var lockFile struct {
		Packages map[string]struct {
			Version, Resolved, Integrity string
		}
	}
	if err := json.Unmarshal(packageLock, &lockFile); err != nil {
		t.Fatal(err)
	}
	if got := lockFile.Packages["node_modules/azurite"].Version; got != "3.35.0" {
		t.Errorf("azurite %q, want 3.35.0: later ones need Node 22", got)
	}
	for name, p := range lockFile.Packages {
		if p.Resolved != "" {
			t.Errorf("%s names an address: make the lock with --omit-lockfile-registry-resolved", name)
		}
		if name != "" && !strings.HasPrefix(p.Integrity, "sha512-") {
			t.Errorf("%s has no SHA-512 hash: %q", name, p.Integrity)
		}
	}
	if bytes.Contains(packageLock, []byte(`"resolved"`)) || bytes.Contains(packageLock, []byte(".tgz")) {
		t.Error("the lock holds an address of a package")
	}
}

func TestRemoveStaleKeepsWhatMayBeInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "azurite-1")
	long := time.Now().Add(-2 * staleTime)
	for name, age := range map[string]time.Time{"": long, ".part-old": long, ".part-new": time.Now()} {
		if err := os.Mkdir(dir+name, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir+name, age, age); err != nil {
			t.Fatal(err)
		}
	}
	removeStale(dir)
	for name, want := range map[string]bool{"": true, ".part-old": false, ".part-new": true} {
		if _, err := os.Stat(dir + name); (err == nil) != want {
			t.Errorf("azurite-1%s is there: %v, want %v", name, err == nil, want)
		}
	}
}
