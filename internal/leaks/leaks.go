// Package leaks checks, at the end of a test binary, whether its tests have left goroutines behind. Only tests import it.
package leaks

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package for its TestMain. If they pass and a goroutine still runs after the last of them, the binary fails.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run does what Main does, but returns the exit code, for a TestMain that has more to do.
func Run(m *testing.M) int {
	code := m.Run()
	if code != 0 || fuzzes() {
		return code
	}
	if err := goleak.Find(known()...); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: goroutines are left over after the last test: %v\n", err)
		return 1
	}
	return 0
}

// known lists the goroutines that may still run. Azurite is a separate process and has no goroutines here. The client's transport keeps
// connections to it for the next request, as net/http does, with two goroutines for each, until they have been idle for a while. A
// goroutine that the library leaks has neither of these functions on its stack.
func known() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	}
}

// fuzzes reports whether go test -fuzz runs the binary: the fuzzing engine has goroutines of its own.
func fuzzes() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			return true
		}
	}
	return false
}
