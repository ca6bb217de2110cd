package simulator

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

// after returns the stamp that follows last, which is the zero Time for a resource that has none.
func (c *Clock) after(last time.Time) time.Time {
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

// stamps are the timestamps of one change set, as recorded answers of the service have them: one for all inserts, and one
// for all replaces and merges, those among them that insert a row included.
type stamps struct {
	clock           *Clock
	insert, replace time.Time // zero until a row needs it
}

// of returns the stamp of a row whose last stamp was last, the zero Time for a row that never had one. Two stamps of one
// row differ, since conditions rely on that.
func (s *stamps) of(v verb, last time.Time) time.Time {
	if s.clock.still {
		return s.clock.after(last)
	}
	set := &s.replace
	if v == verbInsert {
		set = &s.insert
	}
	if set.IsZero() {
		*set = s.clock.Stamp()
	}
	return *set
}
