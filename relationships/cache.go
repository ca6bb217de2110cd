package relationships

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// CacheOptions are the options of NewCache; nil is the same as the zero value.
type CacheOptions struct {
	// TTL is the maximum age of entities, counted from the start of the read (default 1 minute).
	TTL time.Duration
	// Stale is how long after TTL the cache still serves the old entities, while it reads them again or if this
	// read fails (default: the same as TTL; negative: not at all). After that, callers wait for the read.
	Stale time.Duration
	// Limit is the maximum number of entities in memory (default 10,000). If there are more, a read fails with
	// tables.ErrTooLarge.
	Limit int
	// Timeout limits one read of all entities (default 30 s).
	Timeout time.Duration
	// Now is the clock (default time.Now).
	Now func() time.Time
}

const (
	defaultTTL     = time.Minute
	defaultLimit   = 10_000
	defaultTimeout = 30 * time.Second
)

func (o *CacheOptions) orDefaults() (CacheOptions, error) {
	var with CacheOptions
	if o != nil {
		with = *o
	}
	if with.TTL < 0 || with.Limit < 0 || with.Timeout < 0 {
		return with, fmt.Errorf("CacheOptions.TTL is %s, Limit %d and Timeout %s; each must be 0 (meaning the default) or more", with.TTL, with.Limit, with.Timeout)
	}
	with.TTL = cmp.Or(with.TTL, defaultTTL)
	with.Stale = cmp.Or(with.Stale, with.TTL)
	with.Stale = max(with.Stale, 0)
	with.Limit = cmp.Or(with.Limit, defaultLimit)
	with.Timeout = cmp.Or(with.Timeout, defaultTimeout)
	if with.Now == nil {
		with.Now = time.Now
	}
	return with, nil
}

// Cache holds all entities of a small table, or of a query, in memory, for joins in the client. It reads all of
// them at the first call and again when they are older than TTL, with one read for all concurrent callers. It
// is safe for concurrent use. Close stops a running read.
type Cache[P any] struct {
	repo    *patterns.Repository[P]
	query   tables.Query[P]
	options CacheOptions
	ending  context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex // never locked during a request
	closed   bool
	held     *snapshot[P]
	flight   *flight[P]
	failures int
	retryAt  time.Time // after a failed read: no new read begins before this time, as long as the old entities may be served
}

// snapshot is the immutable result of one read.
type snapshot[P any] struct {
	began   time.Time
	byKey   map[tables.Key]*P
	ordered []*P
}

// flight is one read in progress.
type flight[P any] struct {
	done  chan struct{}
	found *snapshot[P] // set when done is closed
	err   error
}

// NewCache returns a cache of the result of a query of repo, such as repo.Query().Partition(...), or
// repo.Query().AllowTableScan() for a whole table. Requests: 0.
func NewCache[P any](repo *patterns.Repository[P], query tables.Query[P], options *CacheOptions) (*Cache[P], error) {
	const op = "NewCache"
	if repo == nil {
		return nil, errs.Wiringf(op, "", "the repository is nil; give one")
	}
	plan, err := query.Plan()
	if err != nil {
		return nil, err
	}
	if len(plan.Select) > 0 {
		return nil, errs.Wiringf(op, "", "the query is a projection, and a cache holds whole entities; remove Select")
	}
	with, err := options.orDefaults()
	if err != nil {
		return nil, errs.Wiringf(op, "", "%w", err)
	}
	c := &Cache[P]{repo: repo, query: query, options: with}
	c.ending, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Close cancels a running read and waits until it has ended. Afterwards all methods return an error.
func (c *Cache[P]) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.running.Wait()
}

// Get returns an entity, or tables.ErrNotFound if the query has no entity with this key. It returns a shallow
// copy: do not modify what its pointers, maps and slices refer to. Requests: 0 while the entities are not older
// than TTL, else 1 for each page of the query, in one read for all callers.
func (c *Cache[P]) Get(ctx context.Context, key tables.Key) (*P, error) {
	found, err := c.Lookup(ctx, []tables.Key{key})
	if err != nil {
		return nil, err
	}
	if found[key] == nil {
		return nil, notFound("Get", key, nil)
	}
	return found[key], nil
}

