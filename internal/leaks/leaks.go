// Package leaks ends a test binary with a look at the goroutines that its tests have left behind. Only tests import it.
package leaks

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main is what a package's TestMain calls: it runs the tests, and fails the binary if they pass and a goroutine goes on after
// the last of them.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a TestMain that has more to do; it returns the exit code.
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

// known are the goroutines that may go on. Azurite is a process of its own and has none here; connections to it are kept for
// the next request by the client's transport, as net/http does, with two goroutines for each, until they have been idle for
// a while. What is left over in one of our own goroutines does not end in these.
func known() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	}
}

// fuzzes reports whether the binary is one of go test -fuzz, whose engine has goroutines of its own.
func fuzzes() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			return true
		}
	}
	return false
}
