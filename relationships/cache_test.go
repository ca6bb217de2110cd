package relationships_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// clock is the time of a cache.
type clock struct{ nanoseconds atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.nanoseconds.Load()) }
func (c *clock) advance(d time.Duration) { c.nanoseconds.Add(int64(d)) }

// cached is a cache of the departments, read through a client that counts and can fail.
type cached struct {
	*relationships.Cache[department]
	clock   clock
	counter storagetest.RequestCounter
	broken  atomic.Bool
	hold    chan struct{} // set before the first request: one waits until it is closed
	stored  *patterns.Repository[department]
}

func newCached(t *testing.T, s *storagetest.Service, o relationships.CacheOptions) *cached {
	t.Helper()
	w := newWorld(t, s, inParent)
	c := &cached{stored: assert.Must[*process](t)(w.start(s)).departments}
	faulty, _ := s.Faulty(storagetest.First(&c.counter, storagetest.InjectorFunc(func(storagetest.Call) storagetest.Fault {
		switch hold := c.hold; {
		case c.broken.Load():
			return storagetest.Throttled
		case hold != nil:
			return storagetest.Before("held up", func() { <-hold })
		}
		return nil
	})))
	faulty.ClientOptions.Retry.MaxRetries = -1
	o.Now = c.clock.now
	departments := assert.Must[*process](t)(w.start(faulty)).departments
	var err error
	c.Cache, err = relationships.NewCache(departments, departments.Query().Partition("Sales"), &o)
	assert.Check(t, err)
	t.Cleanup(c.Close)
	return c
}

// budget is what the cache has of department A.
func (c *cached) budget(t *testing.T) int {
	t.Helper()
	return assert.Must[*department](t)(c.Get(t.Context(), departmentKey("Sales", "A"))).Budget
}

func (c *cached) spend(t *testing.T, budget int) {
	t.Helper()
	_, err := c.stored.Update(t.Context(), departmentKey("Sales", "A"), func(d *department) error { d.Budget = budget; return nil })
	assert.Check(t, err)
}

// TestCacheAges: fresh, stale while it is read again, and too old.
func TestCacheAges(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		c := newCached(t, s, relationships.CacheOptions{TTL: time.Minute, Stale: time.Hour})
		if c.budget(t) != 5 || c.counter.Count() != 1 {
			t.Fatalf("%d requests", c.counter.Count())
		}
		c.spend(t, 6)
		c.clock.advance(time.Minute - 1)
		if got := c.budget(t); got != 5 || c.counter.Count() != 1 {
			t.Errorf("a fresh one gives %d, after %d requests", got, c.counter.Count())
		}
		c.clock.advance(1)
		if got := c.budget(t); got != 5 {
			t.Errorf("a stale one gives %d", got)
		}
		synctest.Wait()
		if got := c.budget(t); got != 6 || c.counter.Count() != 2 {
			t.Errorf("read again it gives %d, after %d requests", got, c.counter.Count())
		}
		c.spend(t, 7)
		c.clock.advance(time.Minute + time.Hour)
		if got := c.budget(t); got != 7 || c.counter.Count() != 3 {
			t.Errorf("one that is too old gives %d, after %d requests", got, c.counter.Count())
		}
		c.spend(t, 8)
		assert.Check(t, c.Refresh(t.Context()))
		if got := c.budget(t); got != 8 || c.counter.Count() != 4 {
			t.Errorf("after Refresh it gives %d, after %d requests", got, c.counter.Count())
		}
		c.clock.advance(-time.Hour) // a clock that was set back
		c.budget(t)
		synctest.Wait()
		if n := c.counter.Count(); n != 5 {
			t.Errorf("%d requests", n)
		}
		if _, err := c.Get(t.Context(), departmentKey("Sales", "none")); !errors.Is(err, tables.ErrNotFound) {
			t.Errorf("what is not there is %v", err)
		}
	})
}

// TestCacheFails: while the service is down a cache gives what it has for a while, and then errors; with nothing, at once.
func TestCacheFails(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		ctx := t.Context()
		c := newCached(t, s, relationships.CacheOptions{TTL: time.Minute, Stale: time.Hour})
		c.broken.Store(true)
		if _, err := c.Get(ctx, departmentKey("Sales", "A")); err == nil {
			t.Fatal("it gives what it cannot have")
		}
		c.broken.Store(false)
		c.budget(t)
		c.broken.Store(true)
		before := c.counter.Count()
		c.clock.advance(2 * time.Minute)
		for range 100 {
			c.budget(t)
			synctest.Wait() // the clock stands still, so there is one try
		}
		if n := c.counter.Count() - before; n != 1 {
			t.Errorf("%d tries in no time", n)
		}
		c.clock.advance(2 * time.Second)
		for range 100 {
			c.budget(t)
			synctest.Wait()
		}
		if n := c.counter.Count() - before; n != 2 {
			t.Errorf("%d tries after the first has had its pause", n)
		}
		c.clock.advance(2 * time.Hour)
		if _, err := c.Get(ctx, departmentKey("Sales", "A")); err == nil {
			t.Error("it gives what is too old")
		}
		c.broken.Store(false)
		c.budget(t)
	})
}

// TestCacheReadsOnce: for all who ask at the same time; one who leaves takes nothing from the others; Close ends all.
func TestCacheReadsOnce(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		c := newCached(t, s, relationships.CacheOptions{Stale: -1})
		c.hold = make(chan struct{})
		leaving, leave := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		const n = 50
		errs := make([]error, n)
		for i := range n {
			asking.Go(func() {
				ctx := t.Context()
				if i == 0 {
					ctx = leaving
				}
				_, errs[i] = c.Get(ctx, departmentKey("Sales", "A"))
			})
		}
		synctest.Wait() // all 50 wait for one reading
		leave()
		synctest.Wait()
		close(c.hold)
		asking.Wait()
		if !errors.Is(errs[0], context.Canceled) {
			t.Errorf("who has left got %v", errs[0])
		}
		assert.Check(t, errs[1:]...)
		if got := c.counter.Count(); got != 1 {
			t.Errorf("%d requests", got)
		}
		c.Close()
		c.Close()
		for _, err := range c.All(t.Context()) {
			if !errors.Is(err, tables.ErrWiring) {
				t.Errorf("a closed cache: %v", err)
			}
		}
		if err := c.Refresh(t.Context()); !errors.Is(err, tables.ErrWiring) {
			t.Errorf("a closed cache: %v", err)
		}
	})
}

// TestCacheIsShared: many read, one writes and refreshes; nobody sees another's changes of what was given out, and who
// refreshes sees what was written before.
func TestCacheIsShared(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	c := newCached(t, storagetest.Simulator(t, nil), relationships.CacheOptions{TTL: time.Minute})
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 50 {
				d, err := c.Get(t.Context(), departmentKey("Sales", "A"))
				if err != nil || d.Budget < 0 {
					t.Errorf("got %v, %v", d, err)
					return
				}
				d.Budget = -1
				c.clock.advance(time.Second)
			}
		})
	}
	for budget := range 10 {
		c.spend(t, budget)
		assert.Check(t, c.Refresh(t.Context()))
		if got := c.budget(t); got != budget {
			t.Errorf("after Refresh it gives %d, want %d", got, budget)
		}
	}
	running.Wait()
	c.Close()
	goleak.VerifyNone(t, leaks)
}

// TestCacheIsBounded: more entities than the limit are an error, and options that make no sense are refused.
func TestCacheIsBounded(t *testing.T) {
	ctx := t.Context()
	c := newCached(t, storagetest.Simulator(t, nil), relationships.CacheOptions{Limit: 1})
	if _, err := c.Get(ctx, departmentKey("Sales", "A")); !errors.Is(err, tables.ErrTooLarge) {
		t.Errorf("two of one: %v", err)
	}
	query := c.stored.Query().Partition("Sales")
	for what, o := range map[string]*relationships.CacheOptions{"TTL": {TTL: -1}, "Limit": {Limit: -1}, "Timeout": {Timeout: -1}} {
		if _, err := relationships.NewCache(c.stored, query, o); !errors.Is(err, tables.ErrWiring) {
			t.Errorf("a negative %s: %v", what, err)
		}
	}
	if _, err := relationships.NewCache(c.stored, query.Select("Name"), nil); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("a projection: %v", err)
	}
	if _, err := relationships.NewCache[department](nil, query, nil); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("no repository: %v", err)
	}
	scanning := assert.Must[*relationships.Cache[department]](t)(relationships.NewCache(c.stored, c.stored.Query(), nil))
	defer scanning.Close()
	if _, err := scanning.Get(ctx, departmentKey("Sales", "A")); !errors.Is(err, tables.ErrTableScan) {
		t.Errorf("a scan without leave: %v", err)
	}
	var names []string
	whole := assert.Must[*relationships.Cache[department]](t)(relationships.NewCache(c.stored, query, nil))
	defer whole.Close()
	for d, err := range whole.All(ctx) {
		assert.Check(t, err)
		names = append(names, d.Name)
	}
	if fmt.Sprint(names) != "[A B]" {
		t.Errorf("there are %v", names)
	}
}
