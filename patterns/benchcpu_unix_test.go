//go:build unix

package patterns_test

import (
	"syscall"
	"time"
)

// cpuTime is the processor time this process has used, the garbage collector's threads included.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // it cannot fail with these arguments
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
