package explore

import "testing"

// TraceOf runs the schedule of one seed and returns its steps.
func TraceOf(t *testing.T, c ScheduleCase, seed uint64) []string { return traced(t, c, seed) }
