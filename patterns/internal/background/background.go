// Package background runs what remains of changes that have returned to their callers, within bounds.
package background

import (
	"context"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/lease"
)

// Tasks are what remains of changes that have returned. Nil Tasks run before the changes return.
type Tasks struct {
	slots chan struct{}

	idling sync.Mutex

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

// New returns Tasks, of which at most most run at the same time in the background.
func New(most int) *Tasks {
	return &Tasks{slots: make(chan struct{}, max(most, 0)), timers: map[*time.Timer]struct{}{}}
}

// Do runs a task in the background or, if too many run there, before it returns.
func (b *Tasks) Do(ctx context.Context, task func(context.Context)) {
	if !b.Try(ctx, task) {
		b.Now(ctx, task)
	}
}

// Try runs a task in the background. It returns false, without running it, if too many run there.
func (b *Tasks) Try(ctx context.Context, task func(context.Context)) bool {
	if !b.begin() {
		return false
	}
	go func() {
		defer b.end()
		within(ctx, longest, task)
	}()
	return true
}

// Now runs a task before it returns, for at most longestWait.
func (b *Tasks) Now(ctx context.Context, task func(context.Context)) { within(ctx, longestWait, task) }

// within runs a task with a context that does not end with the caller's: what remains of a change is right whenever it runs.
func within(ctx context.Context, most time.Duration, task func(context.Context)) {
	ctx, cancel := context.WithTimeout(lease.Free(ctx), most)
	defer cancel()
	task(ctx)
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

// Later runs a task in the background after a time. It drops the task if the Tasks are closed before, or if mostLater tasks wait already.
func (b *Tasks) Later(ctx context.Context, after time.Duration, task func(context.Context)) {
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
			within(ctx, longest, task)
		}
	})
	b.timers[timer] = struct{}{}
}

// Idle waits until no task runs in the background. Changes that come meanwhile run their tasks before they return.
func (b *Tasks) Idle(ctx context.Context) error {
	b.idling.Lock() // two calls would wait for each other
	defer b.idling.Unlock()
	for held := range cap(b.slots) {
		select {
		case b.slots <- struct{}{}:
		case <-ctx.Done():
			b.free(held)
			return context.Cause(ctx)
		}
	}
	b.free(cap(b.slots))
	return nil
}

func (b *Tasks) free(slots int) {
	for range slots {
		<-b.slots
	}
}

// Close waits for the tasks that run, and drops those that wait for their time. Tasks of later changes run before these return.
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
