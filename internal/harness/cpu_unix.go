//go:build unix

package harness

import (
	"syscall"
	"time"
)

// CPUTime is the processor time this process has used, the garbage collector's threads included.
func CPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // it cannot fail with these arguments
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
