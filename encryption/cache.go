package encryption

import (
	"context"
	"sync"
	"time"
)

// cache holds what was fetched, each for a time and a number of uses. Of several who want what is not there, one fetches
// it and the others wait for it.
type cache[K comparable, V any] struct {
	ttl  time.Duration
	uses int64
	now  func() time.Time

	mu      sync.Mutex // never held while something is fetched
	entries map[K]*cached[V]
	flights map[K]*flight[V]
}

type cached[V any] struct {
	value   V
	expires time.Time
	left    int64 // uses
}

type flight[V any] struct {
	done   chan struct{}
	value  V
	err    error
	gaveUp bool // the one who fetched did, or panicked: the others ask for themselves
}

func newCache[K comparable, V any](ttl time.Duration, uses int64) *cache[K, V] {
	return &cache[K, V]{ttl: ttl, uses: uses, now: time.Now, entries: map[K]*cached[V]{}, flights: map[K]*flight[V]{}}
}

// get returns what is there for k, or what fetch returns. An error is not kept; those who waited for it get it, too.
func (c *cache[K, V]) get(ctx context.Context, k K, fetch func(context.Context) (V, error)) (V, error) {
	var none V
	for {
		c.mu.Lock()
		if e := c.entries[k]; e != nil && e.left > 0 && c.now().Before(e.expires) {
			e.left--
			c.mu.Unlock()
			return e.value, nil
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

// lead fetches for all who wait. They are let go also when fetch panics. What was forgotten meanwhile is for them alone.
func (c *cache[K, V]) lead(ctx context.Context, k K, f *flight[V], fetch func(context.Context) (V, error)) {
	defer func() {
		c.mu.Lock()
		if c.flights[k] == f {
			delete(c.flights, k)
			if f.err == nil && !f.gaveUp {
				c.keep(k, f.value)
			}
		}
		c.mu.Unlock()
		close(f.done)
	}()
	f.value, f.err = fetch(ctx)
	f.gaveUp = f.err != nil && ctx.Err() != nil
}

// keep keeps a value until its time is over, also when nobody asks for it any more: it may be a key. mu is held.
func (c *cache[K, V]) keep(k K, value V) {
	e := &cached[V]{value: value, expires: c.now().Add(c.ttl), left: c.uses - 1}
	c.entries[k] = e
	time.AfterFunc(c.ttl, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.entries[k] == e {
			delete(c.entries, k)
		}
	})
}

// forget removes what is there for k, and keeps nothing of what is being fetched.
func (c *cache[K, V]) forget(k K) {
	c.mu.Lock()
	delete(c.entries, k)
	delete(c.flights, k)
	c.mu.Unlock()
}
