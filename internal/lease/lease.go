// Package lease implements the right to act for a queue message while no other process can hold it.
//
// A process holds a message from the moment it puts the message hidden, or gets it, until the visibility timeout ends.
// During that time no other process sees the message. A request of the holder that arrives later could undo what the
// next holder has done. So each request that is sent for a message carries the lease in its context. Policy, which is
// in the pipeline of every client of an Account, sends the request only while the lease is certain to be valid. That
// time is the visibility timeout less Margin, measured by the holder's own clock from before it put or got the message.
//
// This assumes that, within one visibility timeout, the holder's clock loses less than Margin against the service's clock;
// that a request arrives within Margin after it was sent, or never; and that a process does not pause for longer than Margin
// between the check and the sending. A pause at any other point does no harm.
package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// ErrLost is the cause of a context whose lease has ended, and the error of a request that was not sent
// because the lease had ended.
var ErrLost = errors.New("the lease is lost: the message's visibility timeout has expired, and another worker may process the message")

// marginShare is the visibility timeout divided by Margin.
const marginShare = 6

// Margin returns the part of a visibility timeout that is reserved for requests under way, a sixth of the timeout.
func Margin(visibility time.Duration) time.Duration { return visibility / marginShare }

// Lease is the right to act for one message. It is safe for concurrent use.
type Lease struct {
	parent *Lease // the lease of the message for which this one was put, or nil

	mu      sync.Mutex
	since   time.Time // a time before the request that hid the message was sent
	term    time.Duration
	late    error // the cause of its end if it expires
	over    error // why the lease ended; nil while it is valid
	unsure  bool
	timer   *time.Timer
	cancels []context.CancelCauseFunc
	waived  Rules
	bounds  []*Bound
}

// New returns the lease of a message that was hidden for visibility by a request sent after since.
func New(ctx context.Context, since time.Time, visibility time.Duration) *Lease {
	l := &Lease{parent: From(ctx), waived: waived(ctx), late: ErrLost}
	l.Extend(since, visibility)
	return l
}

// Extend renews the lease after a request, sent after since, that hides the message for visibility. It has no effect on a
// lease that has ended.
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

// Bounded returns a context with a lease that ends only with its Bounds, or with the lease of ctx. done ends it.
func Bounded(ctx context.Context) (_ context.Context, done func()) {
	l := &Lease{parent: From(ctx), waived: waived(ctx) | Expiry}
	return l.Context(ctx), func() { l.End(context.Canceled) }
}

// left returns how long requests may still be sent.
func (l *Lease) left() time.Duration { return l.term - Elapsed(l.since) }

// Elapsed returns how much time has passed since a time, by the monotonic or the wall clock, whichever shows more: the
// monotonic clock may stop while a machine sleeps, and the wall clock may be set back.
func Elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// The timer calls expire. It ends the lease if it has expired; if it was renewed, it sets the timer again.
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
	l.end(l.late)
}

// End ends the lease: no request is sent under it after that. If End is called again, the first cause remains.
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

// Check returns nil if a request may be sent: if this lease is valid, and so is its parent, the lease of the message
// for which this lease's message was put.
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
		l.end(l.late)
	}
	return l.over
}

// Unsure reports whether a request under the lease has an unknown outcome, so that it may still arrive. Then the message must
// not be deleted or made visible before its visibility timeout ends, because the next holder could not see the effect of a
// request that arrives later.
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

// Context returns a context that ends with the lease or with parent. Policy checks every request under it.
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

// From returns the lease of a context, or nil.
func From(ctx context.Context) *Lease {
	l, _ := ctx.Value(leaseKey{}).(*Lease)
	return l
}

// Policy checks the lease before each attempt of a request. It is the last in ClientOptions.PerRetryPolicies: it does what wire.Sender does,
// since the SDK copies the request for each policy.
type Policy struct{}

