package storagetest

import (
	"time"

	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
)

// Clock is the time of a [Simulator]. Each write moves it by 100 ns, and each request by Chaos.Latency;
// otherwise only Advance moves it. So the test decides when a message appears again, a lease ends, a
// signature expires, or the name of a dropped table becomes free. It is safe for concurrent use.
type Clock struct{ clock *environment.Clock }

// Now returns the virtual time. Each write moves it forward by 100 ns, so that no two writes have the same timestamp.
func (c *Clock) Now() time.Time { return c.clock.Now() }

// Advance moves the virtual time forward by d.
func (c *Clock) Advance(d time.Duration) { c.clock.Advance(d) }
