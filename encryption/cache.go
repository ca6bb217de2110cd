package encryption

import (
	"context"
	"sync"
	"time"
)

// cache holds fetched values, for a limited time and number of uses. Concurrent callers share a fetch.
type cache[K comparable, V any] struct {
	ttl  time.Duration
	uses int64
	now  func() time.Time
	// refuses selects errors to cache for refusalTime, so that an attacker who can write rows cannot make every read send a request for a key that
	// does not exist.
	refuses func(error) bool

	mu       sync.Mutex // never held while something is fetched
	entries  map[K]*cached[V]
	refusals int // number of cached errors
	flights  map[K]*flight[V]
}

type cached[V any] struct {
	value   V
	err     error // in place of value
	expires time.Time
	left    int64 // remaining uses
}

type flight[V any] struct {
	done   chan struct{}
	value  V
	err    error
	gaveUp bool // the fetcher's context has ended, or its fetch has panicked: each waiter tries again
}

func newCache[K comparable, V any](ttl time.Duration, uses int64) *cache[K, V] {
	return &cache[K, V]{ttl: ttl, uses: uses, now: time.Now, entries: map[K]*cached[V]{}, flights: map[K]*flight[V]{}}
}

// refusalTime is how long an error is cached, unless the TTL is shorter; then a restored row is seen. maxRefusals limits the memory that an
// attacker can make the program use.
const (
	refusalTime = 30 * time.Second
	maxRefusals = 1024
)

// get returns the cached value of k, or the result of fetch, whose error waiters get, too.
func (c *cache[K, V]) get(ctx context.Context, k K, fetch func(context.Context) (V, error)) (V, error) {
	var none V
	for {
		c.mu.Lock()
		if e := c.entries[k]; e != nil && e.left > 0 && c.now().Before(e.expires) {
			e.left--
			c.mu.Unlock()
			return e.value, e.err
		}
		delete(c.entries, k)
		f := c.flights[k]
		if f == nil {
			f = &flight[V]{done: make(chan struct{}), gaveUp: true}
			c.flights[k] = f
			c.mu.Unlock()
			c.lead(ctx, k, f, fetch)
			return f.value, f.err
		}
		c.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return none, ctx.Err()
		}
		if !f.gaveUp {
			return f.value, f.err
		}
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
	}
}

// lead runs fetch for all waiters, and releases them even if it panics. A result is not cached if forget was called meanwhile.
func (c *cache[K, V]) lead(ctx context.Context, k K, f *flight[V], fetch func(context.Context) (V, error)) {
	defer func() {
		c.mu.Lock()
		if c.flights[k] == f {
			delete(c.flights, k)
			if !f.gaveUp {
				c.keep(k, f.value, f.err)
			}
		}
		c.mu.Unlock()
		close(f.done)
	}()
	f.value, f.err = fetch(ctx)
	f.gaveUp = f.err != nil && ctx.Err() != nil
}

// keep caches a value or an error. A timer removes it, because an unused key must not stay in memory. The caller holds mu.
func (c *cache[K, V]) keep(k K, value V, err error) {
	ttl := c.ttl
	if err != nil {
		if c.refuses == nil || !c.refuses(err) || c.refusals >= maxRefusals {
			return
		}
		ttl = min(ttl, refusalTime)
		c.refusals++
	}
	e := &cached[V]{value: value, err: err, expires: c.now().Add(ttl), left: c.uses - 1}
	c.entries[k] = e
	time.AfterFunc(ttl, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.refusals--
		}
		if c.entries[k] == e {
			delete(c.entries, k)
		}
	})
}

// forget removes the value of k, also that of a running fetch.
func (c *cache[K, V]) forget(k K) {
	c.mu.Lock()
	delete(c.entries, k)
	delete(c.flights, k)
	c.mu.Unlock()
}
