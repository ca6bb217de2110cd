// Package testrun has the helpers that sweeps, schedules and walks share: tests that run the same code very often.
package testrun

import (
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// CollectSeldom makes the garbage collector run less often until the caller calls restore. The simulated
// services of a sweep, a schedule or a walk are small, and are either discarded at once or kept to the end:
// at the usual rate, collecting them takes a fifth of the time. If the rate is already lower, it stays.
func CollectSeldom() (restore func()) {
	const seldom = 400
	before := debug.SetGCPercent(seldom)
	if before < 0 || before > seldom {
		debug.SetGCPercent(before)
	}
	return func() { debug.SetGCPercent(before) }
}

// Alone returns the command line that runs only the given test.
func Alone(t testing.TB) string {
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return "go test -run '" + strings.Join(parts, "/") + "'"
}

// EachCause calls visit with an error and every error that it wraps.
func EachCause(err error, visit func(error)) {
	if err == nil {
		return
	}
	visit(err)
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		EachCause(w.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, cause := range w.Unwrap() {
			EachCause(cause, visit)
		}
	}
}
