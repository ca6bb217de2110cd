package access_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// desk is an issuer with a clock and what its Grants answers.
type desk struct {
	*access.Issuer
	mu    sync.Mutex
	now   time.Time
	asked map[string]int
	grant access.Grant
	err   error
	gate  chan struct{} // Grants waits for it, where there is one
}

func newDesk(t testing.TB, options *access.IssuerOptions) *desk {
	t.Helper()
	s := storagetest.Simulator(t, nil)
	d := &desk{now: time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC), asked: map[string]int{},
		grant: access.Grant{Table: "Employees", Permissions: access.Query, Lifetime: time.Hour, InsecureHTTP: true}}
	signer := assert.Must[*access.Signer](t)(access.NewSigner(accountOf(t, s), s.AccountKey, &access.SignerOptions{Now: d.clock}))
	d.Issuer = assert.Must[*access.Issuer](t)(access.NewIssuer(signer, d.grants, options))
	return d
}

func (d *desk) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *desk) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

func (d *desk) grants(ctx context.Context, user string) (access.Grant, error) {
	d.mu.Lock()
	d.asked[user]++
	g, err, gate := d.grant, d.err, d.gate
	d.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return g, ctx.Err()
		}
	}
	g.Range = access.Partition(user)
	return g, err
}

func (d *desk) token(t testing.TB, user string) access.Token {
	t.Helper()
	return assert.Must[access.Token](t)(d.Token(t.Context(), user))
}

func (d *desk) wantAsked(t testing.TB, user string, n int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	assert.Equal(t, d.asked[user], n, "times Grants was asked for %s", user)
}

// TestIssuerRenewsBeforeExpiry: one token for a user until a quarter of its lifetime is left.
func TestIssuerRenewsBeforeExpiry(t *testing.T) {
	d := newDesk(t, nil)
	first := d.token(t, "June")
	if first.Range() != access.Partition("June") || first.Permissions() != access.Query || !first.Expiry().Equal(d.clock().Add(time.Hour)) {
		t.Errorf("%v, %v", first, first.Range())
	}
	d.pass(45*time.Minute - time.Nanosecond)
	assert.Equal(t, d.token(t, "June").RevealAddress(), first.RevealAddress(), "renewed before its time")
	d.wantAsked(t, "June", 1)
	d.pass(time.Nanosecond)
	second := d.token(t, "June")
	assert.Equal(t, second.Expiry().Sub(d.clock()), time.Hour, "left of the renewed token")
	d.token(t, "Ken")
	d.wantAsked(t, "June", 2)
	d.wantAsked(t, "Ken", 1)
}

func TestIssuerOptions(t *testing.T) {
	before := newDesk(t, &access.IssuerOptions{RenewBefore: 50 * time.Minute})
	before.token(t, "June")
	before.pass(9 * time.Minute)
	before.token(t, "June")
	before.wantAsked(t, "June", 1)
	before.pass(time.Minute)
	before.token(t, "June")
	before.wantAsked(t, "June", 2)

	short := newDesk(t, &access.IssuerOptions{RenewBefore: 2 * time.Hour})
	short.token(t, "June")
	short.token(t, "June")
	short.wantAsked(t, "June", 2)

	age := newDesk(t, &access.IssuerOptions{MaxAge: time.Minute})
	age.token(t, "June")
	age.pass(time.Minute)
	age.token(t, "June")
	age.wantAsked(t, "June", 2)

	policy := newDesk(t, nil)
	policy.grant.Policy, policy.grant.Lifetime = "readers", 0
	policy.token(t, "June")
	policy.pass(access.DefaultMaxAge - 1)
	policy.token(t, "June")
	policy.wantAsked(t, "June", 1)
	policy.pass(1)
	policy.token(t, "June")
	policy.wantAsked(t, "June", 2)

	_, err := access.NewIssuer(nil, nil, nil)
	wantIs(t, err, tables.ErrWiring)
	s := storagetest.Simulator(t, nil)
	signer := assert.Must[*access.Signer](t)(access.NewSigner(accountOf(t, s), s.AccountKey, nil))
	_, err = access.NewIssuer(signer, policy.grants, &access.IssuerOptions{MaxAge: -1})
	wantIs(t, err, tables.ErrWiring)
}

