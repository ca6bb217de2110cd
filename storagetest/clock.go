package storagetest

import (
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
)

// Clock is the time of a [Simulator]. It stands still but for Advance, so it is the test that decides when a message
// appears again, a lease ends, a signature expires, or a dropped table's name is free. It is safe for concurrent use.
type Clock struct{ clock *environment.Clock }

// Now returns the virtual time. Each write moves it on by 100 ns, so that no two have one timestamp.
func (c *Clock) Now() time.Time { return c.clock.Now() }

// Advance moves the time on.
func (c *Clock) Advance(d time.Duration) { c.clock.Advance(d) }
