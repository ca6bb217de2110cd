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

// Client opens the table of a token. It refuses requests that the token certainly does not allow. It is safe for
// concurrent use.
type Client struct {
	token   Token
	account *tables.Account
	table   *tables.Table
}

// Open opens the table of a token, which Parse reads. The options are those of the account. For the zero
// Token it returns tables.ErrWiring. It makes no request.
//
// The table, and all that you open with it, such as repositories, checks each request before it sends it. It
// returns ErrNotPermitted for another table, and for an operation that the token does not permit. It returns
// ErrOutside for a key outside of the range, also within a transaction, and for a query that cannot match any
// key of the range. If a query matches keys inside and outside of the range, the service returns the entities
// inside. Only the service knows whether the token has expired or was revoked; it then refuses the request
// with tables.ErrDenied.
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
	// The guard comes after the caller's policies, so that none of them changes a request that the guard has checked.
	own.ClientOptions.PerRetryPolicies = append(slices.Clip(own.ClientOptions.PerRetryPolicies), policy.Policy(&guard{token: token, prefix: endpoint.Path + "/"}))
	account, err := tables.NewAccountWithSAS(tables.Endpoints{Table: token.endpoint}, token.query(), &own)
	if err != nil {
		return nil, err
	}
	return &Client{token: token, account: account, table: account.Table(token.table)}, nil
}

// Table returns the token's table.
func (c *Client) Table() *tables.Table { return c.table }

// Account returns an account with only the token's table, without queues and blobs.
func (c *Client) Account() *tables.Account { return c.account }

// Token returns the token.
func (c *Client) Token() Token { return c.token }

// String returns the token's String, which shows no secret.
func (c *Client) String() string { return c.token.String() }

// Format writes the text of String for every verb.
func (c *Client) Format(f fmt.State, verb rune) { format(f, verb, c.String()) }

// LogValue returns the text of String, for log/slog.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }

// The kinds of errors of this package, beside those of package tables. Each is inside a *tables.Error.
var (
	// ErrOutside: the key, or each key that the query can match, is outside of the token's range; nothing was sent.
	// errors.Is finds tables.ErrDenied, too.
	ErrOutside = errors.New("outside of the token's range")
	// ErrNotPermitted: the token does not permit the operation; nothing was sent. errors.Is finds tables.ErrDenied, too.
	ErrNotPermitted = errors.New("not permitted by the token")
	// ErrNoSharedKey: the account's key is missing, and only that key can sign tokens. The SDK has no user
	// delegation signatures for tables, so an account with a Microsoft Entra ID credential, or made from a
	// token, cannot issue tokens.
	ErrNoSharedKey = errors.New("the account's key is missing; tokens for tables can only be signed with it, since the SDK has no user delegation signatures for tables")
)

// refusal is the error of a request that a Client does not send.
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
