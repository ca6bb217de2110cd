// Package filter makes the filter and the selection of a query: typed conditions, spans of row keys and filters in the service's own
// language become one expression of package odata.
package filter

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
)

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
