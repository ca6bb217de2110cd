// Package lease is the right to act for one queue message while no other process can have it.
//
// Whoever puts a message that is hidden at first, or gets one, holds it: until its visibility timeout runs out, nobody else
// sees it. What the holder sends for the message must arrive before that, or it could undo what the next holder does.
// So each request that is sent for a message carries the lease in its context, and Policy, which stands in the pipeline of
// every client of an Account, lets it go out only while the lease surely lasts: measured from before the message was put or
// got, by the holder's own clock, less a margin for requests under way.
//
// What is assumed of clocks: within one visibility timeout the holder's clock does not run slower than the service's by
// more than the margin, a request that was sent arrives within the margin or never, and a process that stands still
// between the check and the sending does so for less than the margin. A process that stands still anywhere else is no danger.
package lease

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// ErrLost is the cause of a context whose lease has ended, and the error of a request that came too late.
var ErrLost = errors.New("the message's visibility timeout has expired, and another process may hold the message")

// marginShare: the margin is the visibility timeout divided by it.
const marginShare = 6

// Margin is what of a visibility timeout is kept for requests under way.
func Margin(visibility time.Duration) time.Duration { return visibility / marginShare }

// Lease is the right to act for one message. It is safe for concurrent use.
type Lease struct {
	parent *Lease // of the message for which this one was put, nil for none

	mu      sync.Mutex
	since   time.Time // before the request that hid the message was sent
	term    time.Duration
	over    error // why it ended, nil while it lasts
	unsure  bool
	timer   *time.Timer
	cancels []context.CancelCauseFunc
	waived  Rules
	bounds  []*Bound
}

// New begins a lease of a message that was hidden for visibility by a request sent after since.
func New(ctx context.Context, since time.Time, visibility time.Duration) *Lease {
	l := &Lease{parent: From(ctx), waived: waived(ctx)}
	l.Extend(since, visibility)
	return l
}

// Extend renews the lease after a request, sent after since, that hides the message for visibility from then on.
func (l *Lease) Extend(since time.Time, visibility time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return
	}
	l.since, l.term = since, visibility-Margin(visibility)
	if l.waived&Expiry != 0 {
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(l.left(), l.expire)
		return
	}
	l.timer.Reset(l.left())
}

// left is how long requests may still be sent.
func (l *Lease) left() time.Duration { return l.term - Elapsed(l.since) }

// Elapsed is how much time has passed since. The monotonic clock may stand still while a machine sleeps, and the wall
// clock may be set back; the longer of the two says how much has surely passed.
func Elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// expire runs when the term may have ended.
func (l *Lease) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return
	}
	if left := l.left(); left > 0 {
		l.timer.Reset(left)
		return
	}
	l.end(ErrLost)
}

// End ends the lease: nothing more is sent under it. The first cause counts.
func (l *Lease) End(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(cause)
}

func (l *Lease) end(cause error) {
	if l.over != nil {
		return
	}
	l.over = cause
	if l.timer != nil {
		l.timer.Stop()
	}
	for _, b := range l.bounds {
		b.timer.Stop()
	}
	for _, cancel := range l.cancels {
		cancel(cause)
	}
	l.cancels = nil
}

// Check returns nil while a request may be sent: for this message, and for the one that it was put for.
func (l *Lease) Check() error {
	if l.parent != nil {
		if err := l.parent.Check(); err != nil {
			l.End(err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if late := l.overdue(); late != nil {
		l.end(late)
	}
	if l.waived&Expiry == 0 && l.left() <= 0 {
		l.end(ErrLost)
	}
	return l.over
}

// Unsure reports whether a request under the lease has no certain answer: it may still arrive. The message is not to be
// deleted or shown then before its visibility timeout has run out, since the next holder would not see what arrives late.
func (l *Lease) Unsure() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsure
}

func (l *Lease) doubt() {
	if l.parent != nil {
		l.parent.doubt()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsure = true
}

type leaseKey struct{}

// Context returns a context that ends with the lease, or with parent, and under which every request is checked.
func (l *Lease) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, leaseKey{}, l))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		cancel(l.over)
		return ctx
	}
	l.cancels = append(l.cancels, cancel)
	return ctx
}

