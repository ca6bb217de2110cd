package access_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

const quickly = 20 * time.Millisecond

func policiesOf(t testing.TB, table *tables.Table, settle time.Duration) *access.Policies {
	t.Helper()
	return assert.Must[*access.Policies](t)(access.NewPolicies(table, &access.PoliciesOptions{UnsafeSettle: settle}))
}

func idsOf(t testing.TB, p *access.Policies) []string {
	t.Helper()
	var ids []string
	for _, policy := range assert.Must[[]access.Policy](t)(p.List(t.Context())) {
		ids = append(ids, policy.ID)
	}
	return ids
}

// whole is a policy that says everything: Azurite takes no other.
func whole(o *owner, id string) access.Policy {
	now := nowOf(o.s)().UTC().Truncate(time.Second)
	return access.Policy{ID: id, Permissions: access.Query, Start: now.Add(-time.Hour), Expiry: now.Add(time.Hour)}
}

// TestPoliciesRevoke: what stands on a policy ends with it, and nothing else does.
func TestPoliciesRevoke(t *testing.T) {
	o := newOwner(t, storagetest.Open(t))
	o.insert(at("p", "r"))
	policies := o.policies()
	one, two := whole(o, "one & <two>"), whole(o, "two")
	assert.Check(t, policies.Create(t.Context(), one), policies.Create(t.Context(), two))
	list := assert.Must[[]access.Policy](t)(policies.List(t.Context()))
	assert.Slices(t, list, []access.Policy{one, two})
	get := func(c *access.Client) error {
		_, err := c.Table().Entities().Get(t.Context(), at("p", "r"))
		return err
	}
	byOne, byTwo := o.open(access.Grant{Range: access.Partition("p"), Policy: one.ID}), o.open(access.Grant{Range: access.Partition("p"), Policy: two.ID})
	byNone := o.open(access.Grant{Range: access.Partition("p"), Permissions: access.Query})
	assert.Check(t, get(byOne), get(byTwo), get(byNone))
	assert.Check(t, policies.Revoke(t.Context(), one.ID))
	wantIs(t, get(byOne), tables.ErrDenied)
	assert.Check(t, get(byTwo), get(byNone))
	wantIs(t, policies.Revoke(t.Context(), one.ID), tables.ErrNotFound)
	assert.Slices(t, idsOf(t, policies), []string{"two"})
	assert.Check(t, policies.Revoke(t.Context(), two.ID))
	assert.Len(t, idsOf(t, policies), 0)
}

// TestPoliciesExpire is on virtual time, with policies that leave something to the token.
func TestPoliciesExpire(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	o.insert(at("p", "r"))
	policies := policiesOf(t, o.table, quickly)
	now := o.s.Clock.Now().UTC().Truncate(time.Second)
	assert.Check(t, policies.Create(t.Context(), access.Policy{ID: "permissions", Permissions: access.Query}),
		policies.Create(t.Context(), access.Policy{ID: "expiry", Start: now.Add(time.Hour), Expiry: now.Add(2 * time.Hour)}), policies.Create(t.Context(), access.Policy{ID: "nothing"}))
	get := func(g access.Grant) error {
		g.Range = access.WholeTable()
		_, err := o.open(g).Table().Entities().Get(t.Context(), at("p", "r"))
		return err
	}
	assert.Check(t, get(access.Grant{Policy: "permissions", Lifetime: time.Minute}), get(access.Grant{Policy: "nothing", Permissions: access.Query, Lifetime: time.Minute}))
	for name, g := range map[string]access.Grant{
		"no expiry": {Policy: "permissions"}, "permissions twice": {Policy: "permissions", Permissions: access.Query, Lifetime: time.Minute},
		"not yet": {Policy: "expiry", Permissions: access.Query}, "no permissions": {Policy: "nothing", Lifetime: time.Minute}, "no policy": {Policy: "none", Permissions: access.Query, Lifetime: time.Minute},
	} {
		assert.ErrorIs(t, get(g), tables.ErrDenied, name)
	}
	o.s.Wait(90 * time.Minute)
	assert.Check(t, get(access.Grant{Policy: "expiry", Permissions: access.Query}))
	o.s.Wait(time.Hour)
	wantIs(t, get(access.Grant{Policy: "expiry", Permissions: access.Query}), tables.ErrDenied)
}

// TestPoliciesLimits: five, and one of a kind; and what others have written stays as it is.
func TestPoliciesLimits(t *testing.T) {
	o := newOwner(t, storagetest.Open(t))
	policies := o.policies()
	id, start, expiry := "of another tool", time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	o.put(access.Policy{ID: id, Permissions: access.Query | access.Delete, Start: start, Expiry: expiry})
	for n := range access.MaxPolicies - 1 {
		assert.Check(t, policies.Create(t.Context(), whole(o, fmt.Sprint("policy ", n))))
	}
	wantIs(t, policies.Create(t.Context(), whole(o, "one too many")), tables.ErrTooLarge)
	wantIs(t, policies.Create(t.Context(), whole(o, "policy 1")), tables.ErrExists)
	assert.Check(t, policies.Revoke(t.Context(), "policy 2"), policies.Create(t.Context(), whole(o, "policy 5"))) // from and to a full list
	assert.Slices(t, idsOf(t, policies), []string{id, "policy 0", "policy 1", "policy 3", "policy 5"})
	list := assert.Must[[]access.Policy](t)(policies.List(t.Context()))
	assert.Equal(t, list[0], (access.Policy{ID: id, Permissions: access.Query | access.Delete, Start: start, Expiry: expiry}))
	gone := policiesOf(t, o.table.Account().Table(o.s.TableName(t)), quickly)
	_, err := gone.List(t.Context())
	wantIs(t, err, tables.ErrMissingResource)
	wantIs(t, gone.Revoke(t.Context(), "x"), tables.ErrMissingResource)
}

