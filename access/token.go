package access

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Token is a shared access signature for a table or a range of its keys. Anybody with its text has its rights, so only the two Reveal methods
// return the text: printed, logged, or encoded as JSON, XML or text, a Token shows what it is for and REDACTED, also in an unexported field. To
// send it to its user, send RevealAddress.
type Token struct {
	endpoint string // of the table service
	table    string
	fields   fields
	// query is a function because package fmt prints the content of an unexported field, but only the address of a function.
	query func() string
}

type fields struct {
	keys        Range
	permissions Permission // 0 if the policy sets them
	start       time.Time
	expiry      time.Time
	policy      string
	plain       bool // without TLS
}

// RevealAddress returns the address of the table with the token as its query, as every Azure Storage client accepts it. It is a secret.
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

// Range returns what the token allows.
func (t Token) Range() Range { return t.fields.keys }

// Permissions are 0 if the stored access policy sets them.
func (t Token) Permissions() Permission { return t.fields.permissions }

// Start returns when the token becomes valid, or the zero time if the token does not set it.
func (t Token) Start() time.Time { return t.fields.start }

// Expiry returns the expiry time, or the zero time if the stored access policy sets it.
func (t Token) Expiry() time.Time { return t.fields.expiry }

// Policy returns the ID of the stored access policy, or "".
func (t Token) Policy() string { return t.fields.policy }

// AllowsHTTP reports whether the service accepts the token without TLS.
func (t Token) AllowsHTTP() bool { return t.fields.plain }

