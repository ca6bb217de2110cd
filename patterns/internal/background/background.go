// Package background does what is left of changes that have returned to their callers, within bounds.
package background

import (
	"context"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/lease"
)

// Tasks are what is left of changes that have returned. Nil Tasks are done before the changes return.
type Tasks struct {
	slots chan struct{}

	mu     sync.Mutex
	closed bool
	all    sync.WaitGroup
	timers map[*time.Timer]struct{}
}

const (
	longest     = 30 * time.Second // of a task in the background
	longestWait = 2 * time.Second  // of a task that a caller waits for
	mostLater   = 1000             // tasks that wait for their time
)

// New returns Tasks of which at most so many run at once in the background.
func New(most int) *Tasks {
	return &Tasks{slots: make(chan struct{}, max(most, 0)), timers: map[*time.Timer]struct{}{}}
}

// Do calls do in the background or, if too much is under way there, now.
func (b *Tasks) Do(ctx context.Context, do func(context.Context)) {
	if !b.Try(ctx, do) {
		b.Now(ctx, do)
	}
}

// Try calls do in the background, and returns false if too much is under way there.
func (b *Tasks) Try(ctx context.Context, do func(context.Context)) bool {
	if !b.begin() {
		return false
	}
	go func() {
		defer b.end()
		within(ctx, longest, do)
	}()
	return true
}

// Now calls do before it returns, for a short time at most.
func (b *Tasks) Now(ctx context.Context, do func(context.Context)) { within(ctx, longestWait, do) }

// within calls do with a context that does not end with the caller's: what is left of a change is right whenever it is done.
func within(ctx context.Context, most time.Duration, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(lease.Free(ctx), most)
	defer cancel()
	do(ctx)
}

func (b *Tasks) begin() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	select {
	case b.slots <- struct{}{}:
		b.all.Add(1)
		return true
	default:
		return false
	}
}

func (b *Tasks) end() {
	<-b.slots
	b.all.Done()
}

// Later calls do in the background after a time, unless the Tasks are closed before or 1,000 tasks wait already.
func (b *Tasks) Later(ctx context.Context, after time.Duration, do func(context.Context)) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.timers) >= mostLater {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(after, func() {
		b.mu.Lock()
		delete(b.timers, timer)
		b.mu.Unlock()
		if b.begin() {
			defer b.end()
			within(ctx, longest, do)
		}
	})
	b.timers[timer] = struct{}{}
}

// Close waits for what is under way, and gives up what waits for its time. Later changes do what is left of them before they return.
func (b *Tasks) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	for timer := range b.timers {
		timer.Stop()
	}
	clear(b.timers)
	b.mu.Unlock()
	done := make(chan struct{})
	go func() {
		b.all.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
