// Package pace limits how many rows a long job reads and writes in a second. The context of the job carries the limit, and package tables
// waits before each request, so the limit also covers sets that were divided, single writes and repeated reads.
package pace

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
)

// burst is the number of rows that a job may read or write at once: those of one transaction.
const burst = 100

type key struct{}

// limit is the rate limit that a context carries.
type limit struct {
	*rate.Limiter
	inChange bool // requests do not wait, since a change holds a lease; the next wait accounts for the change's rows
}

// Check returns an error for a negative RowsPerSecond; name is the name of the options in the error.
func Check(options string, rowsPerSecond int) error {
	if rowsPerSecond < 0 {
		return fmt.Errorf("%s.RowsPerSecond is %d; it must be 0 (meaning no limit) or more", options, rowsPerSecond)
	}
	return nil
}

// With returns a context under which requests read and write at most rowsPerSecond rows a second, on average; 0 adds no
// limit.
func With(ctx context.Context, rowsPerSecond int) context.Context {
	if rowsPerSecond <= 0 {
		return ctx
	}
	return context.WithValue(ctx, key{}, limit{Limiter: rate.NewLimiter(rate.Limit(rowsPerSecond), burst)})
}

// Change waits until the rate allows all rows that were taken so far, and returns a context in which requests do not wait. A wait within
// the change would consume its lease, and give other writers time to change rows between its reads and its writes.
func Change(ctx context.Context) (context.Context, error) {
	l, limited := ctx.Value(key{}).(limit)
	if !limited || l.inChange {
		return ctx, nil
	}
	if err := wait(ctx, l, 1); err != nil {
		return ctx, err
	}
	return context.WithValue(ctx, key{}, limit{l.Limiter, true}), nil
}

// Rows waits until the limit of the context allows the rows that a request is about to read or write. Under a context
// of Change it only counts the rows.
func Rows(ctx context.Context, rows int) error {
	l, limited := ctx.Value(key{}).(limit)
	switch {
	case !limited:
		return nil
	case l.inChange:
		take(l, rows)
		return nil
	}
	return wait(ctx, l, rows)
}

// Took counts rows that a request has read. It does not wait itself: the next request waits until the rate
// allows these rows.
func Took(ctx context.Context, rows int) {
	if l, limited := ctx.Value(key{}).(limit); limited {
		take(l, rows)
	}
}

// take reserves rows and returns at once. The result is how long the caller must wait before it reads or
// writes them.
func take(l limit, rows int) (delay time.Duration) {
	for now := time.Now(); rows > 0; rows -= burst {
		delay = l.ReserveN(now, min(rows, burst)).DelayFrom(now)
	}
	return delay
}

func wait(ctx context.Context, l limit, rows int) error {
	if delay := take(l, rows); delay > 0 {
		return backoff.Sleep(ctx, delay)
	}
	return nil
}