func TestPoliciesThatAreRefused(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	counter := &storagetest.RequestCounter{}
	counted, _ := o.s.Faulty(counter)
	policies := policiesOf(t, accountOf(t, counted).Table(o.table.Name()), quickly)
	now := time.Now().Truncate(time.Second)
	for name, p := range map[string]access.Policy{
		"no id": {Permissions: access.Query}, "two lines": {ID: "a\nb"}, "ours": {ID: "_tpLock_x"}, "no permission": {ID: "a", Permissions: 16},
		"ends before it starts": {ID: "a", Start: now, Expiry: now}, "finer than a second": {ID: "a", Expiry: now.Add(time.Millisecond)},
	} {
		assert.ErrorIs(t, policies.Create(t.Context(), p), tables.ErrInvalid, name)
	}
	wantIs(t, policies.Revoke(t.Context(), ""), tables.ErrInvalid)
	_, err := access.NewPolicies(nil, nil)
	wantIs(t, err, tables.ErrWiring)
	_, err = access.NewPolicies(o.table, &access.PoliciesOptions{UnsafeSettle: -1})
	wantIs(t, err, tables.ErrWiring)
	assert.Equal(t, counter.Count(), 0, "requests")
}

// TestPoliciesCost is on virtual time: on a slow machine, a change with a short Settle may have to begin again.
func TestPoliciesCost(t *testing.T) {
	explore.Schedules(t, explore.ScheduleCase{Seeds: 1, Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
		o, counter := newOwner(t, s), &storagetest.RequestCounter{}
		return explore.Stage{
			Actors: []explore.Actor{func(ctx context.Context, s *storagetest.Service) error {
				counted, _ := s.Faulty(counter)
				policies := policiesOf(t, accountOf(t, counted).Table(o.table.Name()), 0)
				_, list := policies.List(ctx)
				began := time.Now()
				return errors.Join(list, policies.Create(ctx, whole(o, "a")), policies.Revoke(ctx, "a"), takes(time.Since(began), 2*access.DefaultSettle))
			}},
			Check: func(_ context.Context, _ *storagetest.Service, errs []error) error {
				if counter.CountOf(storagetest.GetTableACL) != 1+2+2 || counter.CountOf(storagetest.SetTableACL) != 2+2 {
					return fmt.Errorf("%v", counter.Kinds())
				}
				return errs[0]
			},
		}
	}})
}

// takes fails unless a time is at least what it must be, and not half as much again.
func takes(d, atLeast time.Duration) error {
	if d < atLeast || d > atLeast*3/2 {
		return fmt.Errorf("it took %v", d)
	}
	return nil
}

// TestTokensChangeNoPolicies: the service, asked without a Client in between, lets no token read or change the policies of its table,
// nor the table itself.
func TestTokensChangeNoPolicies(t *testing.T) {
	o := newOwner(t, storagetest.Open(t))
	before := assert.Must[[]access.Policy](t)(o.policies().List(t.Context()))
	token := o.sign(access.Grant{Range: access.WholeTable(), Permissions: access.Everything}).RevealAddress()
	table, query, _ := strings.Cut(token, "?")
	account := strings.TrimSuffix(table, "/"+o.table.Name())
	list := `<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers><SignedIdentifier><Id>mine</Id><AccessPolicy><Start>2020-01-01T00:00:00Z</Start>` +
		`<Expiry>2999-01-01T00:00:00Z</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>`
	for what, c := range map[string]struct{ method, address, body string }{
		"read":        {http.MethodGet, token + "&comp=acl", ""},
		"change":      {http.MethodPut, token + "&comp=acl", list},
		"a new table": {http.MethodPost, account + "/Tables?" + query, `{"TableName":"Mine"}`},
		"the tables":  {http.MethodGet, account + "/Tables?" + query, ""},
		"the table":   {http.MethodDelete, account + "/Tables('" + o.table.Name() + "')?" + query, ""},
		"the service": {http.MethodGet, account + "/?restype=service&comp=properties&" + query, ""},
	} {
		if what == "the table" && o.s.Clock == nil {
			continue // Azurite lets any token drop its table; Azure asks for an account's signature
		}
		if status, text := send(t, o.s, c.method, c.address, c.body); status < 400 {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	assert.Len(t, assert.Must[[]access.Policy](t)(o.policies().List(t.Context())), len(before), "the policies")
}
