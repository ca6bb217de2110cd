package npm

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

func TestRemoveStaleKeepsWhatMayBeInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "azurite-1")
	long := time.Now().Add(-2 * staleTime)
	for name, age := range map[string]time.Time{"": long, ".part-old": long, ".part-new": time.Now()} {
		assert.Check(t, os.Mkdir(dir+name, 0o700))
		assert.Check(t, os.Chtimes(dir+name, age, age))
	}
	removeStale(dir)
	for name, want := range map[string]bool{"": true, ".part-old": false, ".part-new": true} {
		if _, err := os.Stat(dir + name); (err == nil) != want {
			t.Errorf("azurite-1%s is there: %v, want %v", name, err == nil, want)
		}
	}
}

// TestCheckLockRefuses: a lock with an address, a package without a hash, or no package is refused.
func TestCheckLockRefuses(t *testing.T) {
	const hash = `"integrity":"sha512-x"`
	assert.Check(t, CheckLock([]byte(`{"packages":{"":{},"node_modules/a":{`+hash+`}}}`)))
	for _, text := range []string{`{`, `{}`, `{"packages":{"":{}}}`, `{"packages":{"":{},"node_modules/a":{}}}`, `{"packages":{"":{},"node_modules/a":{"integrity":"sha1-x"}}}`,
		`{"packages":{"":{},"node_modules/a":{"resolved":"https://r.test/a.tgz",` + hash + `}}}`} {
		if CheckLock([]byte(text)) == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
