package lease

import "time"

// Bound ends a lease at a time that renewals of the message do not move. It is for what a request under the lease leads to
// and may be undone by others after a while, such as a blob that nothing points at yet: the request that comes to depend on
// it is not sent later than that.
type Bound struct {
	lease *Lease
	since time.Time
	term  time.Duration
}

// Bound lets nothing be sent under the lease once term has passed since, unless the bound is moved or lifted before.
func (l *Lease) Bound(since time.Time, term time.Duration) *Bound {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &Bound{lease: l, since: since, term: term}
	l.bounds = append(l.bounds, b)
	return b
}

// Move begins the bound's term anew. It is too late for a lease that has ended.
func (b *Bound) Move(since time.Time) {
	b.lease.mu.Lock()
	defer b.lease.mu.Unlock()
	b.since = since
}

// Lift takes the bound away, and may be called more than once.
func (b *Bound) Lift() {
	b.lease.mu.Lock()
	defer b.lease.mu.Unlock()
	for i, other := range b.lease.bounds {
		if other == b {
			b.lease.bounds = append(b.lease.bounds[:i:i], b.lease.bounds[i+1:]...)
			return
		}
	}
}

// bounded reports whether one of the lease's bounds has passed.
func (l *Lease) bounded() bool {
	for _, b := range l.bounds {
		if Elapsed(b.since) >= b.term {
			return true
		}
	}
	return false
}
