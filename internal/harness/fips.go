package harness

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// FIPSOnly runs tests of the calling test's package in a process of their own, in which the standard library refuses every algorithm that
// FIPS 140-3 does not approve.
func FIPSOnly(t *testing.T, tests ...string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^("+strings.Join(tests, "|")+")$", "-test.v", "-test.short")
	child.Env = append(os.Environ(), "GODEBUG=fips140=only", "STORAGETEST_SERVICE=simulator")
	out, err := child.CombinedOutput()
	for _, name := range tests {
		if err != nil || !strings.Contains(string(out), "--- PASS: "+name+" ") {
			t.Errorf("with GODEBUG=fips140=only, %s: %v\n%s", name, err, out)
			return
		}
	}
}
