package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// MaxPolicies is the maximum number of stored access policies of a table.
	MaxPolicies = 5
	// DefaultSettle is the default of PoliciesOptions.UnsafeSettle.
	DefaultSettle = 6 * time.Second
)

// Policy is a stored access policy: tokens that name it are valid as long as it exists. Each token must set the Permissions and Expiry that the
// policy does not set.
type Policy struct {
	ID            string
	Permissions   Permission
	Start, Expiry time.Time // whole seconds
}

// PoliciesOptions are the options of NewPolicies; nil is the same as the zero value.
type PoliciesOptions struct {
	// UnsafeSettle is the time within which a write of the list of policies must arrive after the read on which it is based (default DefaultSettle,
	// 6 s). All programs that change the policies of a table must use the same value; otherwise a revoked policy can come back. It is for tests.
	UnsafeSettle time.Duration
}

// Policies creates, lists and revokes the stored access policies of one table, with the account's key or a role that permits it. It is safe for
// concurrent use.
//
// The service stores the policies as one list without an ETag, so one program could write back a policy that another has just revoked: the package
// comment says what the lock in the list guarantees.
type Policies struct {
	table  *tables.Table
	settle time.Duration
}

// NewPolicies returns the policies of a table. It returns tables.ErrWiring for a nil table, or one with an illegal name. Requests: none.
func NewPolicies(table *tables.Table, options *PoliciesOptions) (*Policies, error) {
	if table == nil {
		return nil, errs.Wiringf("NewPolicies", "", "the table is nil; make it with Account.Table")
	}
	if rows.CheckTableName(table.Name()) != nil {
		return nil, errs.Wiringf("NewPolicies", table.Name(), "the table's name is not legal; it must have 3 to 63 ASCII letters and digits")
	}
	p := &Policies{table: table, settle: DefaultSettle}
	if options != nil && options.UnsafeSettle != 0 {
		p.settle = options.UnsafeSettle
	}
	if p.settle < 0 {
		return nil, errs.Wiringf("NewPolicies", table.Name(), "PoliciesOptions.UnsafeSettle is below 0; it must be 0 (meaning 6 s) or more")
	}
	return p, nil
}

// List returns the policies in the order of the service. Requests: 1.
func (p *Policies) List(ctx context.Context) ([]Policy, error) {
	list, err := p.read(ctx, "List")
	if err != nil {
		return nil, err
	}
	policies := make([]Policy, 0, len(list))
	for _, s := range list {
		if !isLock(s) {
			policies = append(policies, policyOf(s))
		}
	}
	return policies, nil
}

// Create adds a policy, in some seconds (PoliciesOptions.UnsafeSettle); the service may accept tokens with it 30 s later. It returns
// tables.ErrExists for an ID that exists, and tables.ErrTooLarge if there are MaxPolicies. Requests: 4.
func (p *Policies) Create(ctx context.Context, added Policy) error {
	const op = "Create"
	if err := checkPolicy(added); err != nil {
		return errs.InvalidIn(op, p.table.Name(), "%w", err)
	}
	return p.change(ctx, op, change{
		refuse: func(list acl) error {
			if list.index(added.ID) >= 0 {
				return p.failure(op, tables.ErrExists, "the table has a policy with this ID; choose another ID, or revoke that policy")
			}
			if len(list.withoutLocks()) >= MaxPolicies {
				return p.failure(op, tables.ErrTooLarge, fmt.Sprintf("the table has %d policies already, the maximum; revoke one first", MaxPolicies))
			}
			return nil
		},
		holds: func(list acl) bool {
			i := list.index(added.ID)
			return i >= 0 && policyOf(list[i]) == policyOf(identifierOf(added))
		},
		early: func(list acl) acl { return list },
		apply: func(list acl) acl { return append(list, identifierOf(added)) },
	})
}

