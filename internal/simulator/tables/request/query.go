package request

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
)

// Listing is the common part of a query for entities and a query for tables.
type Listing struct {
	Top    int
	filter odata.Expr
}

// ParseListing parses the options of a query.
func ParseListing(values url.Values) (l Listing, fault *protocol.Fault) {
	if fault = checkOptions(values); fault != nil {
		return l, fault
	}
	if l.filter, fault = checkFilter(values.Get("$filter")); fault != nil {
		return l, fault
	}
	l.Top, fault = parseTop(values)
	return l, fault
}

// Match reports whether an entity or a table with these properties matches the filter.
func (l *Listing) Match(property func(name string) edm.Value) bool {
	return odata.Match(l.filter, property)
}

// Query is a query for the entities of one table, parsed and checked against every stateless rule.
type Query struct {
	Listing
	Plan   odata.Plan
	Fields []string // of $select; nil means all
	From   Continuation
}

// Continuation is the key at which a query continues. Without a row key, the query continues at the
// partition's first row.
type Continuation struct {
	Set            bool
	Partition, Row string
	// After says that the Chaos made the previous page empty, so that this page is not empty.
	After bool
}

// ParseQuery parses a query's options.
func ParseQuery(values url.Values) (*Query, *protocol.Fault) {
	listing, fault := ParseListing(values)
	if fault != nil {
		return nil, fault
	}
	q := &Query{Listing: listing, Plan: odata.Classify(listing.filter)}
	if q.Fields, fault = parseSelect(values.Get("$select")); fault != nil {
		return nil, fault
	}
	q.From, fault = parseContinuation(values.Get("NextPartitionKey"), values.Get("NextRowKey"))
	return q, fault
}

// Shape returns the level of metadata and the properties that a request for one entity asks for. selected distinguishes an
// empty $select from none.
func (c *Call) Shape() (m entity.Metadata, fields []string, selected bool, fault *protocol.Fault) {
	if m, fault = c.Level(); fault != nil || c.Req.URL.RawQuery == "" {
		return m, nil, false, fault
	}
	values := protocol.Query(c.Req.URL)
	fields, fault = parseSelect(values.Get("$select"))
	return m, fields, values.Has("$select"), fault
}

// checkOptions refuses the OData options that the service does not implement. Like the service, it ignores unknown options.
func checkOptions(values url.Values) *protocol.Fault {
	for _, name := range []string{"$orderby", "$skip", "$inlinecount"} {
		if values.Has(name) {
			return notImplemented()
		}
	}
	return nil
}

// parseTop parses $top. 0 is allowed: such a page has no entities and no next page.
func parseTop(values url.Values) (int, *protocol.Fault) {
	if !values.Has("$top") {
		return edm.MaxPageSize, nil
	}
	top, err := strconv.Atoi(values.Get("$top"))
	if err != nil || top < 0 || top > edm.MaxPageSize {
		return 0, protocol.InvalidInput("One of the request inputs is not valid.")
	}
	return top, nil
}

// parseSelect parses $select; an empty text and an asterisk mean all properties.
func parseSelect(text string) ([]string, *protocol.Fault) {
	if text == "" || text == "*" {
		return nil, nil
	}
	var fields []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if edm.CheckName(name) != nil {
			return nil, protocol.InvalidSyntax()
		}
		if !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	return fields, nil
}

// The parts of a continuation token resemble the service's: a version, a length, and base64 with other characters in place of
// those that have a meaning in URLs. Version 2 exists only in this simulator.
const (
	tokenVersion      = "1"
	tokenVersionAfter = "2"
)

// Token makes a part of a continuation token from a key. after says that Chaos made the previous page empty.
func Token(key string, after bool) string {
	version := tokenVersion
	if after {
		version = tokenVersionAfter
	}
	text := strings.NewReplacer("+", "*", "/", "_", "=", "-").Replace(base64.StdEncoding.EncodeToString([]byte(key)))
	return version + "!" + strconv.Itoa(len(text)) + "!" + text
}

// ParseToken parses a text that Token made.
func ParseToken(token string) (key string, after, ok bool) {
	version, rest, _ := strings.Cut(token, "!")
	length, text, _ := strings.Cut(rest, "!")
	if version != tokenVersion && version != tokenVersionAfter || length != strconv.Itoa(len(text)) {
		return "", false, false
	}
	plain, err := base64.StdEncoding.DecodeString(strings.NewReplacer("*", "+", "_", "/", "-", "=").Replace(text))
	return string(plain), version == tokenVersionAfter, err == nil
}

func parseContinuation(partition, row string) (Continuation, *protocol.Fault) {
	if partition == "" && row == "" {
		return Continuation{}, nil
	}
	c := Continuation{Set: true}
	var ok bool
	if c.Partition, c.After, ok = ParseToken(partition); !ok {
		return c, protocol.InvalidInput("One of the request inputs is not valid.")
	}
	if row != "" {
		if c.Row, _, ok = ParseToken(row); !ok {
			return c, protocol.InvalidInput("One of the request inputs is not valid.")
		}
	}
	return c, nil
}

// Start returns the first key within the filter's bounds.
func (q *Query) Start() (pk, rk string) {
	switch q.Plan.Class {
	case odata.PointQuery:
		return q.Plan.PartitionKey, q.Plan.RowKey
	case odata.RangeQuery:
		return q.Plan.PartitionKey, q.Plan.RowFrom.Key
	case odata.PartitionScan:
		return q.Plan.PartitionKey, ""
	}
	return q.Plan.PartitionFrom.Key, ""
}

// Ended reports whether e, and so every row after it, is beyond the filter's bounds.
func (q *Query) Ended(e *entity.Stored) bool {
	switch q.Plan.Class {
	case odata.TableScan:
		return q.Plan.PartitionTo.Set && compoundkey.Compare(e.Partition, q.Plan.PartitionTo.Key) > 0
	case odata.PartitionScan:
		return e.Partition != q.Plan.PartitionKey
	case odata.PointQuery:
		return e.Partition != q.Plan.PartitionKey || e.Row != q.Plan.RowKey
	}
	return e.Partition != q.Plan.PartitionKey || q.Plan.RowTo.Set && compoundkey.Compare(e.Row, q.Plan.RowTo.Key) > 0
}