// Do sends the request if its context has no lease or the lease is valid. Otherwise it returns wire.NotSent with the
// cause.
func (Policy) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	l := From(raw.Context())
	if l == nil {
		return wire.Sender{}.Do(req)
	}
	if err := l.Check(); err != nil {
		return nil, wire.NotSent{Err: err}
	}
	if raw.Body != nil && raw.Body != http.NoBody {
		a := &attempt{lease: l, size: raw.ContentLength}
		raw.Body = a.guard(raw.Body)
		if get := raw.GetBody; get != nil { // the transport calls GetBody to send the body again on another connection
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
	resp, err := wire.Sender{}.Do(req)
	if m := raw.Method; m != http.MethodGet && m != http.MethodHead && wire.OutcomeOf(resp, err) == wire.OutcomeUnknown {
		l.doubt()
	}
	return resp, err
}

// attempt is one attempt of a request that has a body.
type attempt struct {
	lease *Lease
	size  int64       // size of the body in bytes; unknown if less than 1
	whole atomic.Bool // the transport has read a whole body, so the service may have the request
}

// guard returns a body that checks the attempt's lease whenever the transport reads from it.
func (a *attempt) guard(content io.ReadCloser) *body {
	return &body{ReadCloser: content, attempt: a, left: a.size}
}

// body fails when its lease ends while the transport reads it. Policy's check alone is not enough: the
// process can pause between the check and the sending, and a request can wait for a connection.
type body struct {
	io.ReadCloser
	attempt *attempt
	left    int64 // bytes that the transport has not read yet, if the size is known
	done    bool  // the transport has read all
}

// Read checks the lease until the transport has read the whole body. After that it returns no error of the
// lease, because the service may already have the request, and an error would mark it as not sent. net/http
// reads once more after the last byte, to detect further bytes.
func (b *body) Read(p []byte) (int, error) {
	if b.done {
		return b.ReadCloser.Read(p)
	}
	if err := b.attempt.lease.Check(); err != nil {
		if b.attempt.whole.Load() {
			return 0, err // an earlier body of this attempt may have arrived, so do not mark it as not sent
		}
		return 0, wire.NotSent{Err: err}
	}
	n, err := b.ReadCloser.Read(p)
	if b.attempt.size > 0 {
		b.left -= int64(n)
		b.done = b.left <= 0
	} else {
		b.done = err == io.EOF // without a known size, the transport completes the request when it reads EOF
	}
	if b.done {
		b.attempt.whole.Store(true)
	}
	return n, err
}

// Rules are the rules by which the holders of several messages that name the same keys do not undo each
// other's work.
type Rules uint8

// The rules.
const (
	Expiry  Rules = 1 << iota // no request is sent after the lease may have expired
	OwnKeys                   // a holder writes only the keys that its message names
	Reread                    // a message is deleted only if the entity, read again, has not changed
	Terms                     // no request is sent after a Bound has passed, and a cleaner removes an object only if Expired returns true (see Bound)
)

type waivedKey struct{}

// Waive returns a context in which the rules do not apply. It is for tests that show what goes wrong without each rule.
func Waive(ctx context.Context, rules Rules) context.Context {
	return context.WithValue(ctx, waivedKey{}, rules)
}

func waived(ctx context.Context) Rules {
	rules, _ := ctx.Value(waivedKey{}).(Rules)
	return rules
}

// Holds reports whether a rule applies in ctx.
func Holds(ctx context.Context, rule Rules) bool { return waived(ctx)&rule == 0 }

// Lost reports whether err, or the end of ctx, comes from a lease that has ended.
func Lost(ctx context.Context, err error) bool {
	return errors.Is(err, ErrLost) || errors.Is(context.Cause(ctx), ErrLost)
}

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

// overdue is the cause of a lease whose term, or one of whose bounds, has passed. errors.Is reports it as ErrLost.
type overdue struct {
	after time.Duration
	text  string
}

func (e overdue) Error() string      { return fmt.Sprintf("%v have passed: %s", e.after, e.text) }
func (overdue) Is(target error) bool { return target == ErrLost }

// Bound ends the lease when term, less Margin, has passed since the time since, unless the bound is moved
// before: no request is sent after that. cause is the text of the error: what was not done in time,
// and what the caller should do.
func (l *Lease) Bound(since time.Time, term time.Duration, cause string) *Bound {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &Bound{lease: l, since: since, term: term - Margin(term), cause: overdue{term - Margin(term), cause}}
	l.bounds = append(l.bounds, b)
	b.timer = time.AfterFunc(b.left(), b.pass)
	return b
}

// Term limits requests that use an object that expires, whether or not they have a lease. The zero value sets no limit.
type Term struct {
	Since time.Time // before the write of the object
	Lasts time.Duration
	Cause string // as the cause of a Bound
}

// Context returns a context that ends when the term, less Margin, has passed; no request is sent under it after that. done ends the
// context at once.
func (t Term) Context(ctx context.Context) (_ context.Context, done func()) {
	if t.Since.IsZero() {
		return ctx, func() {}
	}
	l := &Lease{parent: From(ctx), waived: waived(ctx), late: overdue{t.Lasts - Margin(t.Lasts), t.Cause}}
	if l.waived&Terms != 0 {
		l.waived |= Expiry
	}
	l.Extend(t.Since, t.Lasts)
	return l.Context(ctx), func() { l.End(context.Canceled) }
}

// Free returns a context without the lease and the end of ctx, for requests that are right whenever they arrive.
func Free(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), leaseKey{}, (*Lease)(nil))
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

// Expired reports whether a cleaner may remove an object that was written with a term. Then no holder sends requests
// that use the object any more, and all requests that were sent have arrived. Both times are the service's: written is
// the time of the write, and now the time of the response that contained the object. Expired returns false if either is
// unknown or the term is not positive.
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

// pass is called by the timer. If the bound was moved, pass sets the timer again; otherwise it ends the lease.
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

// overdue returns the cause of a bound of the lease that has passed, or nil.
func (l *Lease) overdue() error {
	for _, b := range l.bounds {
		if b.left() <= 0 && l.waived&Terms == 0 {
			return b.cause
		}
	}
	return nil
}
