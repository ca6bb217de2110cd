package lease

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Bound ends a lease at a time that renewals of the message do not move. It is the holder's half of a rule between whoever holds
// something under a lease and whoever cleans up after dead holders: a reserved key, or a blob that nothing points at yet, has a
// term. It begins with the write of what is held, and is stored there.
//
//   - The holder sends the request that comes to depend on it within the term less a margin, by its own clock, which it started
//     before that write. Bound sees to that.
//   - The cleaner leaves it alone until Expired: until the term and a grace have passed since that write, by the service's clock.
//     What has no term is never removed for its age.
//
// The margin is for what Policy's is: a clock that runs slow, and a request that is under way for long. The grace is for service
// nodes whose clocks differ.
type Bound struct {
	lease *Lease
	since time.Time
	term  time.Duration // less the margin
	cause error
	timer *time.Timer // ends the lease when the bound passes, and with it requests that are under way for too long
}

// overdue is the cause of a lease that a bound has ended. errors.Is says that it is ErrLost.
type overdue struct{ text string }

func (e overdue) Error() string      { return e.text }
func (overdue) Is(target error) bool { return target == ErrLost }

// Bound lets nothing be sent under the lease once term, less its margin, has passed since, unless the bound is moved or lifted
// before. cause says what was not done in time, and what to do.
func (l *Lease) Bound(since time.Time, term time.Duration, cause string) *Bound {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := term - Margin(term)
	b := &Bound{lease: l, since: since, term: held, cause: overdue{fmt.Sprintf("%v are over: %s", held, cause)}}
	l.bounds = append(l.bounds, b)
	b.timer = time.AfterFunc(b.left(), b.pass)
	return b
}

// Within returns a context under which nothing is sent once term, less its margin, has passed since: a bound for requests that are
// sent under no lease of their own. done ends it.
func Within(ctx context.Context, since time.Time, term time.Duration, cause string) (_ context.Context, done func()) {
	l := New(ctx, since, 2*term) // the bound ends it before
	l.Bound(since, term, cause)
	return l.Context(ctx), func() { l.End(context.Canceled) }
}

// FormatTerm writes a term in whole seconds, as it is stored beside what has it. It rounds up: a cleaner waits no less than the
// holder.
func FormatTerm(term time.Duration) string {
	return strconv.FormatInt(int64((term+time.Second-1)/time.Second), 10)
}

// ParseTerm reads a term that FormatTerm wrote. For any other text it returns 0, and Expired then never reports true.
func ParseTerm(text string) time.Duration {
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// Expired reports whether a cleaner may remove what was written with a term: no holder sends anything any more that comes to
// depend on it, and what was sent has arrived. Both times are the service's: of the write, and of the answer that showed what
// was written. It is false where one of them is not known, or the term makes no sense.
func Expired(written, now time.Time, term time.Duration) bool {
	if written.IsZero() || now.IsZero() || term <= 0 {
		return false
	}
	age := now.Sub(written)
	return age > term && age-term >= Margin(term)
}

// Move lets the bound's term count from since. It has no effect on a lease that has ended.
func (b *Bound) Move(since time.Time) {
	b.lease.mu.Lock()
	defer b.lease.mu.Unlock()
	b.since = since
	if b.lease.over == nil {
		b.timer.Reset(b.left())
	}
}

// left is how long requests may still be sent.
func (b *Bound) left() time.Duration { return b.term - Elapsed(b.since) }

// pass runs when the bound may have passed.
func (b *Bound) pass() {
	b.lease.mu.Lock()
	defer b.lease.mu.Unlock()
	if left := b.left(); left > 0 && b.lease.over == nil {
		b.timer.Reset(left)
		return
	}
	if late := b.lease.overdue(); late != nil {
		b.lease.end(late)
	}
}

// Lift takes the bound away, and may be called more than once.
func (b *Bound) Lift() {
	b.lease.mu.Lock()
	defer b.lease.mu.Unlock()
	for i, other := range b.lease.bounds {
		if other == b {
			b.timer.Stop()
			b.lease.bounds = append(b.lease.bounds[:i:i], b.lease.bounds[i+1:]...)
			return
		}
	}
}

// overdue returns the cause of the first of the lease's bounds that has passed, nil for none.
func (l *Lease) overdue() error {
	for _, b := range l.bounds {
		if b.left() <= 0 && l.waived&Terms == 0 {
			return b.cause
		}
	}
	return nil
}
