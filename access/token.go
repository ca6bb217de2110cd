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
// Whoever has a token's text has what it opens, so the text comes out by the two Reveal methods and in no other way: printed with
// any verb of package fmt, logged, or encoded as JSON, XML or text, a Token says what it is for and REDACTED. That holds
// for a token inside of other values too, behind unexported fields included. To send a token to its user, send
// RevealAddress.
type Token struct {
	endpoint string // of the table service
	table    string
	fields   fields
	// query is the token's text. It is a function since package fmt, which calls no methods of what is behind unexported
	// fields, prints a function as its address, but follows a pointer.
	query func() string
}

// fields are what a token says of itself.
type fields struct {
	keys        Range
	permissions Permission // 0 where the policy has them
	start       time.Time
	expiry      time.Time
	policy      string
	plain       bool // good without TLS
}

// RevealAddress returns the address of the table with the token as its query, as every Azure Storage client takes it. It is a
// secret.
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

// IsZero reports whether there is no token.
func (t Token) IsZero() bool { return t.query == nil }

// Table is the name of the table.
func (t Token) Table() string { return t.table }

// Endpoint is the address of the table service.
func (t Token) Endpoint() string { return t.endpoint }

// Range is what the token opens.
func (t Token) Range() Range { return t.fields.keys }

// Permissions are what the token permits; 0 where its policy says that.
func (t Token) Permissions() Permission { return t.fields.permissions }

// Start is when the token begins to be valid; zero where it does not say.
func (t Token) Start() time.Time { return t.fields.start }

// Expiry is when the token ends; zero where its policy says that.
func (t Token) Expiry() time.Time { return t.fields.expiry }

// Policy is the id of the stored access policy that the token stands on, "" for none.
func (t Token) Policy() string { return t.fields.policy }

// AllowsHTTP reports whether the service takes the token without TLS.
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

// Format is String for every verb.
func (t Token) Format(f fmt.State, verb rune) { format(f, verb, t.String()) }

// LogValue is String for log/slog.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText is String for encoding/json and others. There is no way back from it: send RevealAddress to who is to have the
// token.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// format writes a value that shows the same to every verb.
func format(f fmt.State, verb rune, text string) {
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	_, _ = f.Write([]byte(text)) // a fmt.State takes everything
}
