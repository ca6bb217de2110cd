package access

import (
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

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

// Parse reads the address that RevealAddress returns, or any other address of a table with a shared access signature
// for it. It makes no request and does not verify the signature. Its errors name the wrong part and show nothing of
// the address.
func Parse(address string) (Token, error) {
	const op = "Parse"
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Fragment != "" {
		return Token{}, tables.InvalidIn(op, "", "the text is not the http(s) address of a table; give what RevealAddress returns")
	}
	if u.EscapedPath() != u.Path { // the SDK sends the path unescaped, so it could become another address
		return Token{}, tables.InvalidIn(op, "", "the address's path has characters that no name of an account or table may have; give what RevealAddress returns")
	}
	slash := strings.LastIndexByte(u.Path, '/')
	if slash < 0 {
		return Token{}, tables.InvalidIn(op, "", "the address names no table; its path must end with the table's name")
	}
	table, _ := strings.CutSuffix(u.Path[slash+1:], "()")
	if rows.CheckTableName(table) != nil {
		return Token{}, tables.InvalidIn(op, "", "the last part of the address's path is not a table name; it must have 3 to 63 ASCII letters and digits")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Token{}, tables.InvalidIn(op, "", "the address's query cannot be parsed; give the text that RevealAddress returns, unchanged")
	}
	values := map[string]string{}
	for name, list := range query {
		if !known[name] || len(list) != 1 {
			return Token{}, tables.InvalidIn(op, "", "a parameter of the query occurs twice, or is not one of a table's signature; remove it")
		}
		values[name] = list[0]
	}
	t := Token{endpoint: u.Scheme + "://" + u.Host + u.Path[:slash], table: table}
	if t.fields, err = readFields(values); err != nil {
		return Token{}, tables.InvalidIn(op, "", "%w", err)
	}
	switch {
	case !strings.EqualFold(values[paramTable], table):
		return Token{}, tables.InvalidIn(op, "", "the signature (tn) is for another table than the address; both must name one table")
	case u.Scheme == "http" && !t.fields.plain:
		return Token{}, tables.InvalidIn(op, "", "the signature is for HTTPS only (spr), and the address is http; use the https address")
	}
	text := encode(query)
	t.query = func() string { return text }
	return t, nil
}

// fieldError describes what is wrong with a parameter, without its value.
type fieldError string

func (e fieldError) Error() string { return string(e) }

func readFields(values map[string]string) (fields, error) {
	f := fields{policy: values[paramPolicy], plain: values[paramProtocol] != string(aztables.SASProtocolHTTPS)}
	for _, name := range []string{paramSignature, paramVersion, paramTable} {
		if values[name] == "" {
			return f, fieldError("the query has no " + name + ", which each token has; give the whole address")
		}
	}
	var ok bool
	if f.permissions, ok = parsePermission(values[paramPermissions]); !ok {
		return f, fieldError("sp must have only the letters r, a, u and d, in this order")
	}
	if f.policy == "" && (f.permissions == 0 || values[paramExpiry] == "") {
		return f, fieldError("the query has no policy (si), and lacks permissions (sp) or expiry (se); without a policy both are needed")
	}
	if f.start, ok = parseTime(values[paramStart]); !ok {
		return f, fieldError("st is not a time; it must look like 2026-01-31T12:00:00Z")
	}
	if f.expiry, ok = parseTime(values[paramExpiry]); !ok {
		return f, fieldError("se is not a time; it must look like 2026-01-31T12:00:00Z")
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

// parseTime parses a time in the forms that a signature allows; "" is the zero time.
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

// encode encodes a query with spaces as %20, which every parser reads as a space, unlike a plus sign.
func encode(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }
