package encryption_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// TestCacheOfAVaultThatHangs: of many who wait while the vault runs into a deadline of its own, nobody asks it again.
func TestCacheOfAVaultThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := encryption.NewCache(time.Minute), time.Now()
		var fetched atomic.Int64
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				_, err := c.Get(t.Context(), "k", func(context.Context) (string, error) {
					fetched.Add(1)
					time.Sleep(10 * time.Second)
					return "", fmt.Errorf("the vault: %w", context.DeadlineExceeded)
				})
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		wait.Wait()
		if took := time.Since(began); fetched.Load() != 1 || took > 10*time.Second {
			t.Errorf("the vault was asked %d times, in %v", fetched.Load(), took)
		}
	})
}

// TestCacheForgetsWhatIsUnderWay: what was asked for before it was forgotten goes to those who wait for it, and is not kept.
func TestCacheForgetsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := encryption.NewCache(time.Minute)
		fetch := func(text string) func(context.Context) (string, error) {
			return func(context.Context) (string, error) { time.Sleep(time.Second); return text, nil }
		}
		early := make(chan string)
		go func() { early <- assert.Must[string](t)(c.Get(t.Context(), "k", fetch("old"))) }()
		synctest.Wait()
		c.Forget("k")
		if got := assert.Must[string](t)(c.Get(t.Context(), "k", fetch("new"))); got != "new" || <-early != "old" {
			t.Errorf("after it was forgotten: %q", got)
		}
		assert.Equal(t, assert.Must[string](t)(c.Get(t.Context(), "k", fetch("newest"))), "new", "what was fetched afterwards is not kept")
	})
}

// TestCacheHoldsNothingBeyondItsTime: a key that nobody asks for any more is not in memory for ever.
func TestCacheHoldsNothingBeyondItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := encryption.NewCache(time.Minute)
		fetch := func(context.Context) (string, error) { return "x", nil }
		assert.Check(t, assert.Err(c.Get(t.Context(), "a", fetch)))
		time.Sleep(30 * time.Second)
		assert.Check(t, assert.Err(c.Get(t.Context(), "b", fetch)))
		c.Forget("a")
		assert.Check(t, assert.Err(c.Get(t.Context(), "a", fetch))) // cached again: the expiry of the first does not end it
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{29 * time.Second, 2}, {2 * time.Second, 2}, {30 * time.Second, 0}} {
			time.Sleep(step.after)
			synctest.Wait()
			assert.Equal(t, c.Len(), step.want, "values held")
		}
	})
}

// TestCacheOfAPanic: whoever waits for a fetch that panics asks for himself.
func TestCacheOfAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := encryption.NewCache(time.Minute)
		go func() {
			defer func() { _ = recover() }()
			_, _ = c.Get(t.Context(), "k", func(context.Context) (string, error) { time.Sleep(time.Second); panic("a wrapper's") })
		}()
		synctest.Wait()
		if got, err := c.Get(t.Context(), "k", func(context.Context) (string, error) { return "x", nil }); got != "x" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}
