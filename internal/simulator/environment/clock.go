package environment

import (
	"sync"
	"time"
)

// Clock is the simulator's virtual time. It stands still but for Advance, and for one tick of 100 ns at each Stamp, so
// that no two requests have one timestamp. The rows of one change set share theirs: see stamps.
//
// A still clock does not tick: a stamp is later than the one before it of the same resource, and says nothing of others.
type Clock struct {
	mu    sync.Mutex
	now   time.Time
	still bool // set once, before the clock is used
}

// tick is the least time between two stamps.
const tick = 100 * time.Nanosecond

// NewStillClock is NewClock for a still clock.
func NewStillClock(start time.Time) *Clock {
	c := NewClock(start)
	c.still = true
	return c
}

// Still tells whether the clock is a still one.
func (c *Clock) Still() bool { return c.still }

// Restore takes the time back to now.
func (c *Clock) Restore(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// NewClock begins at start, in UTC, to the tick.
func NewClock(start time.Time) *Clock {
	return &Clock{now: start.UTC().Truncate(tick)}
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
	c.now = c.now.Add(d.Truncate(tick))
}

// After returns the stamp that follows last, which is the zero Time for a resource that has none.
func (c *Clock) After(last time.Time) time.Time {
	if !c.still {
		return c.Stamp()
	}
	now := c.Now()
	if now.After(last) {
		return now
	}
	return last.Add(tick)
}

// Stamp returns a time later than any stamp before it.
func (c *Clock) Stamp() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(tick)
	return c.now
}