// TestIssuerIsBounded: the user who was not asked for longest goes first.
func TestIssuerIsBounded(t *testing.T) {
	d := newDesk(t, &access.IssuerOptions{Capacity: 3})
	for _, user := range []string{"a", "b", "c", "a", "d"} { // b goes
		d.token(t, user)
	}
	assert.Equal(t, d.Len(), 3, "tokens")
	for user, n := range map[string]int{"a": 1, "c": 1, "d": 1} {
		d.token(t, user)
		d.wantAsked(t, user, n)
	}
	d.token(t, "b")
	d.wantAsked(t, "b", 2)
	for i := range 1000 {
		d.token(t, fmt.Sprint("user ", i))
	}
	assert.Equal(t, d.Len(), 3, "tokens")
}

// TestIssuerErrors: who is denied has no token any more; whom nobody could look up keeps the one he has.
func TestIssuerErrors(t *testing.T) {
	d := newDesk(t, nil)
	down := errors.New("the directory is down")
	d.err = down
	_, err := d.Token(t.Context(), "June")
	wantIs(t, err, down)
	d.err = nil
	first := d.token(t, "June")
	d.pass(50 * time.Minute)
	d.err = down
	assert.Equal(t, d.token(t, "June").RevealAddress(), first.RevealAddress(), "another token")
	d.pass(10 * time.Minute)
	_, err = d.Token(t.Context(), "June") // it has expired
	wantIs(t, err, down)
	d.err = nil
	d.token(t, "June")
	d.pass(50 * time.Minute)
	d.err = fmt.Errorf("fired: %w", tables.ErrDenied)
	_, err = d.Token(t.Context(), "June")
	wantIs(t, err, tables.ErrDenied)
	if d.err = down; d.Len() != 0 {
		t.Errorf("%d tokens", d.Len())
	}
	_, err = d.Token(t.Context(), "June")
	wantIs(t, err, down)
	d.err, d.grant.Permissions = nil, 0
	_, err = d.Token(t.Context(), "Ken") // what Grants allows cannot be signed
	wantIs(t, err, tables.ErrInvalid)
}

// TestIssuerSingleFlight: all who ask at once wait for one answer; one who gives up takes nobody along; a panic is an error.
func TestIssuerSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.gate = make(chan struct{})
		impatient, giveUp := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() {
			_, err := d.Token(impatient, "June")
			gaveUp <- err
		}()
		synctest.Wait()
		var got atomic.Int32
		for range 50 {
			go func() {
				if token, err := d.Token(t.Context(), "June"); err == nil && !token.IsZero() {
					got.Add(1)
				}
			}()
		}
		synctest.Wait()
		giveUp()
		wantIs(t, <-gaveUp, context.Canceled)
		close(d.gate)
		synctest.Wait()
		d.wantAsked(t, "June", 1)
		assert.Equal(t, got.Load(), 50, "those of 50 with a token")
		_, err := d.Token(impatient, "June")
		wantIs(t, err, context.Canceled)

		d.gate = make(chan struct{}) // never opens
		_, err = d.Token(t.Context(), "Ken")
		wantIs(t, err, context.DeadlineExceeded)
	})
	s := storagetest.Simulator(t, nil)
	signer := assert.Must[*access.Signer](t)(access.NewSigner(accountOf(t, s), s.AccountKey, nil))
	panics := assert.Must[*access.Issuer](t)(access.NewIssuer(signer, func(context.Context, string) (access.Grant, error) { panic("no directory") }, nil))
	assert.Error(t, assert.Err(panics.Token(t.Context(), "June")), "a token of a panic")
}

// TestIssuerForgets: an answer that was under way when the user was forgotten goes to those who waited for it and to nobody else.
func TestIssuerForgets(t *testing.T) {
	for name, forget := range map[string]func(d *desk){"one": func(d *desk) { d.Forget("June") }, "all": func(d *desk) { d.ForgetAll() }} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, nil)
			d.token(t, "June")
			forget(d)
			d.gate = make(chan struct{})
			waiting := make(chan error, 2)
			ask := func() { _, err := d.Token(t.Context(), "June"); waiting <- err }
			go ask()
			synctest.Wait()
			forget(d)
			go ask() // does not join the first
			synctest.Wait()
			d.wantAsked(t, "June", 3)
			close(d.gate)
			assert.Check(t, <-waiting, <-waiting)
			synctest.Wait()
			assert.Equal(t, d.Len(), 1, "%s: tokens", name)
			forget(d)
			assert.Equal(t, d.Len(), 0, "%s: tokens", name)
		})
	}
}
