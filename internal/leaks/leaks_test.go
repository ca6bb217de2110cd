package leaks

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// leakVariable makes a run of this test binary a child: one that leaves a goroutine behind, or one that does not.
const leakVariable = "LEAKS_TEST_LEAK"

func TestMain(m *testing.M) { Main(m) }

func TestLeftOver(t *testing.T) {
	switch os.Getenv(leakVariable) {
	case "none":
		return
	case "one":
		go func() { select {} }()
		return
	}
	if said, err := child(t, "none"); err != nil {
		t.Errorf("without a leak: %v: %s", err, said)
	}
	if said, err := child(t, "one"); err == nil || !strings.Contains(said, "leaks.TestLeftOver.func1") {
		t.Errorf("with a leak: %v: %s", err, said)
	}
}

func child(t *testing.T, leak string) (said string, err error) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLeftOver$")
	cmd.Env = append(os.Environ(), leakVariable+"="+leak)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	return stderr.String(), err
}
