package encryption

import (
	"context"
	"errors"
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
	done  chan struct{}
	value V
	err   error
}

func newCache[K comparable, V any](ttl time.Duration, uses int64) *cache[K, V] {
	return &cache[K, V]{ttl: ttl, uses: uses, now: time.Now, entries: map[K]*cached[V]{}, flights: map[K]*flight[V]{}}
}

// get returns what is there for k, or what fetch returns. An error is not kept; those who waited for it get it, too.
func (c *cache[K, V]) get(ctx context.Context, k K, fetch func(context.Context) (V, error)) (V, error) {
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
			f = &flight[V]{done: make(chan struct{}), err: errNotFetched}
			c.flights[k] = f
			c.mu.Unlock()
			c.lead(ctx, k, f, fetch)
			return f.value, f.err
		}
		c.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
		// The one who fetched may have given up, which is no reason for the others to.
		if !errors.Is(f.err, context.Canceled) && !errors.Is(f.err, context.DeadlineExceeded) && !errors.Is(f.err, errNotFetched) {
			return f.value, f.err
		}
		if ctx.Err() != nil {
			var none V
			return none, ctx.Err()
		}
	}
}

var errNotFetched = errors.New("the fetch panicked")

// lead fetches for all who wait. They are let go also when fetch panics.
func (c *cache[K, V]) lead(ctx context.Context, k K, f *flight[V], fetch func(context.Context) (V, error)) {
	defer func() {
		c.mu.Lock()
		delete(c.flights, k)
		if f.err == nil {
			c.entries[k] = &cached[V]{value: f.value, expires: c.now().Add(c.ttl), left: c.uses - 1}
		}
		c.mu.Unlock()
		close(f.done)
	}()
	f.value, f.err = fetch(ctx)
}

// forget removes what is there for k.
func (c *cache[K, V]) forget(k K) {
	c.mu.Lock()
	delete(c.entries, k)
	c.mu.Unlock()
}
