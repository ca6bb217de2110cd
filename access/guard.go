package access

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/tables"
)

// guard refuses requests that the token certainly does not allow, and leaves those that it cannot parse to the service.
type guard struct {
	token  Token
	prefix string // the path in front of the table
}

// Do sends the request unless it is refused.
func (g *guard) Do(req *policy.Request) (*http.Response, error) {
	if r := g.check(req); r != nil {
		return nil, r
	}
	return req.Next()
}

func (g *guard) check(req *policy.Request) *refusal {
	raw := req.Raw()
	path, ours := strings.CutPrefix(raw.URL.Path, g.prefix)
	if !ours {
		return notPermitted("the address is of another account than the token's; use another client for it")
	}
	if path == "$batch" {
		return g.checkBatch(bodyOf(req), raw.Header.Get("Content-Type"))
	}
	query := raw.URL.Query()
	if query.Has("comp") || query.Has("restype") {
		return notPermitted("policies and properties of a table need the account's key; use Policies, or a client with the key")
	}
	o := operation{method: cmp.Or(raw.Header.Get("X-HTTP-Method"), raw.Method), conditional: raw.Header.Get("If-Match") != "",
		path: path, filter: query.Get("$filter")}
	if o.method == http.MethodPost {
		o.body = bodyOf(req)
	}
	return g.checkOperation(&o)
}

// operation is one request for entities, alone or in a transaction.
type operation struct {
	method      string
	conditional bool
	path        string // after the endpoint, unescaped
	filter      string
	body        []byte // of an insert
}

func (g *guard) checkOperation(o *operation) *refusal {
	table, key, one := splitPath(o.path)
	if !strings.EqualFold(table, g.token.table) {
		return notPermitted("the token is for table " + g.token.table + "; use a token for the other one")
	}
	need, known := o.needs()
	if has := g.token.fields.permissions; known && has != 0 && !has.Has(need) {
		return notPermitted("the operation needs " + need.String() + ", and the token has " + has.String() + "; use a token with more permissions")
	}
	switch {
	case one:
		return g.checkKey(key)
	case o.method == http.MethodPost:
		if key, ok := keyOfBody(o.body); ok {
			return g.checkKey(key)
		}
	case o.method == http.MethodGet:
		return g.checkFilter(o.filter)
	}
	return nil
}

// needs returns the permission that an operation needs; false for an unknown method.
func (o *operation) needs() (Permission, bool) {
	switch o.method {
	case http.MethodGet, http.MethodHead:
		return Query, true
	case http.MethodPost:
		return Add, true
	case http.MethodPut, http.MethodPatch, "MERGE":
		if !o.conditional {
			return Add | Update, true
		}
		return Update, true
	case http.MethodDelete:
		return Delete, true
	}
	return 0, false
}

func (g *guard) checkKey(key tables.Key) *refusal {
	if g.token.fields.keys.Contains(key) {
		return nil
	}
	return &refusal{kind: ErrOutside, key: &key}
}

// checkFilter refuses a filter that matches keys, but none within the range.
func (g *guard) checkFilter(filter string) *refusal {
	expr, err := odata.Parse(filter)
	if err != nil {
		return nil
	}
	plan, keys := odata.Classify(expr), g.token.fields.keys
	if plan.Empty {
		return nil
	}
	if plan.Class == odata.TableScan {
		if misses(plan.PartitionFrom, plan.PartitionTo, keys.spk, keys.epk) {
			return &refusal{kind: ErrOutside, what: "all partitions of the query; query partitions that Grant.Range contains"}
		}
		return nil
	}
	if plan.Class == odata.PointQuery {
		return g.checkKey(tables.Key{Partition: plan.PartitionKey, Row: plan.RowKey})
	}
	first, last, ok := keys.rowsOf(plan.PartitionKey)
	if !ok || misses(plan.RowFrom, plan.RowTo, first, last) {
		return &refusal{kind: ErrOutside, what: "all rows of the query; query rows that Grant.Range contains"}
	}
	return nil
}

// rowsOf returns the first and last row keys of a partition in the range; "" is no bound. ok is false if there are none.
func (r Range) rowsOf(partition string) (first, last string, ok bool) {
	atFirst, atLast := compoundkey.Compare(partition, r.spk), compoundkey.Compare(partition, r.epk)
	if atFirst < 0 || r.epk != "" && atLast > 0 {
		return "", "", false
	}
	if atFirst == 0 {
		first = r.srk
	}
	if atLast == 0 {
		last = r.erk
	}
	return first, last, true
}

