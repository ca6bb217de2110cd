package environment

import (
	"sync"
	"time"
)

// Clock is the simulator's virtual time. Only Advance moves it, and each Stamp moves it by a tick of 100 ns, so that no two
// requests have the same timestamp. The rows of one change set share a timestamp: see stamps in package tables.
//
// On a still clock, Stamp does not move the time: the stamp of a resource is later than the previous stamp of
// the same resource, and independent of other resources.
type Clock struct {
	mu    sync.Mutex
	now   time.Time
	still bool // set once, before the clock is used
}

// tick is the shortest time between two stamps.
const tick = 100 * time.Nanosecond

// Stand makes the clock a still clock. Call it before the first request.
func (c *Clock) Stand() { c.still = true }

// Still reports whether the clock is a still clock.
func (c *Clock) Still() bool { return c.still }

// Restore sets the time back to now.
func (c *Clock) Restore(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// NewClock returns a clock that begins at start, in UTC, rounded to a tick.
func NewClock(start time.Time) *Clock {
	return &Clock{now: start.UTC().Truncate(tick)}
}

// Now returns the virtual time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the time forward by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d.Truncate(tick))
}

// After returns the stamp after last, the previous stamp of the same resource, or the zero Time if it has none.
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
