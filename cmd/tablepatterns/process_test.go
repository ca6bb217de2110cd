package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/leaks"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// asCommand makes the test's binary the command.
const asCommand = "TABLEPATTERNS_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	leaks.Main(m)
}

// process runs the command in a process of its own.
func process(t *testing.T, s *storagetest.Service, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "AZURE_STORAGE_CONNECTION_STRING="+s.ConnectionString)
	output := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, output
}

// exitCode waits for the end of a process.
func exitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// TestCtrlC: a copy on Azurite ends at an interrupt, with its position in the file, and goes on from there.
func TestCtrlC(t *testing.T) {
	s := storagetest.Azurite(t)
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		t.Fatal(err)
	}
	from, to, file := s.TableName(t), s.TableName(t), filepath.Join(t.TempDir(), "position")
	(&shell{t: t, service: s, account: account}).fill(from, 1_500)
	copying, output := process(t, s, "copy", from, to, "--create", "--concurrency", "1", "--rows-per-second", "1500", "--resume", file)
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			break
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("no position: %s", output)
		}
	}
	if err := copying.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, copying); code != exitError || !strings.Contains(output.String(), "with --resume "+file) {
		t.Fatalf("exit code %d: %s", code, output)
	}
	again, output := process(t, s, "copy", from, to, "--resume", file)
	if code := exitCode(t, again); code != exitOK {
		t.Fatalf("exit code %d: %s", code, output)
	}
	if strings.Contains(output.String(), "1500 read") {
		t.Errorf("it began again: %s", output)
	}
	compare, output := process(t, s, "compare", from, to)
	if code := exitCode(t, compare); code != exitOK {
		t.Fatalf("exit code %d: %s", code, output)
	}
}