// misses reports whether a query's bounds have no key from first through last. An empty last is no bound.
func misses(from, to odata.Bound, first, last string) bool {
	if to.Set {
		if order := compoundkey.Compare(to.Key, first); order < 0 || order == 0 && !to.Inclusive {
			return true
		}
	}
	if from.Set && last != "" {
		if order := compoundkey.Compare(from.Key, last); order > 0 || order == 0 && !from.Inclusive {
			return true
		}
	}
	return false
}

func notPermitted(what string) *refusal { return &refusal{kind: ErrNotPermitted, what: what} }

// bodyOf returns a request's body and rewinds it; nil if that fails.
func bodyOf(req *policy.Request) []byte {
	if req.Body() == nil || req.RewindBody() != nil {
		return nil
	}
	body, err := io.ReadAll(req.Body())
	if req.RewindBody() != nil || err != nil {
		return nil
	}
	return body
}

// splitPath parses Table, Table() or Table(PartitionKey='...',RowKey='...'); one is true for the last.
func splitPath(path string) (table string, key tables.Key, one bool) {
	table, rest, _ := strings.Cut(path, "(")
	rest, ok := strings.CutPrefix(rest, "PartitionKey=")
	if !ok {
		return table, key, false
	}
	if key.Partition, rest, ok = cutQuoted(rest); !ok {
		return table, key, false
	}
	if rest, ok = strings.CutPrefix(rest, ",RowKey="); !ok {
		return table, key, false
	}
	key.Row, rest, ok = cutQuoted(rest)
	return table, key, ok && rest == ")"
}

// cutQuoted parses a text in quotes, which are doubled inside, and returns it and the rest of s.
func cutQuoted(s string) (text, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, "'")
	var b strings.Builder
	for ok {
		var part string
		if part, s, ok = strings.Cut(s, "'"); !ok {
			break
		}
		b.WriteString(part)
		doubled := false
		if s, doubled = strings.CutPrefix(s, "'"); !doubled {
			return b.String(), s, true
		}
		b.WriteByte('\'')
	}
	return "", "", false
}

// keyOfBody finds the key in an entity's JSON, and reads no further.
func keyOfBody(body []byte) (key tables.Key, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return key, false
	}
	found := 0
	for found < 2 {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return key, false
		}
		var into *string
		switch name.String() {
		case "PartitionKey":
			into = &key.Partition
		case "RowKey":
			into = &key.Row
		default:
			if d.SkipValue() != nil {
				return key, false
			}
			continue
		}
		value, err := d.ReadToken()
		if err != nil || value.Kind() != '"' {
			return key, false
		}
		*into = value.String()
		found++
	}
	return key, true
}

func (g *guard) checkBatch(body []byte, contentType string) *refusal {
	for part := range parts(bytes.NewReader(body), contentType) {
		for inner := range parts(part, part.Header.Get("Content-Type")) {
			if o, ok := readOperation(inner, g.prefix); ok {
				if r := g.checkOperation(&o); r != nil {
					return r
				}
			}
		}
	}
	return nil
}

// parts yields the parts of a multipart body, up to the first error.
func parts(body io.Reader, contentType string) iter.Seq[*multipart.Part] {
	return func(yield func(*multipart.Part) bool) {
		kind, parameters, err := mime.ParseMediaType(contentType)
		if err != nil || !strings.HasPrefix(kind, "multipart/") || parameters["boundary"] == "" {
			return
		}
		for r := multipart.NewReader(body, parameters["boundary"]); ; {
			part, err := r.NextRawPart()
			if err != nil || !yield(part) {
				return
			}
		}
	}
}

func readOperation(part io.Reader, prefix string) (operation, bool) {
	r := bufio.NewReader(part)
	line, err := r.ReadString('\n')
	if err != nil {
		return operation{}, false
	}
	method, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	address, _, _ := strings.Cut(rest, " HTTP/")
	u, err := url.Parse(address)
	if err != nil {
		return operation{}, false
	}
	o := operation{method: method, filter: u.Query().Get("$filter")}
	if o.path, _ = strings.CutPrefix(u.Path, prefix); o.path == u.Path {
		return operation{}, false
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return operation{}, false
		}
		name, value, header := strings.Cut(strings.TrimSpace(line), ":")
		if !header {
			break // before the body
		}
		switch http.CanonicalHeaderKey(name) {
		case "If-Match":
			o.conditional = true
		case "X-Http-Method":
			o.method = strings.TrimSpace(value)
		}
	}
	o.body, err = io.ReadAll(r)
	return o, err == nil
}
