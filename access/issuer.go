package access

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// DefaultCapacity is how many users' tokens an Issuer keeps.
	DefaultCapacity = 10_000
	// DefaultMaxAge is how long an Issuer uses an answer of Grants for a token whose expiry is its policy's.
	DefaultMaxAge = 15 * time.Minute
	// DefaultTimeout is how long an Issuer waits for Grants.
	DefaultTimeout = 30 * time.Second
)

// IssuerOptions are the options of NewIssuer; nil is the same as the zero value.
type IssuerOptions struct {
	// RenewBefore is the least time that a token has left when it is handed out from the cache; 0 is a quarter of its lifetime.
	// An issuer does not cache tokens whose lifetime is RenewBefore or less.
	RenewBefore time.Duration
	// MaxAge is how long a token is handed out at most, however long it lives, before Grants is asked again: how old the
	// rights of a user may be. 0 is until RenewBefore, or DefaultMaxAge for a token without an expiry of its own.
	MaxAge time.Duration
	// Capacity is how many users' tokens are kept; 0 is DefaultCapacity. The one that was not asked for longest goes first.
	Capacity int
	// Timeout bounds one call of Grants; 0 is DefaultTimeout.
	Timeout time.Duration
}

// Issuer hands out tokens to users: one for each user, kept until it is to be renewed. It is safe for concurrent use.
//
// Users who ask at the same time for the same token wait for one call of Grants. The clock is the signer's.
type Issuer struct {
	signer  *Signer
	grants  func(ctx context.Context, user string) (Grant, error)
	options IssuerOptions

	mu      sync.Mutex
	users   map[string]*list.Element
	order   *list.List // of *issued, the last used first
	flights map[string]*flight
}

// issued is the token of a user.
type issued struct {
	user  string
	token Token
	until time.Time // handed out until then
}

// flight is a call of Grants under way.
type flight struct {
	done   chan struct{}
	token  Token
	err    error
	forget bool // what it brings is for those who wait, and nobody else
}

// NewIssuer returns an issuer of what grants allows. Grants is asked for the rights of a user who is known to be that
// user, and may look them up: for it, a user is a name that the caller has verified. An error of Grants is the caller's answer;
// with tables.ErrDenied the user's kept token is dropped as well, with any other it is used until it expires, where it says
// when. The context of Grants has the values of the first caller's, and ends by IssuerOptions.Timeout only.
func NewIssuer(signer *Signer, grants func(ctx context.Context, user string) (Grant, error), options *IssuerOptions) (*Issuer, error) {
	if signer == nil || grants == nil {
		return nil, invalidf("NewIssuer", "", "the signer or grants is nil")
	}
	i := &Issuer{signer: signer, grants: grants, users: map[string]*list.Element{}, order: list.New(), flights: map[string]*flight{}}
	if options != nil {
		i.options = *options
	}
	if o := i.options; o.RenewBefore < 0 || o.MaxAge < 0 || o.Capacity < 0 || o.Timeout < 0 {
		return nil, invalidf("NewIssuer", "", "an option is below 0")
	}
	if i.options.Capacity == 0 {
		i.options.Capacity = DefaultCapacity
	}
	if i.options.Timeout == 0 {
		i.options.Timeout = DefaultTimeout
	}
	return i, nil
}

// Token returns the user's token. It makes no request, but for those of Grants.
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

// lookUp returns the flight to wait for; it has landed where the token is kept.
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

// fly asks Grants, away from the callers: the one who came first may give up, and the others still wait.
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

// issue makes a token. A panic in Grants is an error of this user's, not the end of the program.
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

// until is when a token made of rights that were asked for at a time is to be replaced.
func (i *Issuer) until(t Token, asked time.Time) time.Time {
	age := i.options.MaxAge
	if t.Expiry().IsZero() {
		if age == 0 {
			age = DefaultMaxAge
		}
		return asked.Add(age)
	}
	before := i.options.RenewBefore
	if before == 0 {
		before = t.Expiry().Sub(asked) / 4
	}
	until := t.Expiry().Add(-before)
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

// Forget drops the user's kept token, so that the next call of Token asks Grants again; an answer that is under way is not
// kept. It takes nothing back: a token that was handed out is good until it expires, or its policy is revoked.
func (i *Issuer) Forget(user string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(user)
	i.ground(user)
}

// ForgetAll is Forget for all users.
func (i *Issuer) ForgetAll() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.users)
	i.order.Init()
	for user := range i.flights {
		i.ground(user)
	}
}

// ground keeps a flight's answer from everybody who comes from now on.
func (i *Issuer) ground(user string) {
	if f, ok := i.flights[user]; ok {
		f.forget = true
		delete(i.flights, user)
	}
}

// Len is the number of tokens that are kept.
func (i *Issuer) Len() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.users)
}

// String names the account.
func (i *Issuer) String() string { return "access.Issuer(" + i.signer.String() + ")" }

// Format is String for every verb.
func (i *Issuer) Format(f fmt.State, verb rune) { format(f, verb, i.String()) }

// LogValue is String for log/slog.
func (i *Issuer) LogValue() slog.Value { return slog.StringValue(i.String()) }
