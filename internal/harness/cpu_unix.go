//go:build unix

package harness

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time that this process has used, including the garbage collector.
func CPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // it cannot fail with these arguments
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
