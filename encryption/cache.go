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
	// refuses reports whether an error is kept, for refusalTime: it would be the same if it were fetched again, and whoever can
	// write what is read could have each read fetch it. nil keeps none.
	refuses func(error) bool

	mu       sync.Mutex // never held while something is fetched
	entries  map[K]*cached[V]
	refusals int // that timers run for
	flights  map[K]*flight[V]
}

type cached[V any] struct {
	value   V
	err     error // in place of value
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

// refusalTime is how long an error is kept at most, so that what was mended is seen soon; maxRefusals is how many are, beside the
// values: a bound for the memory that somebody can have taken who can write what is read.
const (
	refusalTime = 30 * time.Second
	maxRefusals = 1024
)

// get returns what is there for k, or what fetch returns. Those who waited for an error get it, too.
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

// lead fetches for all who wait. They are let go also when fetch panics. What was forgotten meanwhile is for them alone.
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

// keep keeps a value, or a refusal, until its time is over, also when nobody asks for it any more: it may be a key. mu is held.
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

// forget removes what is there for k, and keeps nothing of what is being fetched.
func (c *cache[K, V]) forget(k K) {
	c.mu.Lock()
	delete(c.entries, k)
	delete(c.flights, k)
	c.mu.Unlock()
}
