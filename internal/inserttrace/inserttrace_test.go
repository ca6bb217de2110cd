package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	goroutines "github.com/tablepatterns/tablepatterns/internal/leaks"
)

func TestMain(m *testing.M) { goroutines.Main(m) }

const modulePath = "github.com/tablepatterns/tablepatterns/"

// notOfAnInsert are packages whose functions are not counted: they are the service and the tests' tools.
var notOfAnInsert = []string{"storagetest", "internal/simulator", "internal/inserttrace"}

// TestInsert holds how many functions, files and packages of the library one Insert with one index in another partition runs: what
// somebody has to read who wants to know what happens. The bounds may only fall; docs/explanation/code.md has the way in reading order.
func TestInsert(t *testing.T) {
	const mostFunctions, mostFiles, mostPackages, mostCalls = 245, 59, 21, 2
	if !harness.Thorough() {
		t.Log("not thorough: the program is not built with coverage")
		return
	}
	dir := t.TempDir()
	program, data, profile := filepath.Join(dir, "program"), filepath.Join(dir, "data"), filepath.Join(dir, "profile")
	assert.Check(t, os.Mkdir(data, 0o755))
	run(t, "build", "-cover", "-covermode=atomic", "-coverpkg="+modulePath+"...", "-o", program, ".")
	calls, err := exec.CommandContext(t.Context(), program, data).Output()
	assert.Check(t, err)
	run(t, "tool", "covdata", "textfmt", "-i="+data, "-o="+profile)
	functions, files, packages := 0, map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(run(t, "tool", "cover", "-func="+profile)) {
		fields := strings.Fields(line)
		place, _, _ := strings.Cut(strings.TrimPrefix(fields[0], modulePath), ":")
		if fields[0] == "total:" || fields[len(fields)-1] == "0.0%" || slices.ContainsFunc(notOfAnInsert, func(p string) bool { return strings.HasPrefix(place, p) }) {
			continue
		}
		functions++
		files[place], packages[path.Dir(place)] = true, true
	}
	t.Logf("one Insert with an index in another partition: %d functions, %d files, %d packages, %s calls of the key function", functions, len(files), len(packages), strings.TrimSpace(string(calls)))
	if functions < 50 || functions > mostFunctions || len(files) > mostFiles || len(packages) > mostPackages || strings.TrimSpace(string(calls)) != "2" {
		t.Errorf("want at most %d functions, %d files, %d packages, and %d calls", mostFunctions, mostFiles, mostPackages, mostCalls)
	}
}

// run runs the go command and returns what it prints.
func run(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", arguments...).Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(arguments, " "), err)
	}
	return string(out)
}
