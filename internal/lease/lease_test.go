package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

const visible = time.Minute

// term is how long requests are sent for a message that is hidden for visible.
const term = visible - visible/marginShare

// wantLasting fails unless requests may be sent.
func wantLasting(t *testing.T, ctx context.Context, l *Lease) {
	t.Helper()
	synctest.Wait()
	if err := l.Check(); err != nil || ctx.Err() != nil {
		t.Fatalf("the lease has ended: %v, context %v", err, context.Cause(ctx))
	}
}

// wantEnded fails unless the lease has ended, for that cause.
func wantEnded(t *testing.T, ctx context.Context, l *Lease, cause error) {
	t.Helper()
	synctest.Wait()
	if err := l.Check(); err != cause || context.Cause(ctx) != cause {
		t.Fatalf("the lease has ended for %v, its context for %v, and it should be %v", err, context.Cause(ctx), cause)
	}
}

// TestTerm: requests are sent until the margin before the message can be seen, counted from before it was hidden.
func TestTerm(t *testing.T) {
	for name, under := range map[string]time.Duration{"at once": 0, "an answer that took its time": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				since := time.Now()
				time.Sleep(under)
				l := New(t.Context(), since, visible)
				ctx := l.Context(t.Context())
				time.Sleep(term - under - time.Nanosecond)
				wantLasting(t, ctx, l)
				time.Sleep(time.Nanosecond)
				wantEnded(t, ctx, l, ErrLost)
				if !Lost(ctx, nil) || !Lost(t.Context(), l.Check()) || Lost(t.Context(), errors.New("another")) {
					t.Error("Lost does not tell")
				}
				wantEnded(t, l.Context(t.Context()), l, ErrLost) // also a context that comes later
			})
		})
	}
}

// TestAnswerAfterTheTerm: a message whose put was answered too late is nobody's.
func TestAnswerAfterTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since := time.Now()
		time.Sleep(term)
		l := New(t.Context(), since, visible)
		wantEnded(t, l.Context(t.Context()), l, ErrLost)
	})
}

// TestExtend: after a renewal, the term counts from before the renewal was sent.
func TestExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(t.Context(), time.Now(), visible)
		ctx := l.Context(t.Context())
		for range 5 {
			time.Sleep(visible / 3)
			since := time.Now()
			time.Sleep(10 * time.Second) // under way
			l.Extend(since, visible)
			wantLasting(t, ctx, l)
		}
		time.Sleep(term - 10*time.Second - time.Nanosecond)
		wantLasting(t, ctx, l)
		time.Sleep(time.Nanosecond)
		wantEnded(t, ctx, l, ErrLost)
		l.Extend(time.Now(), visible)
		wantEnded(t, ctx, l, ErrLost) // what has ended does not begin again
	})
}

// TestExtendToLess: a renewal that hides a message for a shorter time ends earlier.
func TestExtendToLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(t.Context(), time.Now(), time.Hour)
		ctx := l.Context(t.Context())
		l.Extend(time.Now(), visible)
		time.Sleep(term)
		wantEnded(t, ctx, l, ErrLost)
	})
}

// TestEnd: the first cause counts, for all contexts, and their parents' end is theirs.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		l := New(t.Context(), time.Now(), visible)
		a, b := l.Context(parent), l.Context(t.Context())
		if From(a) != l || From(b) != l || From(t.Context()) != nil {
			t.Fatal("From does not find the lease")
		}
		cancel()
		synctest.Wait()
		if a.Err() == nil {
			t.Fatal("a context outlives its parent")
		}
		wantLasting(t, b, l)
		done := errors.New("done")
		l.End(done)
		l.End(errors.New("done again"))
		wantEnded(t, b, l, done)
		if Lost(b, nil) {
			t.Error("a lease that was given up is not lost")
		}
		time.Sleep(2 * visible)
		wantEnded(t, b, l, done)
	})
}

