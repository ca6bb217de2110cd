//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package npm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

const lockVariable = "STORAGETEST_LOCK"

func TestLockKeepsOthersOutAndHasABound(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), name)
	assert.Check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second lock: %v, want to wait until the context ends", err)
	}
	unlock()
	unlock, err = lock(t.Context(), name)
	assert.Check(t, err)
	unlock()
}

// The lock of a process that was killed while it installed must be free at once.
func TestLockOfADeadProcessIsFree(t *testing.T) {
	if name := os.Getenv(lockVariable); name != "" {
		assert.Check(t, assert.Err(lock(t.Context(), name)))
		fmt.Println("locked")
		time.Sleep(time.Minute) // until it is killed
	}
	name := filepath.Join(t.TempDir(), "lock")
	self, err := os.Executable()
	assert.Check(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestLockOfADeadProcessIsFree$")
	child.Env = append(os.Environ(), lockVariable+"="+name)
	stdout, err := child.StdoutPipe()
	assert.Check(t, err)
	assert.Check(t, child.Start())
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, assert.Err(lock(ctx, name)), context.DeadlineExceeded, "lock while the child holds it")
	assert.Check(t, child.Process.Kill())
	child.Wait()
	unlock, err := lock(t.Context(), name)
	assert.Check(t, err)
	unlock()
}

// Where the home directory is not known, a directory under the shared temporary directory is used only if it is ours alone.
func TestCacheWithoutHome(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	root, err := cacheRoot()
	if err != nil || filepath.Dir(root) != tmp {
		t.Fatalf("cache %q, %v, want one in %s", root, err, tmp)
	}
	if again, err := cacheRoot(); again != root || err != nil {
		t.Errorf("the second time: %q, %v", again, err)
	}
	assert.Check(t, os.Chmod(root, 0o777))
	assert.Error(t, assert.Err(cacheRoot()), "a directory that all can write to is accepted")
	assert.Check(t, os.Remove(root))
	assert.Check(t, os.Symlink(t.TempDir(), root))
	assert.Error(t, assert.Err(cacheRoot()), "a symbolic link is accepted")
}
