package environment

import (
	"testing"
	"time"
)

func TestClockStampsRise(t *testing.T) {
	c := NewClock(time.Date(2026, 1, 1, 0, 0, 0, 123, time.UTC))
	last := c.Now()
	for range 3 {
		at := c.Stamp()
		if !at.After(last) || at.Nanosecond()%100 != 0 {
			t.Fatalf("%v after %v", at, last)
		}
		last = at
	}
}
