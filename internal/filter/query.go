// Package filter makes the filter and the selection of a query: typed conditions, spans of row keys and filters in the service's own
// language become one expression of package odata.
package filter

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// Query holds all limits of a query.
type Query struct {
	Partition, Row *string            // nil for any
	Spans          []compoundkey.Span // spans of row keys; a row must be in all of them
	Terms          []Term
	Filters        []string // in the service's own language

	// Marked names a property of rows that pass whatever Terms and Filters say, as far as these do not speak of keys; "" for none. It needs one
	// of the comparisons that a filter may have.
	Marked string

	// Filterable returns an error for a property that conditions cannot use, such as one that the rows do not have: the query would
	// silently find nothing. It is not asked about keys and Timestamp. Nil allows all.
	Filterable func(property string) error
}

// Expr returns the filter that combines all limits of the query; nil means that every row matches.
func (q Query) Expr(types Types) (odata.Expr, error) {
	var terms []odata.Expr
	if q.Partition != nil {
		if err := rows.CheckKey("partition key", *q.Partition); err != nil {
			return nil, err
		}
		terms = append(terms, key("PartitionKey", odata.Eq, *q.Partition))
	}
	if q.Row != nil {
		if err := rows.CheckKey("row key", *q.Row); err != nil {
			return nil, err
		}
		terms = append(terms, key("RowKey", odata.Eq, *q.Row))
	}
	spans, err := q.spans()
	if err != nil {
		return nil, err
	}
	terms = append(terms, spans...)
	conditions, err := q.conditions(types)
	if err != nil {
		return nil, err
	}
	if err := q.check(odata.AllOf(conditions...)); err != nil {
		return nil, err
	}
	if q.Marked != "" {
		conditions = orMarked(conditions, q.Marked)
	}
	return odata.AllOf(append(terms, conditions...)...), nil
}

// Conditions returns what Terms and Filters demand of a row that is not marked; nil means nothing.
func (q Query) Conditions(types Types) (odata.Expr, error) {
	conditions, err := q.conditions(types)
	return odata.AllOf(conditions...), err
}

func (q Query) conditions(types Types) (all []odata.Expr, err error) {
	for _, t := range q.Terms {
		term, err := t.expr(types)
		if err != nil {
			return nil, err
		}
		all = append(all, term)
	}
	for _, filter := range q.Filters {
		term, err := odata.Parse(filter)
		if err != nil {
			return nil, err
		}
		all = append(all, term)
	}
	return all, nil
}

// orMarked lets rows with the property mark pass the conditions, too. The keys of such a row are right, so that conditions on keys alone stay
// outside of the "or", where they go on limiting what the service reads.
func orMarked(conditions []odata.Expr, mark string) []odata.Expr {
	var keys, others []odata.Expr
	for _, c := range operands(odata.AllOf(conditions...)) {
		if onlyKeys(c) {
			keys = append(keys, c)
			continue
		}
		others = append(others, c)
		if p := odata.Classify(c); p.Class != odata.TableScan { // an "or" of which both sides name the same partition
			keys = append(keys, key("PartitionKey", odata.Eq, p.PartitionKey))
		}
	}
	if len(others) == 0 {
		return conditions
	}
	return append(keys, odata.AnyOf(odata.AllOf(others...), odata.Comparison{Property: mark, Op: odata.Gt, Value: edm.String("")}))
}

// operands returns the expressions that e joins by "and".
func operands(e odata.Expr) []odata.Expr {
	if and, ok := e.(odata.And); ok {
		return append(operands(and.Left), operands(and.Right)...)
	}
	return []odata.Expr{e}
}

func onlyKeys(e odata.Expr) bool {
	return !slices.ContainsFunc(odata.Properties(e), func(name string) bool { return name != "PartitionKey" && name != "RowKey" })
}

// spans returns the conditions that limit the row keys to all spans. If Row is set, it returns no condition, or
// Constant(false) if a span does not contain Row.
func (q Query) spans() ([]odata.Expr, error) {
	from, to := "", ""
	for _, span := range q.Spans {
		if err := span.Err(); err != nil {
			return nil, err
		}
		if q.Row != nil && !span.Contains(*q.Row) {
			return []odata.Expr{odata.Constant(false)}, nil
		}
		if compoundkey.Compare(span.From(), from) > 0 {
			from = span.From()
		}
		if span.To() != "" && (to == "" || compoundkey.Compare(span.To(), to) < 0) {
			to = span.To()
		}
	}
	var terms []odata.Expr
	if from != "" && q.Row == nil {
		terms = append(terms, key("RowKey", odata.Ge, from))
	}
	if to != "" && q.Row == nil {
		terms = append(terms, key("RowKey", odata.Lt, to))
	}
	return terms, nil
}

// check returns an error for a condition on a property that conditions cannot use.
func (q Query) check(expr odata.Expr) error {
	for _, name := range odata.Properties(expr) {
		if q.Filterable == nil || slices.Contains(always, name) {
			continue
		}
		if err := q.Filterable(name); err != nil {
			return fmt.Errorf("condition on %s: %w", name, err)
		}
	}
	return nil
}

