// Package backoff computes how long the library waits before a retry: exponential, bounded, with full jitter, so that concurrent writers do
// not retry at the same moment.
package backoff

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"
)

const (
	first = 5 * time.Millisecond
	most  = time.Second
)

// Delay returns how long to wait before attempt n; attempt 0 is the first repetition.
func Delay(n int) time.Duration {
	limit := most
	if n < 8 {
		limit = min(most, first<<n)
	}
	return Jitter(limit) + time.Millisecond
}

// Jitter returns a random duration below limit. It is drawn from crypto/rand, which tests can seed.
func Jitter(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	var random [8]byte
	rand.Read(random[:]) // never fails: it ends the program instead
	return time.Duration(binary.LittleEndian.Uint64(random[:]) % uint64(limit))
}

// Wait waits before attempt n, or returns the context's error if the context ends earlier.
func Wait(ctx context.Context, n int) error { return Sleep(ctx, Delay(n)) }

// Retry calls try. While try returns again as true, Retry waits and calls it again, up to the given number of
// attempts. It returns the last error of try, or the context's error if that ends a wait.
func Retry(ctx context.Context, attempts int, try func() (again bool, err error)) error {
	for n := 0; ; n++ {
		again, err := try()
		if !again || n+1 >= attempts {
			return err
		}
		if err := Wait(ctx, n); err != nil {
			return err
		}
	}
}

// Sleep waits for d, or returns the context's error if the context ends earlier.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
