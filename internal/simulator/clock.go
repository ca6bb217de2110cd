package simulator

import (
	"sync"
	"time"
)

// Clock is the simulator's virtual time. It stands still but for Advance, and for one tick of 100 ns at each Stamp, so
// that no two changes have one timestamp.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock begins at start, in UTC, to the tick.
func NewClock(start time.Time) *Clock {
	return &Clock{now: start.UTC().Truncate(100 * time.Nanosecond)}
}

// Now returns the virtual time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the time on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d.Truncate(100 * time.Nanosecond))
}

// Stamp returns a time later than any stamp before it.
func (c *Clock) Stamp() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(100 * time.Nanosecond)
	return c.now
}
