package access

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// DefaultCapacity is the default of IssuerOptions.Capacity.
	DefaultCapacity = 10_000
	// DefaultMaxAge is the default of IssuerOptions.MaxAge for a token whose expiry its policy sets.
	DefaultMaxAge = 15 * time.Minute
	// DefaultTimeout is the default of IssuerOptions.Timeout.
	DefaultTimeout = 30 * time.Second
)

// IssuerOptions are the options of NewIssuer; nil is the same as the zero value.
type IssuerOptions struct {
	// RenewBefore is the least remaining lifetime of a cached token (default a quarter of its lifetime). Tokens that live no longer are not cached.
	RenewBefore time.Duration
	// MaxAge is how long a cached token is handed out before grants is called again, and so how outdated a user's rights can be unless grants
	// fails. The default is until RenewBefore, or DefaultMaxAge (15 minutes) for a token without an expiry of its own.
	MaxAge time.Duration
	// Capacity is the number of users whose tokens are cached, least recently used out first (default DefaultCapacity, 10,000).
	Capacity int
	// Timeout limits one call of grants (default DefaultTimeout, 30 s).
	Timeout time.Duration
}

// Issuer hands out tokens to users, and caches one for each until IssuerOptions.RenewBefore or MaxAge. Concurrent calls for one user share one call
// of grants. It uses the signer's clock, and is safe for concurrent use.
type Issuer struct {
	signer  *Signer
	grants  func(ctx context.Context, user string) (Grant, error)
	options IssuerOptions

	mu      sync.Mutex
	users   map[string]*list.Element
	order   *list.List // of *issued, most recently used first
	flights map[string]*flight
}

type issued struct {
	user  string
	token Token
	until time.Time
}

// flight is a call of grants in progress.
type flight struct {
	done   chan struct{}
	token  Token
	err    error
	forget bool // return the result, but do not cache it
}

// NewIssuer returns an issuer of tokens for what grants returns. grants gets a user name that the caller has verified. If it returns
// tables.ErrDenied, Token returns that, and the cached token is dropped. After another error Token returns the cached token until it expires;
// without one, or without an expiry, the error. Its context has the values of the first caller's, and ends only after IssuerOptions.Timeout.
func NewIssuer(signer *Signer, grants func(ctx context.Context, user string) (Grant, error), options *IssuerOptions) (*Issuer, error) {
	if signer == nil || grants == nil {
		return nil, errs.Wiringf("NewIssuer", "", "the signer or grants is nil; both are needed")
	}
	i := &Issuer{signer: signer, grants: grants, users: map[string]*list.Element{}, order: list.New(), flights: map[string]*flight{}}
	if options != nil {
		i.options = *options
	}
	if o := i.options; o.RenewBefore < 0 || o.MaxAge < 0 || o.Capacity < 0 || o.Timeout < 0 {
		return nil, errs.Wiringf("NewIssuer", "", "IssuerOptions.RenewBefore is %v, MaxAge %v, Capacity %d and Timeout %v; each must be 0 (meaning the default) or more", o.RenewBefore, o.MaxAge, o.Capacity, o.Timeout)
	}
	i.options.Capacity = cmp.Or(i.options.Capacity, DefaultCapacity)
	i.options.Timeout = cmp.Or(i.options.Timeout, DefaultTimeout)
	return i, nil
}

// Token returns the user's token. Requests: only those that grants makes.
func (i *Issuer) Token(ctx context.Context, user string) (Token, error) {
	if err := ctx.Err(); err != nil {
		return Token{}, err
	}
	f := i.lookUp(ctx, user)
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return Token{}, ctx.Err()
	}
}

// lookUp returns the flight to wait for, which is already done if the token is cached.
func (i *Issuer) lookUp(ctx context.Context, user string) *flight {
	i.mu.Lock()
	defer i.mu.Unlock()
	if e, ok := i.users[user]; ok {
		if kept := e.Value.(*issued); i.signer.now().Before(kept.until) {
			i.order.MoveToFront(e)
			landed := &flight{done: make(chan struct{}), token: kept.token}
			close(landed.done)
			return landed
		}
	}
	if f, ok := i.flights[user]; ok {
		return f
	}
	f := &flight{done: make(chan struct{})}
	i.flights[user] = f
	go i.fly(context.WithoutCancel(ctx), user, f)
	return f
}

// fly calls grants for all waiting callers, in its own goroutine, so that it goes on if the first caller gives up.
func (i *Issuer) fly(ctx context.Context, user string, f *flight) {
	ctx, cancel := context.WithTimeout(ctx, i.options.Timeout)
	defer cancel()
	asked := i.signer.now()
	token, err := i.issue(ctx, user)
	i.mu.Lock()
	defer i.mu.Unlock()
	defer close(f.done)
	if i.flights[user] == f {
		delete(i.flights, user)
	}
	f.token, f.err = token, err
	switch e, kept := i.users[user]; {
	case f.forget:
	case err == nil:
		i.keep(user, token, i.until(token, asked))
	case errors.Is(err, tables.ErrDenied):
		i.drop(user)
	case kept && i.signer.now().Before(e.Value.(*issued).token.Expiry()):
		f.token, f.err = e.Value.(*issued).token, nil
	}
}

// issue turns a panic in grants into an error for this user.
func (i *Issuer) issue(ctx context.Context, user string) (token Token, err error) {
	defer func() {
		if r := recover(); r != nil {
			token, err = Token{}, fmt.Errorf("access: Grants panicked: %v\n%s", r, debug.Stack())
		}
	}()
	grant, err := i.grants(ctx, user)
	if err != nil {
		return Token{}, err
	}
	return i.signer.Sign(grant)
}

// until returns when to renew a token that grants was asked for at the given time.
func (i *Issuer) until(t Token, asked time.Time) time.Time {
	age := i.options.MaxAge
	if t.Expiry().IsZero() {
		return asked.Add(cmp.Or(age, DefaultMaxAge))
	}
	until := t.Expiry().Add(-cmp.Or(i.options.RenewBefore, t.Expiry().Sub(asked)/4))
	if limit := asked.Add(age); age > 0 && limit.Before(until) {
		return limit
	}
	return until
}

func (i *Issuer) keep(user string, t Token, until time.Time) {
	i.drop(user)
	i.users[user] = i.order.PushFront(&issued{user: user, token: t, until: until})
	for len(i.users) > i.options.Capacity {
		i.drop(i.order.Back().Value.(*issued).user)
	}
}

func (i *Issuer) drop(user string) {
	if e, ok := i.users[user]; ok {
		i.order.Remove(e)
		delete(i.users, user)
	}
}

// Forget drops the user's cached token, and does not cache the result of a call in progress. Tokens that were handed out stay valid until they
// expire or their policy is revoked.
func (i *Issuer) Forget(user string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(user)
	i.detach(user)
}

// ForgetAll is Forget for all users.
func (i *Issuer) ForgetAll() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.users)
	i.order.Init()
	for user := range i.flights {
		i.detach(user)
	}
}

// detach hides a call in progress from the cache and from later callers.
func (i *Issuer) detach(user string) {
	if f, ok := i.flights[user]; ok {
		f.forget = true
		delete(i.flights, user)
	}
}

// Len returns the number of cached tokens.
func (i *Issuer) Len() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.users)
}

// String names the account.
func (i *Issuer) String() string { return "access.Issuer(" + i.signer.String() + ")" }

// Format writes the text of String for every verb.
func (i *Issuer) Format(f fmt.State, verb rune) { format(f, verb, i.String()) }

// LogValue returns the text of String.
func (i *Issuer) LogValue() slog.Value { return slog.StringValue(i.String()) }