// TestLeaseUnderALease: a message that is put for another one is held no longer than that one, and its doubts are that
// one's.
func TestLeaseUnderALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := New(t.Context(), time.Now(), visible)
		time.Sleep(visible / 2)
		inner := New(outer.Context(t.Context()), time.Now(), visible)
		ctx := inner.Context(context.WithoutCancel(outer.Context(t.Context())))
		wantLasting(t, ctx, inner)
		inner.doubt()
		if !inner.Unsure() || !outer.Unsure() {
			t.Error("the outer message could be deleted, though something is under way for it")
		}
		time.Sleep(term - visible/2)
		synctest.Wait()
		if inner.Check() != ErrLost || context.Cause(ctx) != ErrLost {
			t.Errorf("the inner lease outlives the outer: %v, %v", inner.Check(), context.Cause(ctx))
		}
	})
	outer := New(t.Context(), time.Now(), visible)
	inner := New(outer.Context(t.Context()), time.Now(), visible)
	outer.doubt()
	if inner.Unsure() {
		t.Error("what is under way for the outer message is no doubt of the inner's")
	}
}

// TestWaive: without Expiry a lease lasts, and its holder can still end it.
func TestWaive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiving := Waive(t.Context(), Expiry|Reread)
		if Holds(waiving, Expiry) || Holds(waiving, Reread) || !Holds(waiving, OwnKeys) || !Holds(t.Context(), Expiry|OwnKeys|Reread) {
			t.Error("Holds does not tell")
		}
		l := New(waiving, time.Now(), visible)
		ctx := l.Context(waiving)
		time.Sleep(10 * visible)
		wantLasting(t, ctx, l)
		l.End(ErrLost)
		wantEnded(t, ctx, l, ErrLost)
	})
}

// shiftWall returns a time whose wall clock says d more, and whose monotonic clock says the same. There is no other way
// to come by one than to set the machine's clock.
func shiftWall(t *testing.T, at time.Time, d time.Duration) time.Time {
	t.Helper()
	shifted := at
	// The first word has a flag, 33 bits of seconds and 30 of nanoseconds.
	(*struct{ wall uint64 })(unsafe.Pointer(&shifted)).wall += uint64(d/time.Second) << 30
	if shifted.Sub(at) != 0 || shifted.Round(0).Sub(at.Round(0)) != d {
		t.Fatalf("package time keeps its clocks in another way: %v and %v", shifted.Sub(at), shifted.Round(0).Sub(at.Round(0)))
	}
	return shifted
}

// TestClocks: the clock that says that more time has passed is believed. The monotonic one may stand still while a machine
// sleeps; the wall clock may be set back, and then nothing is lost; where it is set forward, the lease ends early, and the
// message is the next holder's.
func TestClocks(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		since time.Time
		left  time.Duration
	}{
		"no time":                     {now, term},
		"asleep":                      {shiftWall(t, now, -20*time.Second), term - 20*time.Second},
		"asleep for long":             {shiftWall(t, now, -time.Hour), term - time.Hour},
		"set back":                    {shiftWall(t, now, time.Hour), term},
		"set back meanwhile":          {shiftWall(t, now.Add(-20*time.Second), time.Hour), term - 20*time.Second},
		"no monotonic clock":          {now.Round(0).Add(-20 * time.Second), term - 20*time.Second},
		"both, and asleep for longer": {shiftWall(t, now.Add(-10*time.Second), -20*time.Second), term - 30*time.Second},
	} {
		l := New(t.Context(), tc.since, visible)
		l.mu.Lock()
		left := l.left()
		l.mu.Unlock()
		if left > tc.left || left < tc.left-5*time.Second {
			t.Errorf("%s: %v left, want %v", name, left, tc.left)
		}
		if over := l.Check(); (over != nil) != (tc.left <= 0) {
			t.Errorf("%s: %v", name, over)
		}
		l.End(nil)
	}
}
