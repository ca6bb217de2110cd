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
)

const lockVariable = "STORAGETEST_LOCK"

func TestLockKeepsOthersOutAndHasABound(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second lock: %v, want to wait until the context ends", err)
	}
	unlock()
	unlock, err = lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// The lock of a process that was killed while it installed must be free at once.
func TestLockOfADeadProcessIsFree(t *testing.T) {
	if name := os.Getenv(lockVariable); name != "" {
		if _, err := lock(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		fmt.Println("locked")
		time.Sleep(time.Minute) // until it is killed
	}
	name := filepath.Join(t.TempDir(), "lock")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestLockOfADeadProcessIsFree$")
	child.Env = append(os.Environ(), lockVariable+"="+name)
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("lock while the child holds it: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	unlock, err := lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.Chmod(root, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := cacheRoot(); err == nil {
		t.Error("a directory that all can write to is accepted")
	}
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), root); err != nil {
		t.Fatal(err)
	}
	if _, err := cacheRoot(); err == nil {
		t.Error("a symbolic link is accepted")
	}
}
