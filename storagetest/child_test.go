package storagetest_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// childVariable tells a run of this test binary by one of these tests to be the child, and how to end.
const childVariable = "STORAGETEST_CHILD"

// Azurite must end with the test binary, in whatever way that ends; here, a child test binary in each of these ways. The runtime ends
// two of them like others: only a thorough test has these.
func TestAzuriteEndsWithTheTestBinary(t *testing.T) {
	if how := os.Getenv(childVariable); how != "" {
		beChild(t, how)
		return
	}
	storagetest.AzuriteOnly(t)
	for _, how := range []string{"return", "fail", "exit", "panic", "panic-elsewhere", "kill"} {
		if !harness.Thorough() && (how == "fail" || how == "panic") || harness.Shortened() && how == "panic-elsewhere" {
			continue // fail ends like return, and panic like panic-elsewhere
		}
		t.Run(how, func(t *testing.T) {
			child := childBinary(t, t.Context(), "TestAzuriteEndsWithTheTestBinary", how)
			stdin, err := child.StdinPipe()
			check(t, err)
			stdout, err := child.StdoutPipe()
			check(t, err)
			// A file, not a buffer: Wait would wait for the end of all who hold the pipe to a buffer, Azurite among them.
			said := assert.Must[*os.File](t)(os.Create(filepath.Join(t.TempDir(), "stderr")))
			defer said.Close()
			child.Stderr = said
			check(t, child.Start())
			lines := bufio.NewScanner(stdout)
			var hosts []string
			for hosts == nil && lines.Scan() {
				if list, ok := strings.CutPrefix(lines.Text(), "hosts "); ok {
					hosts = strings.Fields(list)
				}
			}
			if len(hosts) != 3 {
				text, err := os.ReadFile(said.Name())
				t.Fatalf("the child printed no hosts; standard error: %s (%v)", text, err)
			}
			for _, host := range hosts {
				if !accepts(host) {
					t.Errorf("%s does not accept connections while the child runs", host)
				}
			}
			if how == "kill" {
				check(t, child.Process.Kill())
			}
			stdin.Close() // lets the child go on to its end
			err = child.Wait()
			if how != "return" && err == nil {
				t.Errorf("the child ended well; it was to end by %s", how)
			}
			awaitClosed(t, hosts)
		})
	}
}

func beChild(t *testing.T, how string) {
	svc := storagetest.Azurite(t)
	fmt.Println("hosts", strings.Join(hostsOf(t, svc.ConnectionString), " "))
	var b [1]byte
	os.Stdin.Read(b[:]) // until the parent has looked
	switch how {
	case "fail":
		t.Fatal("asked to fail")
	case "exit":
		os.Exit(3)
	case "panic":
		panic("asked to panic")
	case "panic-elsewhere":
		go panic("asked to panic in another goroutine")
		select {}
	case "kill":
		select {}
	}
}

// awaitClosed waits, for a bounded time, until no host accepts connections.
func awaitClosed(t *testing.T, hosts []string) {
	t.Helper()
	const bound = 10 * time.Second
	begin := time.Now()
	for _, host := range hosts {
		for accepts(host) {
			if time.Since(begin) > bound {
				t.Fatalf("%s still accepts connections %v after the child's end", host, bound)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	t.Logf("closed %v after the child's end", time.Since(begin).Round(time.Millisecond))
}

// Two test binaries that start at once on a machine without Azurite, and with no home directory at that, must both run, on
// one installation. npm fetches Azurite if the test is thorough; otherwise a stand-in for npm copies the installation that there is.
func TestTwoTestBinariesInstallOnce(t *testing.T) {
	storagetest.AzuriteOnly(t)
	cache := t.TempDir()
	path := os.Getenv("PATH")
	if !harness.Thorough() && runtime.GOOS != "windows" {
		path = copyingNpm(t) + string(os.PathListSeparator) + path
	}
	var children sync.WaitGroup
	var installed atomic.Int32
	for range 2 {
		children.Go(func() {
			child := childBinary(t, t.Context(), "TestAzuriteEndsWithTheTestBinary", "return")
			child.Env = append(child.Env, "PATH="+path, "XDG_CACHE_HOME="+cache, "HOME="+filepath.Join(cache, "nowhere"), "LocalAppData="+cache)
			out, err := child.CombinedOutput()
			if err != nil {
				t.Errorf("child: %v\n%s", err, out)
			}
			if strings.Contains(string(out), "installing Azurite") {
				installed.Add(1)
			}
		})
	}
	children.Wait()

	if n := installed.Load(); n != 1 && runtime.GOOS != "windows" { // no lock there: both may install, one is kept
		t.Errorf("%d of the two installed Azurite, want 1", n)
	}
	entries := assert.Must[[]string](t)(filepath.Glob(filepath.Join(cache, "*", "azurite-*")))
	var finished []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry, ".lock") {
			finished = append(finished, filepath.Base(entry))
		}
	}
	if len(finished) != 1 || strings.Contains(finished[0], ".part-") {
		t.Errorf("in the cache: %v, want one installation", finished)
	}
}

// copyingNpm returns a directory with a program npm, which installs what it is asked for by copying this machine's Azurite.
func copyingNpm(t *testing.T) string {
	t.Helper()
	sharedAzurite(t) // so that it is installed
	dir := assert.Must[string](t)(storagetest.AzuriteDir(t.Context()))
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nsleep 1\nexec cp -R '%s/node_modules' .\n", dir)
	check(t, os.WriteFile(filepath.Join(bin, "npm"), []byte(script), 0o700))
	return bin
}

// Without Node a test fails, and says what to do about it.
func TestWithoutNode(t *testing.T) {
	storagetest.AzuriteOnly(t)
	child := childBinary(t, t.Context(), "TestAzuriteEndsWithTheTestBinary", "return")
	child.Env = append(child.Env, "PATH="+t.TempDir())
	out, err := child.CombinedOutput()
	assert.Error(t, err, "the child's tests passed without Node")
	wantText(t, string(out), "node is not on PATH", "Node.js 20 or newer", storagetest.ConnectionStringVariable, "--- FAIL")
}

// childBinary is this test binary again, running one test as the child.
func childBinary(t *testing.T, ctx context.Context, test, how string) *exec.Cmd {
	t.Helper()
	self := assert.Must[string](t)(os.Executable())
	cmd := exec.CommandContext(ctx, self, "-test.run=^"+test+"$", "-test.v")
	cmd.WaitDelay = 20 * time.Second
	cmd.Env = append(os.Environ(), childVariable+"="+how, storagetest.ConnectionStringVariable+"=")
	return cmd
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(name), 0o700))
	check(t, os.WriteFile(name, []byte(content), 0o600))
}

func wantText(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%q is missing in: %s", w, got)
		}
	}
}