// Revoke removes a policy, and so revokes its tokens, with the first write; then it waits some seconds (PoliciesOptions.UnsafeSettle) to check that
// no concurrent change puts it back. The service may accept the tokens for up to 30 seconds more. It returns tables.ErrNotFound if no policy has
// this ID; after any other error, repeat the call. Requests: 4.
func (p *Policies) Revoke(ctx context.Context, id string) error {
	const op = "Revoke"
	if err := checkPolicyID(id); err != nil {
		return errs.InvalidIn(op, p.table.Name(), "%w", err)
	}
	remove := func(list acl) acl {
		return slices.DeleteFunc(list, func(s *aztables.SignedIdentifier) bool { return idOf(s) == id })
	}
	return p.change(ctx, op, change{
		refuse: func(list acl) error {
			// Another process may have removed the policy, but with a lock in the list, a write may still put it back.
			if list.index(id) < 0 && list.lock() == "" {
				return p.failure(op, tables.ErrNotFound, "the table has no policy with this ID; List returns the existing ones")
			}
			return nil
		},
		holds: func(list acl) bool { return list.index(id) < 0 },
		early: remove,
		apply: remove,
	})
}

func checkPolicy(p Policy) error {
	if err := checkPolicyID(p.ID); err != nil {
		return err
	}
	switch {
	case p.Permissions&^Everything != 0:
		return fmt.Errorf("Policy.Permissions is %v; it must be a combination of Query, Add, Update and Delete", p.Permissions)
	case p.Start.Nanosecond() != 0 || p.Expiry.Nanosecond() != 0:
		return errors.New("Policy.Start or Expiry has a fraction of a second; truncate them to whole seconds")
	case !p.Start.IsZero() && !p.Expiry.IsZero() && !p.Start.Before(p.Expiry):
		return errors.New("Policy.Expiry must be after Policy.Start")
	}
	return nil
}

// acl is the stored list. Foreign entries are kept.
type acl []*aztables.SignedIdentifier

func (l acl) index(id string) int {
	return slices.IndexFunc(l, func(s *aztables.SignedIdentifier) bool { return idOf(s) == id })
}

func idOf(s *aztables.SignedIdentifier) string {
	if s == nil || s.ID == nil {
		return ""
	}
	return *s.ID
}

func policyOf(s *aztables.SignedIdentifier) Policy {
	p := Policy{ID: idOf(s)}
	if a := s.AccessPolicy; a != nil {
		if a.Permission != nil {
			p.Permissions, _ = parsePermission(*a.Permission)
		}
		if a.Start != nil {
			p.Start = a.Start.UTC()
		}
		if a.Expiry != nil {
			p.Expiry = a.Expiry.UTC()
		}
	}
	return p
}

func identifierOf(p Policy) *aztables.SignedIdentifier {
	s := &aztables.SignedIdentifier{ID: &p.ID, AccessPolicy: &aztables.AccessPolicy{}}
	if p.Permissions != 0 {
		text := p.Permissions.String()
		s.AccessPolicy.Permission = &text
	}
	if !p.Start.IsZero() {
		s.AccessPolicy.Start = &p.Start
	}
	if !p.Expiry.IsZero() {
		s.AccessPolicy.Expiry = &p.Expiry
	}
	return s
}

func (p *Policies) read(ctx context.Context, op string) (acl, error) {
	var raw *http.Response
	answer, err := p.table.Client().GetAccessPolicy(policy.WithCaptureResponse(ctx, &raw), nil)
	if err != nil {
		return nil, p.sdkFailure(op, err)
	}
	// For a cut-off response without a body, the SDK returns an empty list: written back, it would remove all policies.
	if body, err := runtime.Payload(raw); err != nil || len(body) == 0 {
		return nil, p.failure(op, tables.ErrGarbled, "the response has no list of policies; repeat the operation")
	}
	list := acl(answer.SignedIdentifiers)
	for _, s := range list {
		if idOf(s) == "" {
			return nil, p.failure(op, tables.ErrGarbled, "a policy in the response has no ID; repeat the operation")
		}
	}
	return list, nil
}

func (p *Policies) failure(op string, kind error, what string) error {
	return &tables.Error{Op: op, Table: p.table.Name(), Kind: kind, Err: errors.New(what)}
}

func (p *Policies) sdkFailure(op string, err error) *tables.Error {
	e := core.ServiceError(op, p.table.Name(), err)
	if errors.Is(e.Kind, tables.ErrNotFound) {
		e.Kind = tables.ErrMissingResource
	}
	return e
}