// From returns the lease of a context, nil when there is none.
func From(ctx context.Context) *Lease {
	l, _ := ctx.Value(leaseKey{}).(*Lease)
	return l
}

// Policy is for ClientOptions.PerRetryPolicies: it checks each attempt that is made under a lease.
type Policy struct{}

// Do sends the request while its lease lasts.
func (Policy) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	l := From(raw.Context())
	if l == nil {
		return req.Next()
	}
	if err := l.Check(); err != nil {
		return nil, wire.NotSent{Err: err}
	}
	if raw.Body != nil && raw.Body != http.NoBody {
		a := &attempt{lease: l, size: raw.ContentLength}
		raw.Body = a.guard(raw.Body)
		if get := raw.GetBody; get != nil { // a transport calls it to send the request on another connection
			defer func() { raw.GetBody = get }()
			raw.GetBody = func() (io.ReadCloser, error) {
				again, err := get()
				if err != nil {
					return nil, err
				}
				return a.guard(again), nil
			}
		}
	}
	resp, err := req.Next()
	if m := raw.Method; m != http.MethodGet && m != http.MethodHead && wire.OutcomeOf(resp, err) == wire.OutcomeUnknown {
		l.doubt()
	}
	return resp, err
}

// attempt is one attempt at a request that has a body.
type attempt struct {
	lease *Lease
	size  int64       // of the body, not known if it is less than 1
	whole atomic.Bool // the transport got a whole body, so the service may have the request
}

// guard returns a body that checks the attempt's lease as the transport reads it.
func (a *attempt) guard(content io.ReadCloser) *body {
	return &body{ReadCloser: content, attempt: a, left: a.size}
}

// body cuts a request off when its lease ends while the transport reads it: a process can be held up between the check and the
// sending, and a request can wait for a connection.
type body struct {
	io.ReadCloser
	attempt *attempt
	left    int64 // bytes that the transport has not got yet, if the size is known
	done    bool  // the transport has got all
}

// Read checks the lease until the transport has got the whole body. After that the service may have the request, and an
// error would be a false report that it was not sent: net/http reads on after the last byte, to see that nothing follows.
func (b *body) Read(p []byte) (int, error) {
	if b.done {
		return b.ReadCloser.Read(p)
	}
	if err := b.attempt.lease.Check(); err != nil {
		if b.attempt.whole.Load() {
			return 0, err // an earlier body of the attempt may have arrived
		}
		return 0, wire.NotSent{Err: err}
	}
	n, err := b.ReadCloser.Read(p)
	if b.attempt.size > 0 {
		b.left -= int64(n)
		b.done = b.left <= 0
	} else {
		b.done = err == io.EOF // the transport sends the end of a body of unknown length when it has read EOF
	}
	if b.done {
		b.attempt.whole.Store(true)
	}
	return n, err
}

// Rules are what keeps messages that name the same keys from undoing each other's work.
type Rules uint8

// The rules.
const (
	Expiry  Rules = 1 << iota // nothing is sent once the lease may have run out
	OwnKeys                   // a holder writes only what its message names
	Reread                    // a message is deleted only after a round in which the entity stayed the same
	Terms                     // a holder sends nothing once a bound of its lease has passed, and a cleaner waits for the term
)

type waivedKey struct{}

// Waive returns a context in which rules do not hold. It is for tests that show what each rule is for.
func Waive(ctx context.Context, rules Rules) context.Context {
	return context.WithValue(ctx, waivedKey{}, rules)
}

func waived(ctx context.Context) Rules {
	rules, _ := ctx.Value(waivedKey{}).(Rules)
	return rules
}

// Holds reports whether a rule holds in ctx.
func Holds(ctx context.Context, rule Rules) bool { return waived(ctx)&rule == 0 }

// Lost reports whether err, or the end of ctx, comes from a lease that has ended.
func Lost(ctx context.Context, err error) bool {
	return errors.Is(err, ErrLost) || errors.Is(context.Cause(ctx), ErrLost)
}
