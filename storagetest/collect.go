package storagetest

import "runtime/debug"

// collectSeldom has the garbage collector run less often until the function that it returns is called. The worlds of a sweep,
// a schedule or a walk are small, and are thrown away at once or kept to the end: at the usual rate, a fifth of the time goes
// into collecting them. A rate that somebody has set lower still stays as it is.
func collectSeldom() (restore func()) {
	const seldom = 400
	before := debug.SetGCPercent(seldom)
	if before < 0 || before > seldom {
		debug.SetGCPercent(before)
	}
	return func() { debug.SetGCPercent(before) }
}
