package access

import (
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/tables"
)

// guard is the policy of a Client: it stops requests that the token certainly does not allow. It checks the final
// request, whichever code made it. Requests that it cannot parse go to the service, which decides.
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
	o := operation{method: methodOf(raw.Method, raw.Header), conditional: raw.Header.Get("If-Match") != "", path: path}
	if o.method == http.MethodPost {
		o.body = bodyOf(req)
	}
	o.filter = query.Get("$filter")
	return g.checkOperation(&o)
}

// methodOf returns a request's method, or the method with which the X-HTTP-Method header overrides it.
func methodOf(method string, header http.Header) string {
	if override := header.Get("X-HTTP-Method"); override != "" {
		return override
	}
	return method
}

// operation is one request for entities, alone or in a transaction.
type operation struct {
	method      string
	conditional bool
	path        string // the part after the endpoint, unescaped
	filter      string
	body        []byte // set for an insert
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

// needs returns the permission that an operation needs; ok is false if the permission is not known.
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

// checkFilter refuses a query if no entity can both match its filter and be within the range.
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

// rowsOf returns the row keys of a partition that are in the range; "" means no bound. ok is false if the
// partition has no rows in the range.
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

// misses reports whether no key is both within a query's bounds and from first through last; an empty last is no
// bound.
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
