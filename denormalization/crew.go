package denormalization

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// crew runs functions concurrently, up to a limit, and keeps the first error.
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

// catch passes a panic of the caller's functions on to wait, where the caller can recover it.
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
