package denormalization

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// crew does several things at once, a bounded number of them, and keeps the first error.
type crew struct {
	slots    chan struct{}
	running  sync.WaitGroup
	mu       sync.Mutex
	err      error
	panicked any
}

func newCrew(n int) *crew {
	if n == 0 {
		n = defaultConcurrency
	}
	return &crew{slots: make(chan struct{}, n)}
}

// do begins something once there is room for it.
func (c *crew) do(work func() error) {
	c.slots <- struct{}{}
	c.running.Go(func() {
		defer func() { <-c.slots }()
		defer c.catch()
		c.failed(work())
	})
}

// catch keeps a panic of the caller's functions for wait: here it would end the program, and whoever waits may know better.
func (c *crew) catch() {
	if r := recover(); r != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.panicked = fmt.Sprintf("%v\n%s", r, debug.Stack())
	}
}

// failed notes an error, if it is one.
func (c *crew) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// wait waits for all and returns the first error.
func (c *crew) wait() error {
	c.running.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.err
}
