package access

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/connection"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	// DefaultLifetime is the default of Grant.Lifetime.
	DefaultLifetime = time.Hour
	// DefaultSkew is the default of SignerOptions.Skew.
	DefaultSkew = 15 * time.Minute

	// sasVersion is the version of the signed text. The SDK's variable could change.
	sasVersion = "2019-02-02"
	// maxPolicyID is in UTF-16 code units.
	maxPolicyID = 64
)

// Grant describes the token to make.
type Grant struct {
	// Table is the table's name.
	Table string
	// Range is required.
	Range Range
	// Permissions are 0 if the Policy sets them.
	Permissions Permission
	// Lifetime is how long the token is valid from now on, in whole seconds (default DefaultLifetime, or with a Policy the policy's expiry).
	Lifetime time.Duration
	// Start is when the token becomes valid (default SignerOptions.Skew ago, since the service's clock may be behind; with a Policy, the policy's
	// start).
	Start time.Time
	// Policy is the id of a stored access policy of the table. Set permissions and expiry either there or here, and a start in at most one of them:
	// the service refuses a token that sets a field of its policy again.
	Policy string
	// InsecureHTTP permits the token without TLS, where anybody on the network can read it: for Azurite on this machine.
	InsecureHTTP bool
}

// SignerOptions are the options of NewSigner; nil is the same as the zero value.
type SignerOptions struct {
	// Now is the clock (default time.Now).
	Now func() time.Time
	// Skew is how far in the past a token's start is (default DefaultSkew, 15 minutes). Negative means no start: valid at once by any clock.
	Skew time.Duration
}

// Signer makes tokens with an account's key, without requests. It is safe for concurrent use.
type Signer struct {
	account *tables.Account
	now     func() time.Time
	skew    time.Duration
	// sign hides the key: see Token.query.
	sign func(aztables.SASSignatureValues) (string, error)
}

// NewSigner returns a signer that uses key, one of the account's keys in base64 as the portal shows it. For an empty key it returns ErrNoSharedKey.
func NewSigner(account *tables.Account, key string, options *SignerOptions) (*Signer, error) {
	const op = "NewSigner"
	switch {
	case account == nil:
		return nil, errs.Wiringf(op, "", "the account is nil; make one with tables.NewAccountWithSharedKey")
	case key == "":
		return nil, errs.Wiringf(op, "", "%w", ErrNoSharedKey)
	case account.Name() == "":
		return nil, errs.Wiringf(op, "", "the account was made without its name, which a signature contains; make it with tables.NewAccountWithSharedKey or from a connection string")
	case account.IsCosmos():
		return nil, errs.Wiringf(op, "", "the account is of Cosmos DB for Table, whose keys have no order, so it has no ranges of keys; use Azure Storage")
	}
	credential, err := aztables.NewSharedKeyCredential(account.Name(), key)
	if err != nil {
		return nil, errs.Wiringf(op, "", "the key of account %q is not base64; give it as the portal shows it", account.Name())
	}
	s := &Signer{account: account, now: time.Now, skew: DefaultSkew,
		sign: func(v aztables.SASSignatureValues) (string, error) { return v.Sign(credential) }}
	if options != nil && options.Now != nil {
		s.now = options.Now
	}
	if options != nil && options.Skew != 0 {
		s.skew = options.Skew
	}
	return s, nil
}

// NewSignerFromConnectionString is NewSigner with a connection string's account and key.
func NewSignerFromConnectionString(connectionString string, options *SignerOptions) (*Signer, error) {
	account, err := tables.NewAccountFromConnectionString(connectionString, nil)
	if err != nil {
		return nil, err
	}
	parsed, err := connection.Parse(connectionString)
	if err != nil {
		return nil, err
	}
	return NewSigner(account, parsed.Key, options)
}