func key(property string, op odata.Op, key string) odata.Expr {
	return odata.Comparison{Property: property, Op: op, Value: edm.String(key)}
}

// always are the properties that every row has, and that every selection contains.
var always = []string{"PartitionKey", "RowKey", "Timestamp"}

// Selection returns the properties that the caller has selected and those that reading needs; nil means all properties. check
// returns an error for a selected property that the rows do not have.
func Selection(needed, selected []string, check func(property string) error) ([]string, error) {
	if len(selected) == 0 {
		return nil, nil
	}
	names := slices.Clone(always)
	for i, name := range slices.Concat(needed, selected) {
		if strings.ContainsAny(name, ",&# ") || name == "" {
			return nil, fmt.Errorf("selected property %q: a name must not be empty or have any of \",&# \"", name)
		}
		if slices.Contains(names, name) {
			continue
		}
		if i >= len(needed) {
			if err := check(name); err != nil {
				return nil, fmt.Errorf("selected property %s: %w", name, err)
			}
		}
		names = append(names, name)
	}
	return names, nil
}

// After returns the filter, "" for none, limited to the rows after the one with the given keys. If the filter scans the whole table, the
// result also includes the partitions after that row's.
func After(filter string, scansTable bool, partition, row string) (string, error) {
	rest := key("RowKey", odata.Gt, row)
	if scansTable {
		rest = odata.AnyOf(key("PartitionKey", odata.Gt, partition), odata.AllOf(key("PartitionKey", odata.Eq, partition), rest))
	}
	if filter != "" {
		filter = "(" + filter + ") and "
	}
	text, err := odata.Append(nil, rest)
	return filter + "(" + string(text) + ")", err
}

// Types returns the types under which values are stored.
type Types struct {
	Declared func(property string) edm.Type     // TypeNull for a property that is not declared
	ValueOf  func(value any) (edm.Value, error) // the EDM value that a field of the value's type would be stored as
}

// Term returns the expression of a condition. A nil Term means that the caller has not made the condition
// with the functions of this package.
type Term func(Types) (odata.Expr, error)

var errNoCondition = errors.New("a condition is empty; make it with Eq, Ne, Gt, Ge, Lt or Le, and give And, Or and Not at least one")

func (t Term) expr(types Types) (odata.Expr, error) {
	if t == nil {
		return nil, errNoCondition
	}
	return t(types)
}

// Compare compares a property with a value.
func Compare(op odata.Op, property string, value any) Term {
	return func(types Types) (odata.Expr, error) {
		v, err := types.literal(property, value)
		if err != nil {
			return nil, err
		}
		return odata.Comparison{Property: property, Op: op, Value: v}, nil
	}
}

// Join joins terms by odata.AllOf or odata.AnyOf.
func Join(terms []Term, join func(...odata.Expr) odata.Expr) Term {
	return func(types Types) (odata.Expr, error) {
		if len(terms) == 0 {
			return nil, errNoCondition
		}
		exprs := make([]odata.Expr, len(terms))
		for i, term := range terms {
			var err error
			if exprs[i], err = term.expr(types); err != nil {
				return nil, err
			}
		}
		return join(exprs...), nil
	}
}

// Not returns a term that matches where the given one does not.
func Not(term Term) Term {
	return func(types Types) (odata.Expr, error) {
		expr, err := term.expr(types)
		return odata.Not{X: expr}, err
	}
}

// literal returns the value to compare with, in the declared type of the property if it has one: the service compares an Edm.Int64 property
// only with an Edm.Int64 literal.
func (types Types) literal(property string, x any) (edm.Value, error) {
	declared := types.Declared(property)
	switch property {
	case "PartitionKey", "RowKey":
		declared = edm.TypeString
	case "Timestamp":
		declared = edm.TypeDateTime
	default:
		if err := edm.CheckName(property); err != nil {
			return edm.Value{}, err
		}
	}
	v, err := types.ValueOf(x)
	if err != nil {
		return edm.Value{}, fmt.Errorf("condition on %s: %w", property, err)
	}
	if declared == edm.TypeNull || v.Type() == declared {
		return v, nil
	}
	if n, ok := v.Int(); ok {
		switch {
		case declared == edm.TypeInt64:
			return edm.Int64(n), nil
		case declared == edm.TypeInt32 && n >= math.MinInt32 && n <= math.MaxInt32:
			return edm.Int32(int32(n)), nil
		case declared == edm.TypeDouble && int64(float64(n)) == n:
			return edm.Double(float64(n)), nil
		}
	}
	if m, ok := x.(encoding.TextMarshaler); ok && declared == edm.TypeString {
		text, err := m.MarshalText()
		return edm.String(string(text)), err
	}
	return edm.Value{}, fmt.Errorf("condition on %s: cannot compare a value of Go type %s with a property of type %s", property, reflect.TypeOf(x), declared)
}
