package lease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestBound: a bound ends a lease that is renewed all the time, unless it is moved.
func TestBound(t *testing.T) {
	for name, tc := range map[string]struct {
		each func(*Bound)
		ends bool
	}{
		"left alone": {func(*Bound) {}, true},
		"moved":      {func(b *Bound) { b.Move(time.Now()) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := New(t.Context(), time.Now(), visible)
				l.Bound(time.Now(), time.Hour, "far")
				b := l.Bound(time.Now(), 2*visible, "near")
				for range 5 {
					time.Sleep(visible / 2)
					l.Extend(time.Now(), visible)
					tc.each(b)
				}
				over := l.Check()
				if errors.Is(over, ErrLost) != tc.ends || tc.ends && !strings.Contains(over.Error(), "near") {
					t.Errorf("after the bound the lease says %v", over)
				}
				l.End(nil)
			})
		})
	}
}

// TestBoundHasAMargin: the holder stops a margin before the end of the term, and the cleaner waits a grace longer than the term.
func TestBoundHasAMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(t.Context(), time.Now(), 24*time.Hour)
		ctx := l.Context(t.Context())
		began := time.Now()
		l.Bound(began, time.Hour, "the write was too slow")
		time.Sleep(50*time.Minute - time.Nanosecond)
		wantLasting(t, ctx, l)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if context.Cause(ctx) == nil {
			t.Error("a request that is under way when the bound passes is not given up")
		}
		if err := l.Check(); !errors.Is(err, ErrLost) || context.Cause(ctx) != err || !Lost(ctx, nil) || !strings.Contains(err.Error(), "50m0s") {
			t.Errorf("%v, and the context ends for %v", err, context.Cause(ctx))
		}
		for after, want := range map[time.Duration]bool{0: false, time.Hour: false, 70*time.Minute - 1: false, 70 * time.Minute: true} {
			if Expired(began, began.Add(after), time.Hour) != want {
				t.Errorf("%v after the write, Expired is %v", after, !want)
			}
		}
	})
}

// TestExpired: what has no term, or times that are not known, does not expire.
func TestExpired(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		written, now time.Time
		term         time.Duration
	}{{now.Add(-time.Hour), now, 0}, {now.Add(-time.Hour), now, -time.Second}, {time.Time{}, now, time.Second}, {now, time.Time{}, time.Second},
		{now.Add(time.Hour), now, time.Second}, {now.Add(-time.Hour), now, 1<<63 - 1}} {
		if Expired(tc.written, tc.now, tc.term) {
			t.Errorf("%v has expired", tc)
		}
	}
}

// TestBoundWaived: without the rule, a bound ends nothing.
func TestBoundWaived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Waive(t.Context(), Terms), time.Now(), time.Hour)
		l.Bound(time.Now(), time.Second, "")
		time.Sleep(time.Minute)
		wantLasting(t, l.Context(t.Context()), l)
		l.End(nil)
	})
}