// String omits the keys of the range, which are often personal data.
func (t Token) String() string {
	if t.query == nil {
		return "access.Token(none)"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "access.Token(%s/%s", t.endpoint, t.table)
	if t.fields.keys.IsWholeTable() {
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

// LogValue returns the text of String.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText returns the text of String, which cannot be decoded: send RevealAddress to the token's user.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// format writes the text for every verb, in quotes for %q.
func format(f fmt.State, verb rune, text string) {
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	_, _ = f.Write([]byte(text)) // never fails
}

// Permission is a set of operations, joined with |: Query|Update. The zero Permission permits nothing.
//
// Get and Query need Query; Insert needs Add; Replace and Merge need Update; Upsert, and any other insert-or-update, needs Add and Update; Delete
// needs Delete. A Repository's Update, Upsert and unconditional verbs, with patterns its Merge, and after a projection Merge and Delete, read
// first, so they also need Query. A transaction needs the permissions of all its operations. After a lost response the library reads the row;
// without Query the write returns tables.ErrUnknownOutcome.
type Permission uint8

// The permissions of a table's signature.
const (
	Query Permission = 1 << iota
	Add
	Update
	Delete

	// Everything is the set of all permissions.
	Everything = Query | Add | Update | Delete
)

// letters are in the order that a signature must have.
const letters = "raud"

// String returns the permissions in the form of a token; Everything is "raud".
func (p Permission) String() string {
	var b strings.Builder
	for i := range len(letters) {
		if p&(1<<i) != 0 {
			b.WriteByte(letters[i])
		}
	}
	if p > Everything {
		fmt.Fprintf(&b, "?%#x", uint8(p&^Everything))
	}
	return b.String()
}

// Has reports whether p holds all of q.
func (p Permission) Has(q Permission) bool { return p&q == q }

// parsePermission is the inverse of String.
func parsePermission(text string) (Permission, bool) {
	var p Permission
	for _, r := range text {
		i := strings.IndexRune(letters, r)
		if i < 0 {
			return 0, false
		}
		p |= 1 << i
	}
	return p, true
}

// The parameters of a table's signature.
const (
	paramVersion        = "sv"
	paramTable          = "tn"
	paramPermissions    = "sp"
	paramStart          = "st"
	paramExpiry         = "se"
	paramPolicy         = "si"
	paramAddresses      = "sip"
	paramProtocol       = "spr"
	paramSignature      = "sig"
	paramFirstPartition = "spk"
	paramFirstRow       = "srk"
	paramLastPartition  = "epk"
	paramLastRow        = "erk"
)

var known = map[string]bool{
	paramVersion: true, paramTable: true, paramPermissions: true, paramStart: true, paramExpiry: true, paramPolicy: true, paramAddresses: true,
	paramProtocol: true, paramSignature: true, paramFirstPartition: true, paramFirstRow: true, paramLastPartition: true, paramLastRow: true,
}

// Parse reads an address of a table with a shared access signature for it, such as RevealAddress returns. It does not verify the signature. Its
// errors show nothing of the address. Requests: none.
func Parse(address string) (Token, error) {
	const op = "Parse"
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Fragment != "" {
		return Token{}, errs.InvalidIn(op, "", "the text is not the http(s) address of a table; give what RevealAddress returns")
	}
	if u.EscapedPath() != u.Path { // the SDK would send the unescaped path, which may be another address
		return Token{}, errs.InvalidIn(op, "", "the address's path has characters that no name of an account or table may have; give what RevealAddress returns")
	}
	slash := strings.LastIndexByte(u.Path, '/')
	if slash < 0 {
		return Token{}, errs.InvalidIn(op, "", "the address names no table; its path must end with the table's name")
	}
	table, _ := strings.CutSuffix(u.Path[slash+1:], "()")
	if rows.CheckTableName(table) != nil {
		return Token{}, errs.InvalidIn(op, "", "the last part of the address's path is not a table name; it must have 3 to 63 ASCII letters and digits")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Token{}, errs.InvalidIn(op, "", "the address's query cannot be parsed; give the text that RevealAddress returns, unchanged")
	}
	values := map[string]string{}
	for name, list := range query {
		if !known[name] || len(list) != 1 {
			return Token{}, errs.InvalidIn(op, "", "a parameter of the query occurs twice, or is not one of a table's signature; remove it")
		}
		values[name] = list[0]
	}
	t := Token{endpoint: u.Scheme + "://" + u.Host + u.Path[:slash], table: table}
	if t.fields, err = readFields(values); err != nil {
		return Token{}, errs.InvalidIn(op, "", "%w", err)
	}
	switch {
	case !strings.EqualFold(values[paramTable], table):
		return Token{}, errs.InvalidIn(op, "", "the signature (tn) is for another table than the address; both must name one table")
	case u.Scheme == "http" && !t.fields.plain:
		return Token{}, errs.InvalidIn(op, "", "the signature is for HTTPS only (spr), and the address is http; use the https address")
	}
	text := encode(query)
	t.query = func() string { return text }
	return t, nil
}

// readFields parses a token's parameters. Its errors contain no values.
func readFields(values map[string]string) (fields, error) {
	f := fields{policy: values[paramPolicy], plain: values[paramProtocol] != string(aztables.SASProtocolHTTPS)}
	for _, name := range []string{paramSignature, paramVersion, paramTable} {
		if values[name] == "" {
			return f, errors.New("the query has no " + name + ", which each token has; give the whole address")
		}
	}
	var ok bool
	if f.permissions, ok = parsePermission(values[paramPermissions]); !ok {
		return f, errors.New("sp must have only the letters r, a, u and d, in this order")
	}
	if f.policy == "" && (f.permissions == 0 || values[paramExpiry] == "") {
		return f, errors.New("the query has no policy (si), and lacks permissions (sp) or expiry (se); without a policy both are needed")
	}
	if f.start, ok = parseTime(values[paramStart]); !ok {
		return f, errors.New("st is not a time; it must look like 2026-01-31T12:00:00Z")
	}
	if f.expiry, ok = parseTime(values[paramExpiry]); !ok {
		return f, errors.New("se is not a time; it must look like 2026-01-31T12:00:00Z")
	}
	first := tables.Key{Partition: values[paramFirstPartition], Row: values[paramFirstRow]}
	last := tables.Key{Partition: values[paramLastPartition], Row: values[paramLastRow]}
	if f.keys = WholeTable(); first != (tables.Key{}) || last != (tables.Key{}) {
		f.keys = makeRange(first, last)
	}
	if err := f.keys.Err(); err != nil {
		return f, err
	}
	return f, nil
}

// parseTime parses the forms that a signature allows; "" is the zero time.
func parseTime(text string) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// encode writes spaces as %20, which every parser reads as a space, unlike a plus sign.
func encode(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }
