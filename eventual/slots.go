package eventual

import (
	"context"
	"sync"
	"time"
)

// slotPatience is how long a poll that has a free slot waits for half of the slots to become free. Waiting
// saves requests, since one request can get many messages.
const slotPatience = 25 * time.Millisecond

// slots limits the handlers that run at a time. A poll takes a slot for each message that it asks for, before it
// asks: a message without a free slot would only be hidden from other workers.
type slots struct {
	lock chan struct{} // one token, which a poll holds while it takes slots; waiting polls get it in their order, so that no shard starves

	mu      sync.Mutex
	all     int
	free    int
	changed chan struct{} // signals the holder of the lock
}

func newSlots(n int) *slots {
	s := &slots{lock: make(chan struct{}, 1), all: n, free: n, changed: make(chan struct{}, 1)}
	s.lock <- struct{}{}
	return s
}

// take takes from 1 to most slots, or returns 0 when ctx ends.
func (s *slots) take(ctx context.Context, most int) int {
	select {
	case <-s.lock:
	case <-ctx.Done():
		return 0
	}
	defer func() { s.lock <- struct{}{} }()
	var timer *time.Timer
	var patience <-chan time.Time
	enough := (s.all + 1) / 2
	for ctx.Err() == nil {
		n, free := s.tryTake(enough, most)
		if n > 0 {
			if timer != nil {
				timer.Stop()
			}
			return n
		}
		if free > 0 && timer == nil {
			timer = time.NewTimer(slotPatience)
			patience = timer.C
		}
		select {
		case <-s.changed:
		case <-patience:
			enough, patience = 1, nil
		case <-ctx.Done():
		}
	}
	if timer != nil {
		timer.Stop()
	}
	return 0
}

// tryTake takes slots if at least enough are free.
func (s *slots) tryTake(enough, most int) (taken, free int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free < enough {
		return 0, s.free
	}
	taken = min(s.free, most)
	s.free -= taken
	return taken, s.free
}

func (s *slots) give(n int) {
	s.mu.Lock()
	s.free += n
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
