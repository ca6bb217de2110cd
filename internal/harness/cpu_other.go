//go:build !unix

package harness

import "time"

// CPUTime returns wall-clock time on systems where the process's processor time is not available in the same way.
func CPUTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
