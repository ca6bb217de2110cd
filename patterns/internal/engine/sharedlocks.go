package engine

import (
	"context"
	"sync"

	"github.com/tablepatterns/tablepatterns/tables"
)

// SharedLocks prevent the workers of one run from writing the same shared row or list at the same time, since each
// would make the others retry. A conflict with another process is still possible.
type SharedLocks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed on release
}

// Acquire waits until none of the names is held and then locks all of them at once, so that two holders never
// deadlock.
func (l *SharedLocks) Acquire(ctx context.Context, names []string) (release func(), err error) {
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

// tryAcquire locks all names, or returns the channel of one that another worker holds.
func (l *SharedLocks) tryAcquire(names []string) (busy <-chan struct{}, free chan struct{}) {
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

func (l *SharedLocks) release(names []string, free chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		delete(l.held, name)
	}
	close(free)
}

// SharedBy names what a write of an entity may share with writes of others: the partition, if patterns have shared
// rows or other repositories' entities there, and the places at which auditors hold its facts.
func (r *Engine) SharedBy(key tables.Key, v any) []string {
	var names []string
	if len(r.rows)+len(r.companions) > 0 {
		names = append(names, key.Partition)
	}
	for _, p := range r.Patterns {
		if p.Audit == nil || v == nil {
			continue
		}
		facts, err := p.Audit.Expected(v)
		if err != nil {
			continue // the write will report the error
		}
		for _, f := range facts {
			names = append(names, HeldName(p, f.Place))
		}
	}
	return names
}

// HeldName is the name of a pattern's place among those of all patterns, and the name of its lock. It contains a tab,
// so it never equals a partition key.
func HeldName(p *Pattern, place string) string { return p.Name + "\t" + place }
