// Package sharedlocks keeps the goroutines of a process from working on the same names at once: the workers of a long job on shared rows,
// and the handlers of an ordered outbox on an entity.
package sharedlocks

import (
	"context"
	"sync"
)

// Locks is a set of locks, one for each name. Workers of one process that lock the name of a shared row or list before
// they write it do not conflict with each other, and so need fewer retries. Other processes can still conflict with
// them.
type Locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by name; closed when the lock is released
}

// Acquire waits until none of the names is held, and then locks all of them at once, so that two callers never deadlock.
func (l *Locks) Acquire(ctx context.Context, names []string) (release func(), err error) {
	for {
		busy, free := l.tryAcquire(names)
		if busy == nil {
			return func() { l.release(names, free) }, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryAcquire locks all names, or returns the channel of a name that another worker holds.
func (l *Locks) tryAcquire(names []string) (busy <-chan struct{}, free chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if busy, held := l.held[name]; held {
			return busy, nil
		}
	}
	if l.held == nil {
		l.held = map[string]chan struct{}{}
	}
	free = make(chan struct{})
	for _, name := range names {
		l.held[name] = free
	}
	return nil, free
}

func (l *Locks) release(names []string, free chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		delete(l.held, name)
	}
	close(free)
}
