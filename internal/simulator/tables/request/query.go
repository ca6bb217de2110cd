package simulator

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
)

// query is a request for the entities of one table, read and held against every rule that needs no state.
type query struct {
	filter odata.Expr
	plan   odata.Plan
	fields []string // of $select; nil is all
	top    int
	from   continuation
}

// continuation is where a query goes on. Without a row it goes on at the partition's first.
type continuation struct {
	set    bool
	pk, rk string
	// after says that the page before this one was made empty, so that this one is not.
	after bool
}

// parseQuery reads a query's options.
func parseQuery(values url.Values) (*query, *Fault) {
	q := &query{}
	fault := checkOptions(values)
	if fault != nil {
		return nil, fault
	}
	if q.filter, fault = CheckFilter(values.Get("$filter")); fault != nil {
		return nil, fault
	}
	q.plan = odata.Classify(q.filter)
	if q.top, fault = parseTop(values); fault != nil {
		return nil, fault
	}
	if q.fields, fault = parseSelect(values.Get("$select")); fault != nil {
		return nil, fault
	}
	q.from, fault = parseContinuation(values.Get("NextPartitionKey"), values.Get("NextRowKey"))
	return q, fault
}

// checkOptions refuses the options of OData that the service does not implement. Others that it does not know it ignores.
func checkOptions(values url.Values) *Fault {
	for _, name := range []string{"$orderby", "$skip", "$inlinecount"} {
		if values.Has(name) {
			return faultNotImplemented()
		}
	}
	return nil
}

// parseTop reads $top. Nought is a number like any other: such a page has no entities, and none follows it.
func parseTop(values url.Values) (int, *Fault) {
	if !values.Has("$top") {
		return edm.MaxPageSize, nil
	}
	top, err := strconv.Atoi(values.Get("$top"))
	if err != nil || top < 0 || top > edm.MaxPageSize {
		return 0, faultInput("One of the request inputs is not valid.")
	}
	return top, nil
}

// parseSelect reads $select; an empty one and an asterisk are all properties.
func parseSelect(text string) ([]string, *Fault) {
	if text == "" || text == "*" {
		return nil, nil
	}
	var fields []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if edm.CheckName(name) != nil {
			return nil, faultSyntax()
		}
		if !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	return fields, nil
}

// The parts of a continuation look like those of the service: a version, a length, and base64 with other characters
// where addresses have a use for them. Version 2 is of this simulator alone.
const (
	tokenVersion      = "1"
	tokenVersionAfter = "2"
)

func appendToken(key string, after bool) string {
	version := tokenVersion
	if after {
		version = tokenVersionAfter
	}
	text := strings.NewReplacer("+", "*", "/", "_", "=", "-").Replace(base64.StdEncoding.EncodeToString([]byte(key)))
	return version + "!" + strconv.Itoa(len(text)) + "!" + text
}

func parseToken(token string) (key string, after, ok bool) {
	version, rest, _ := strings.Cut(token, "!")
	length, text, _ := strings.Cut(rest, "!")
	if version != tokenVersion && version != tokenVersionAfter || length != strconv.Itoa(len(text)) {
		return "", false, false
	}
	plain, err := base64.StdEncoding.DecodeString(strings.NewReplacer("*", "+", "_", "/", "-", "=").Replace(text))
	return string(plain), version == tokenVersionAfter, err == nil
}

func parseContinuation(partition, row string) (continuation, *Fault) {
	if partition == "" && row == "" {
		return continuation{}, nil
	}
	c := continuation{set: true}
	var ok bool
	if c.pk, c.after, ok = parseToken(partition); !ok {
		return c, faultInput("One of the request inputs is not valid.")
	}
	if row != "" {
		if c.rk, _, ok = parseToken(row); !ok {
			return c, faultInput("One of the request inputs is not valid.")
		}
	}
	return c, nil
}

// start returns the first key that the filter lets through.
func (q *query) start() (pk, rk string) {
	switch q.plan.Class {
	case odata.PointQuery:
		return q.plan.PartitionKey, q.plan.RowKey
	case odata.RangeQuery:
		return q.plan.PartitionKey, q.plan.RowFrom.Key
	case odata.PartitionScan:
		return q.plan.PartitionKey, ""
	}
	return q.plan.PartitionFrom.Key, ""
}

// ended tells whether e and all after it are beyond what the filter lets through.
func (q *query) ended(e *entity) bool {
	switch q.plan.Class {
	case odata.TableScan:
		return q.plan.PartitionTo.Set && compoundkey.Compare(e.pk, q.plan.PartitionTo.Key) > 0
	case odata.PartitionScan:
		return e.pk != q.plan.PartitionKey
	case odata.PointQuery:
		return e.pk != q.plan.PartitionKey || e.rk != q.plan.RowKey
	}
	return e.pk != q.plan.PartitionKey || q.plan.RowTo.Set && compoundkey.Compare(e.rk, q.plan.RowTo.Key) > 0
}

// passes tells whether e is a result.
func (q *query) passes(e *entity) bool { return odata.Match(q.filter, e.get) }
