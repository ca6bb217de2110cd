package access

import (
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/tables"
)

// The kinds of errors of this package, beside those of package tables. Each is inside a *tables.Error.
var (
	// ErrOutside: the token does not reach this key; nothing was sent. errors.Is finds tables.ErrDenied, too.
	ErrOutside = errors.New("outside of the token's range")
	// ErrNotPermitted: the token does not permit the operation; nothing was sent. errors.Is finds tables.ErrDenied, too.
	ErrNotPermitted = errors.New("not permitted by the token")
	// ErrNoSharedKey: the account's key is missing, and only that key can sign tokens. The SDK has no user
	// delegation signatures for tables, so an account with a Microsoft Entra ID credential, or made from a
	// token, cannot issue tokens.
	ErrNoSharedKey = errors.New("the account's key is missing; tokens for tables can only be signed with it, since the SDK has no user delegation signatures for tables")
)

// refusal is the error of a request that a client does not send. NonRetriable keeps the SDK from trying again.
type refusal struct {
	kind error // ErrOutside or ErrNotPermitted
	key  *tables.Key
	what string
}

// Error says what was refused. If it contains a key, the caller gave that key.
func (r *refusal) Error() string {
	if r.key != nil {
		return fmt.Sprintf("%v: (%q, %q); use a token whose Grant.Range contains it", r.kind, r.key.Partition, r.key.Row)
	}
	return fmt.Sprintf("%v: %s", r.kind, r.what)
}

// Unwrap makes errors.Is match both the refusal's own kind and tables.ErrDenied.
func (r *refusal) Unwrap() []error { return []error{r.kind, tables.ErrDenied} }

// NonRetriable tells the SDK's retry policy not to repeat the request.
func (r *refusal) NonRetriable() {}
