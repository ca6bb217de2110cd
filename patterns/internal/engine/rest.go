package engine

import (
	"context"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/lease"
)

// Rest does what is left of changes that have returned to their callers. A nil Rest does it before they return.
type Rest struct {
	slots chan struct{}

	mu     sync.Mutex
	closed bool
	all    sync.WaitGroup
	timers map[*time.Timer]struct{}
}

const (
	restTime  = 30 * time.Second // for what is done in the background
	restNow   = 2 * time.Second  // for what a caller waits for
	mostLater = 1000             // timers at once; beyond that, readers and the next changes tidy up
)

// NewRest returns a Rest that does at most so much at once in the background.
func NewRest(most int) *Rest {
	return &Rest{slots: make(chan struct{}, max(most, 0)), timers: map[*time.Timer]struct{}{}}
}

// Do calls do in the background or, if too much is under way there, now.
func (r *Rest) Do(ctx context.Context, do func(context.Context)) {
	if !r.Try(ctx, do) {
		r.Now(ctx, do)
	}
}

// Try calls do in the background, and returns false if too much is under way there.
func (r *Rest) Try(ctx context.Context, do func(context.Context)) bool {
	if !r.begin() {
		return false
	}
	go func() {
		defer r.end()
		within(ctx, restTime, do)
	}()
	return true
}

// Now calls do before it returns, for a short time at most.
func (r *Rest) Now(ctx context.Context, do func(context.Context)) { within(ctx, restNow, do) }

// within calls do with a context that does not end with the caller's: what is left of a change is right whenever it is done.
func within(ctx context.Context, most time.Duration, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(lease.Free(ctx), most)
	defer cancel()
	do(ctx)
}

func (r *Rest) begin() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	select {
	case r.slots <- struct{}{}:
		r.all.Add(1)
		return true
	default:
		return false
	}
}

func (r *Rest) end() {
	<-r.slots
	r.all.Done()
}

// Later calls do in the background after a time, unless the Rest is closed before or too much waits already.
func (r *Rest) Later(ctx context.Context, after time.Duration, do func(context.Context)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.timers) >= mostLater {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(after, func() {
		r.mu.Lock()
		delete(r.timers, timer)
		r.mu.Unlock()
		if r.begin() {
			defer r.end()
			within(ctx, restTime, do)
		}
	})
	r.timers[timer] = struct{}{}
}

// Close waits for what is under way, and gives up what waits for its time. Later changes do what is left of them before they return.
func (r *Rest) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	for timer := range r.timers {
		timer.Stop()
	}
	clear(r.timers)
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		r.all.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
