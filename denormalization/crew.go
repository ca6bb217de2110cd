package denormalization

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// crew runs functions concurrently, up to a limit, and keeps the first error.
type crew struct {
	running  errgroup.Group
	mu       sync.Mutex
	panicked any
}

func newCrew(n int) *crew {
	n = cmp.Or(n, defaultConcurrency)
	c := &crew{}
	c.running.SetLimit(n)
	return c
}

// do starts a function in a goroutine as soon as fewer than the limit run.
func (c *crew) do(work func() error) {
	c.running.Go(func() error {
		defer c.catch()
		return work()
	})
}

// catch passes a panic of the caller's functions on to wait, where the caller can recover it.
func (c *crew) catch() {
	if r := recover(); r != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.panicked = fmt.Sprintf("%v\n%s", r, debug.Stack())
	}
}

// failed makes wait return err, unless another function has failed before. The caller uses it for an error of its own goroutine.
func (c *crew) failed(err error) { c.do(func() error { return err }) }

// wait waits for all functions and returns the first error.
func (c *crew) wait() error {
	err := c.running.Wait()
	if c.panicked != nil {
		panic(c.panicked)
	}
	return err
}
