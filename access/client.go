package access

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Client opens the table of a token, and refuses what the token certainly does not allow. It is safe for concurrent use.
type Client struct {
	token   Token
	account *tables.Account
	table   *tables.Table
}

// Open opens the table of a token, which Parse reads, with options as for an account. For the zero Token it returns tables.ErrWiring. Requests:
// none.
//
// The table, and what you open with it, checks each request before it sends it. ErrNotPermitted is for another table or an operation without
// permission; ErrOutside for a key outside of the range, also within a transaction, and for a query that cannot match a key of it. If a query
// matches keys inside and outside, the service returns those inside. If the token has expired or was revoked, the service refuses the request with
// tables.ErrDenied.
func Open(token Token, options *tables.AccountOptions) (*Client, error) {
	const op = "Open"
	if token.IsZero() {
		return nil, errs.Wiringf(op, "", "the token is the zero Token; make it with Parse or Signer.Sign")
	}
	endpoint, err := url.Parse(token.endpoint)
	if err != nil {
		return nil, errs.InvalidIn(op, token.table, "the token's endpoint is not an http(s) address")
	}
	if endpoint.Scheme == "http" && !token.fields.plain {
		return nil, errs.InvalidIn(op, token.table, "the token is for HTTPS only, and its endpoint is http; use an https endpoint, or Grant.InsecureHTTP")
	}
	var own tables.AccountOptions
	if options != nil {
		own = *options
	}
	// After the caller's policies, which could change a request.
	own.ClientOptions.PerRetryPolicies = append(slices.Clip(own.ClientOptions.PerRetryPolicies), policy.Policy(&guard{token: token, prefix: endpoint.Path + "/"}))
	account, err := tables.NewAccountWithSAS(tables.Endpoints{Table: token.endpoint}, token.query(), &own)
	if err != nil {
		return nil, err
	}
	return &Client{token: token, account: account, table: account.Table(token.table)}, nil
}

// Table returns the token's table.
func (c *Client) Table() *tables.Table { return c.table }

// Account returns an account with only the token's table.
func (c *Client) Account() *tables.Account { return c.account }

// Token returns the token.
func (c *Client) Token() Token { return c.token }

// String returns the token's String.
func (c *Client) String() string { return c.token.String() }

// Format writes the text of String for every verb.
func (c *Client) Format(f fmt.State, verb rune) { format(f, verb, c.String()) }

// LogValue returns the text of String.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Kinds of errors beside those of package tables, each inside a *tables.Error.
var (
	// ErrOutside: no key of the request is in the token's range; nothing was sent. errors.Is finds tables.ErrDenied, too.
	ErrOutside = errors.New("outside of the token's range")
	// ErrNotPermitted: the token does not permit the operation; nothing was sent. errors.Is finds tables.ErrDenied, too.
	ErrNotPermitted = errors.New("not permitted by the token")
	// ErrNoSharedKey: only the account's key can sign tokens, since the SDK has no user delegation signatures for tables. Accounts with a Microsoft
	// Entra ID credential, or made from a token, lack it.
	ErrNoSharedKey = errors.New("the account's key is missing; tokens for tables can only be signed with it, since the SDK has no user delegation signatures for tables")
)

type refusal struct {
	kind error
	key  *tables.Key
	what string
}

// Error shows no key but the caller's.
func (r *refusal) Error() string {
	if r.key != nil {
		return fmt.Sprintf("%v: (%q, %q); use a token whose Grant.Range contains it", r.kind, r.key.Partition, r.key.Row)
	}
	return fmt.Sprintf("%v: %s", r.kind, r.what)
}

// Unwrap makes errors.Is match the refusal's kind and tables.ErrDenied.
func (r *refusal) Unwrap() []error { return []error{r.kind, tables.ErrDenied} }

// NonRetriable keeps the SDK from repeating the request.
func (r *refusal) NonRetriable() {}