// Lookup implements Source. Requests: as Get.
func (c *Cache[P]) Lookup(ctx context.Context, keys []tables.Key) (map[tables.Key]*P, error) {
	s, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[tables.Key]*P, len(keys))
	for _, key := range keys {
		if v := s.byKey[key]; v != nil && found[key] == nil {
			own := *v
			found[key] = &own
		}
	}
	return found, nil
}

// All yields all entities in the order of the query, all from the same read. An error is yielded once, as the
// last element. Requests: as Get.
func (c *Cache[P]) All(ctx context.Context) iter.Seq2[*P, error] {
	return func(yield func(*P, error) bool) {
		s, err := c.current(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, v := range s.ordered {
			own := *v
			if !yield(&own, nil) {
				return
			}
		}
	}
}

// Refresh reads the entities again. When it returns, the cache contains everything that was stored before the call, so
// a writer can read its own writes. Requests: 1 for each page of the query.
func (c *Cache[P]) Refresh(ctx context.Context) error {
	c.mu.Lock()
	before := c.flight
	c.mu.Unlock()
	if before != nil { // the running read may have missed what was stored before the call, so wait for its end and read again
		if _, err := before.wait(ctx); ctx.Err() != nil {
			return err
		}
	}
	c.mu.Lock()
	f, err := c.launch()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = f.wait(ctx)
	return err
}

// current returns a snapshot that may be served, and reads a new one if it is older than TTL.
func (c *Cache[P]) current(ctx context.Context) (*snapshot[P], error) {
	c.mu.Lock()
	now := c.options.Now()
	s := c.held
	if s != nil && !c.closed {
		age := now.Sub(s.began)
		if age >= 0 && age < c.options.TTL {
			c.mu.Unlock()
			return s, nil
		}
		if age >= c.options.TTL+c.options.Stale {
			s = nil
		}
	}
	if s != nil && now.Before(c.retryAt) && !c.closed {
		c.mu.Unlock()
		return s, nil
	}
	f, err := c.launch()
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if s != nil {
		return s, nil
	}
	return f.wait(ctx)
}

// launch starts a read unless one is in progress. The caller holds the lock.
func (c *Cache[P]) launch() (*flight[P], error) {
	switch {
	case c.closed:
		return nil, errs.Wiringf("Lookup", "", "the cache is closed; make a new one with NewCache")
	case c.flight != nil:
		return c.flight, nil
	}
	f := &flight[P]{done: make(chan struct{})}
	c.flight = f
	began := c.options.Now()
	c.running.Go(func() {
		ctx, cancel := context.WithTimeout(c.ending, c.options.Timeout)
		defer cancel()
		found, err := c.read(ctx, began)
		c.land(f, found, err)
	})
	return f, nil
}

// land ends a read, and keeps the previous snapshot if the read has failed.
func (c *Cache[P]) land(f *flight[P], found *snapshot[P], err error) {
	c.mu.Lock()
	f.found, f.err, c.flight = found, err, nil
	if err == nil {
		c.held, c.failures, c.retryAt = found, 0, time.Time{}
	} else {
		c.retryAt = c.options.Now().Add(backoff.Delay(c.failures))
		c.failures++
	}
	c.mu.Unlock()
	close(f.done)
}

func (c *Cache[P]) read(ctx context.Context, began time.Time) (*snapshot[P], error) {
	s := &snapshot[P]{began: began, byKey: map[tables.Key]*P{}}
	for v, err := range c.query.All(ctx) {
		if err != nil {
			return nil, err
		}
		if len(s.ordered) == c.options.Limit {
			return nil, &tables.Error{Op: "Lookup", Table: c.repo.Table().Name(), Kind: tables.ErrTooLarge,
				Err: fmt.Errorf("the query has more than %d entities, the maximum of CacheOptions.Limit; raise it", c.options.Limit)}
		}
		s.byKey[patterns.HostOf(c.repo).MetaOf(v).Key()] = v
		s.ordered = append(s.ordered, v)
	}
	return s, nil
}

// wait waits for the result of the read, at most until ctx ends. The end of ctx does not end the read.
func (f *flight[P]) wait(ctx context.Context) (*snapshot[P], error) {
	select {
	case <-f.done:
		return f.found, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