// Sign makes a token. It returns tables.ErrInvalid for a grant that the service would refuse or interpret differently: for example no Range, no
// Permissions and no Policy, or a Policy ID of more than 64 UTF-16 units. It does not check that table and policy exist. Requests: none.
func (s *Signer) Sign(g Grant) (Token, error) {
	if err := s.check(&g); err != nil {
		return Token{}, errs.InvalidIn("Sign", g.Table, "%w", err)
	}
	t := Token{endpoint: s.account.Endpoints().Table, table: g.Table,
		fields: fields{keys: g.Range, permissions: g.Permissions, policy: g.Policy, plain: g.InsecureHTTP}}
	t.fields.start, t.fields.expiry = s.times(&g)
	protocol := aztables.SASProtocolHTTPS
	if g.InsecureHTTP {
		protocol = aztables.SASProtocolHTTPSandHTTP
	}
	signed, err := s.sign(aztables.SASSignatureValues{
		Version: sasVersion, Protocol: protocol, StartTime: t.fields.start, ExpiryTime: t.fields.expiry, Permissions: g.Permissions.String(),
		Identifier: g.Policy, TableName: g.Table,
		StartPartitionKey: g.Range.spk, StartRowKey: g.Range.srk, EndPartitionKey: g.Range.epk, EndRowKey: g.Range.erk,
	})
	if err != nil {
		return Token{}, errs.InvalidIn("Sign", g.Table, "the SDK did not sign the grant; check the account's key")
	}
	query, err := url.ParseQuery(signed)
	if err != nil {
		return Token{}, errs.InvalidIn("Sign", g.Table, "the token that the SDK made cannot be parsed; use the version of the SDK in this module's go.mod")
	}
	// The SDK signs the bounds but does not write them into the token.
	for name, value := range map[string]string{paramFirstPartition: g.Range.spk, paramFirstRow: g.Range.srk, paramLastPartition: g.Range.epk, paramLastRow: g.Range.erk} {
		if value != "" {
			query.Set(name, value)
		}
	}
	text := encode(query)
	t.query = func() string { return text }
	return t, nil
}

// check refuses what the service would refuse or interpret differently. A line break in a field could make the signature valid for other fields,
// since the signed text has one a line.
func (s *Signer) check(g *Grant) error {
	switch {
	case rows.CheckTableName(g.Table) != nil:
		return errors.New("Grant.Table is empty or not a legal table name; it must have 3 to 63 ASCII letters and digits")
	case g.Range.Err() != nil:
		return fmt.Errorf("Grant.Range: %w", g.Range.Err())
	case g.Permissions&^Everything != 0:
		return fmt.Errorf("Grant.Permissions is %v; it must be a combination of Query, Add, Update and Delete", g.Permissions)
	case g.Policy == "" && g.Permissions == 0:
		return errors.New("the grant has neither Permissions nor a Policy; set one of them")
	case g.Lifetime < 0 || g.Lifetime > 0 && g.Lifetime < time.Second:
		return fmt.Errorf("Grant.Lifetime is %v; it must be in whole seconds and not negative", g.Lifetime)
	case g.Policy != "" && checkPolicyID(g.Policy) != nil:
		return checkPolicyID(g.Policy)
	case !g.InsecureHTTP && strings.HasPrefix(s.account.Endpoints().Table, "http:"):
		return errors.New("the account's endpoint is http, and the grant is for HTTPS only; set Grant.InsecureHTTP for Azurite on this machine")
	}
	start, expiry := s.times(g)
	if !start.IsZero() && !expiry.IsZero() && !start.Before(expiry) {
		return errors.New("the token would expire before its start; set an earlier Grant.Start or a longer Lifetime")
	}
	return nil
}

// times returns start and expiry in whole seconds, not outside of the requested time, and in UTC: the SDK would write a local time as UTC.
func (s *Signer) times(g *Grant) (start, expiry time.Time) {
	now := s.now().UTC()
	switch {
	case !g.Start.IsZero():
		start = g.Start.UTC().Add(time.Second - time.Nanosecond).Truncate(time.Second)
	case g.Policy == "" && s.skew > 0:
		start = now.Add(-s.skew).Truncate(time.Second)
	}
	lifetime := g.Lifetime
	if lifetime == 0 && g.Policy == "" {
		lifetime = DefaultLifetime
	}
	if lifetime > 0 {
		expiry = now.Add(lifetime).Truncate(time.Second)
	}
	return start, expiry
}

// checkPolicyID refuses IDs that the service or its XML cannot hold, and those of locks.
func checkPolicyID(id string) error {
	switch n := edm.Units(id); {
	case id == "" || !utf8.ValidString(id):
		return errors.New("the policy ID is empty or not valid UTF-8; give a text of 1 to 64 characters")
	case n > maxPolicyID:
		return fmt.Errorf("the policy ID has %d UTF-16 units; it must have 1 to %d", n, maxPolicyID)
	case strings.HasPrefix(id, lockPrefix):
		return fmt.Errorf("the policy ID begins with %s, which is reserved for the library; choose another ID", lockPrefix)
	case strings.ContainsFunc(id, func(r rune) bool { return unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF }):
		return errors.New("the policy ID has a control character, U+FFFE or U+FFFF, which XML cannot hold; use other characters")
	}
	return nil
}

// String names the account.
func (s *Signer) String() string { return fmt.Sprintf("access.Signer(%v, key REDACTED)", s.account) }

// Format writes the text of String for every verb.
func (s *Signer) Format(f fmt.State, verb rune) { format(f, verb, s.String()) }

// LogValue returns the text of String.
func (s *Signer) LogValue() slog.Value { return slog.StringValue(s.String()) }
