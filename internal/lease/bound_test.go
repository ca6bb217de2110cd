package lease

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBound: a bound ends a lease that is renewed all the time, unless it is moved or lifted.
func TestBound(t *testing.T) {
	for name, tc := range map[string]struct {
		each func(*Bound)
		ends bool
	}{
		"left alone": {func(*Bound) {}, true},
		"moved":      {func(b *Bound) { b.Move(time.Now()) }, false},
		"lifted":     {func(b *Bound) { b.Lift() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := New(t.Context(), time.Now(), visible)
				far := l.Bound(time.Now(), time.Hour)
				b := l.Bound(time.Now(), 2*visible)
				for range 5 {
					time.Sleep(visible / 2)
					l.Extend(time.Now(), visible)
					tc.each(b)
				}
				if over := l.Check(); (over == ErrLost) != tc.ends {
					t.Errorf("after the bound the lease says %v", over)
				}
				far.Lift()
				l.End(nil)
			})
		})
	}
}
