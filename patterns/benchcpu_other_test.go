//go:build !unix

package patterns_test

import "time"

// cpuTime is the time on the wall, where the process's own cannot be had in the same way on every system.
func cpuTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
