package pace

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// TestRows: several workers take no more rows than the limit and one burst, whatever the sizes, on a clock of their own.
func TestRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, began := With(t.Context(), 50), time.Now()
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for _, n := range []int{1, 100, 99, 1000} {
					assert.NoError(t, Rows(ctx, n))
				}
			})
		}
		workers.Wait()
		if took := time.Since(began); took < 94*time.Second || took > 95*time.Second { // 4,800 rows, 100 of them at once
			t.Errorf("it took %v", took)
		}
	})
}

// TestChange: within a change nothing waits, and what follows waits for its rows.
func TestChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, began := With(t.Context(), 10), time.Now()
		change, err := Change(ctx)
		if err != nil || Rows(change, 500) != nil || time.Since(began) != 0 {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		Took(ctx, 99)
		if _, err := Change(ctx); err != nil || time.Since(began).Round(time.Second) != 50*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ending, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		assert.ErrorIs(t, Rows(ending, 100), context.DeadlineExceeded)
	})
}
