package lease

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Bound ends a lease at a time that renewals of the message do not move. It is for objects that expire after
// a term: a reserved key, or a blob to which no row points yet. The term begins when the object is written,
// and is stored beside it. Two parties rely on it:
//
//   - The holder sends the request that uses the object (the transaction with the key, or with the pointer to
//     the blob) within the term less Margin. It measures the term by its own clock from before the write of
//     the object. Bound enforces that.
//   - The cleaner, which removes objects of dead holders, does not touch the object until Expired returns
//     true: until the term and a grace period have passed since the write, by the service's clock. It never
//     removes an object without a term because of its age.
//
// Margin allows for a holder's clock that runs slow and for a request that takes long to arrive. The grace
// period allows for service nodes whose clocks differ.
type Bound struct {
	lease *Lease
	since time.Time
	term  time.Duration // less Margin
	cause error
	timer *time.Timer // ends the lease at the bound, which cancels requests under way
}

// overdue is the cause of a lease that a bound has ended. errors.Is reports it as ErrLost.
type overdue struct{ text string }

func (e overdue) Error() string      { return e.text }
func (overdue) Is(target error) bool { return target == ErrLost }

// Bound ends the lease when term, less Margin, has passed since the time since, unless the bound is moved or
// lifted before: no request is sent after that. cause is the text of the error: what was not done in time,
// and what the caller should do.
func (l *Lease) Bound(since time.Time, term time.Duration, cause string) *Bound {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := term - Margin(term)
	b := &Bound{lease: l, since: since, term: held, cause: overdue{fmt.Sprintf("%v have passed: %s", held, cause)}}
	l.bounds = append(l.bounds, b)
	b.timer = time.AfterFunc(b.left(), b.pass)
	return b
}

// Within returns a context that ends when term, less Margin, has passed since the time since; no request is sent under it
// after that. It is for requests without a lease. done ends the context at once.
func Within(ctx context.Context, since time.Time, term time.Duration, cause string) (_ context.Context, done func()) {
	l := New(ctx, since, 2*term) // the bound below ends the lease earlier
	l.Bound(since, term, cause)
	return l.Context(ctx), func() { l.End(context.Canceled) }
}

// FormatTerm formats a term in whole seconds, as it is stored. It rounds up, so a cleaner never waits for less time than the
// holder has.
func FormatTerm(term time.Duration) string {
	return strconv.FormatInt(int64((term+time.Second-1)/time.Second), 10)
}

// ParseTerm parses a term that FormatTerm wrote. For any other text it returns 0, and Expired then returns false.
func ParseTerm(text string) time.Duration {
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// Expired reports whether a cleaner may remove an object that was written with a term. Then no holder sends
// requests that use the object any more, and all requests that were sent have arrived. Both times are the
// service's: written is the time of the write, and now the time of the response that showed it. Expired
// returns false if either is unknown or the term is not positive.
func Expired(written, now time.Time, term time.Duration) bool {
	if written.IsZero() || now.IsZero() || term <= 0 {
		return false
	}
	age := now.Sub(written)
	return age > term && age-term >= Margin(term)
}

// Move lets the bound's term begin at since. It has no effect on a lease that has ended.
func (b *Bound) Move(since time.Time) {
	b.lease.mu.Lock()
	defer b.lease.mu.Unlock()
	b.since = since
	if b.lease.over == nil {
		b.timer.Reset(b.left())
	}
}

// left returns how long requests may still be sent.
func (b *Bound) left() time.Duration { return b.term - Elapsed(b.since) }

// The timer calls pass. It ends the lease if the bound has passed; if the bound was moved, it sets the timer
// again.
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

// Lift removes the bound. It may be called more than once.
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

// overdue returns the cause of a bound of the lease that has passed, or nil.
func (l *Lease) overdue() error {
	for _, b := range l.bounds {
		if b.left() <= 0 && l.waived&Terms == 0 {
			return b.cause
		}
	}
	return nil
}
