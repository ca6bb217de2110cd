package access

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Token is a shared access signature for a table or a range of its keys. Signer.Sign makes one, Parse reads one.
//
// Anybody with a token's text has its rights, so only the two Reveal methods return the text: printed with any verb
// of package fmt, logged, or encoded as JSON, XML or text, a Token shows what it is for and REDACTED. That also holds
// for a token in an unexported field of another value. To send a token to its user, send RevealAddress.
type Token struct {
	endpoint string // address of the table service
	table    string
	fields   fields
	// query returns the token's text. It is a function because package fmt does not call methods of
	// unexported fields: with verbs such as %s it would print a struct behind a pointer, but of a function it prints only the address.
	query func() string
}

// fields are the parameters of a token.
type fields struct {
	keys        Range
	permissions Permission // 0 if the policy sets them
	start       time.Time
	expiry      time.Time
	policy      string
	plain       bool // valid without TLS
}

// RevealAddress returns the address of the table with the token as its query, in the form that every Azure
// Storage client accepts. It is a secret.
func (t Token) RevealAddress() string {
	if t.query == nil {
		return ""
	}
	return t.endpoint + "/" + t.table + "?" + t.query()
}

// RevealQuery returns the token alone, without question mark. It is a secret.
func (t Token) RevealQuery() string {
	if t.query == nil {
		return ""
	}
	return t.query()
}

// IsZero reports whether this is the zero Token.
func (t Token) IsZero() bool { return t.query == nil }

// Table returns the name of the table.
func (t Token) Table() string { return t.table }

// Endpoint returns the address of the table service.
func (t Token) Endpoint() string { return t.endpoint }

// Range returns the range that the token allows.
func (t Token) Range() Range { return t.fields.keys }

// Permissions returns the permissions in the token, or 0 if the stored access policy sets them.
func (t Token) Permissions() Permission { return t.fields.permissions }

// Start returns when the token becomes valid, or the zero time if the token does not set it.
func (t Token) Start() time.Time { return t.fields.start }

// Expiry returns the expiry time, or the zero time if the stored access policy sets it.
func (t Token) Expiry() time.Time { return t.fields.expiry }

// Policy returns the ID of the token's stored access policy, "" for none.
func (t Token) Policy() string { return t.fields.policy }

// AllowsHTTP reports whether the service accepts the token without TLS.
func (t Token) AllowsHTTP() bool { return t.fields.plain }

// String says what the token is for, without the keys of its range, which are often personal data.
func (t Token) String() string {
	if t.query == nil {
		return "access.Token(none)"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "access.Token(%s/%s", t.endpoint, t.table)
	if t.fields.keys.everything {
		b.WriteString(" whole table")
	}
	if t.fields.permissions != 0 {
		fmt.Fprintf(&b, " sp=%v", t.fields.permissions)
	}
	if t.fields.policy != "" {
		fmt.Fprintf(&b, " si=%q", t.fields.policy)
	}
	if !t.fields.expiry.IsZero() {
		fmt.Fprintf(&b, " se=%s", t.fields.expiry.Format(time.RFC3339))
	}
	b.WriteString(" sig=REDACTED)")
	return b.String()
}

// Format writes the text of String for every verb.
func (t Token) Format(f fmt.State, verb rune) { format(f, verb, t.String()) }

// LogValue returns the text of String, for log/slog.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText returns the text of String, for encoding/json and other encoders. The text cannot be decoded
// into a token: send RevealAddress to the token's user.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// format writes the same text for every verb.
func format(f fmt.State, verb rune, text string) {
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	_, _ = f.Write([]byte(text)) // writing to a fmt.State never fails
}
