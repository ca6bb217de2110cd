package tables

import (
	"encoding"
	"fmt"
	"math"
	"reflect"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
)

// Condition is a typed condition on an entity's properties. Literals are escaped and typed as the property is
// declared in T, else as a field of the value's Go type would be stored.
type Condition struct {
	op       odata.Op
	property string
	value    any
	join     joinKind
	terms    []Condition
}

type joinKind uint8

const (
	joinNone joinKind = iota
	joinAnd
	joinOr
	joinNot
)

// Eq holds where the property equals value.
func Eq(property string, value any) Condition { return compare(odata.Eq, property, value) }

// Ne holds where the property differs from value. An entity without the property does not match.
func Ne(property string, value any) Condition { return compare(odata.Ne, property, value) }

// Gt holds where the property is greater than value.
func Gt(property string, value any) Condition { return compare(odata.Gt, property, value) }

// Ge holds where the property is greater than value or equal.
func Ge(property string, value any) Condition { return compare(odata.Ge, property, value) }

// Lt holds where the property is less than value.
func Lt(property string, value any) Condition { return compare(odata.Lt, property, value) }

// Le holds where the property is less than value or equal.
func Le(property string, value any) Condition { return compare(odata.Le, property, value) }

func compare(op odata.Op, property string, value any) Condition {
	return Condition{op: op, property: property, value: value}
}

// And holds where all of the conditions do.
func And(conditions ...Condition) Condition { return Condition{join: joinAnd, terms: conditions} }

// Or holds where one of the conditions does.
func Or(conditions ...Condition) Condition { return Condition{join: joinOr, terms: conditions} }

// Not holds where the condition does not.
func Not(condition Condition) Condition {
	return Condition{join: joinNot, terms: []Condition{condition}}
}

// expr turns the condition into a filter, with the types of T.
func (c Condition) expr(typeOf func(string) Type) (odata.Expr, error) {
	if c.join == joinNone {
		value, err := literal(c.property, c.value, typeOf(c.property))
		if err != nil {
			return nil, err
		}
		return odata.Comparison{Property: c.property, Op: c.op, Value: edm.Value(value)}, nil
	}
	if len(c.terms) == 0 {
		return nil, fmt.Errorf("an And, Or or Not without conditions")
	}
	terms := make([]odata.Expr, len(c.terms))
	for i, term := range c.terms {
		var err error
		if terms[i], err = term.expr(typeOf); err != nil {
			return nil, err
		}
	}
	switch c.join {
	case joinAnd:
		return odata.AllOf(terms...), nil
	case joinOr:
		return odata.AnyOf(terms...), nil
	}
	return odata.Not{X: terms[0]}, nil
}

// literal makes the value to compare with, of the declared type where there is one: the service compares an Edm.Int64
// property with an Edm.Int64 literal.
func literal(property string, x any, declared Type) (Value, error) {
	switch property {
	case "PartitionKey", "RowKey":
		declared = TypeString
	case "Timestamp":
		declared = TypeDateTime
	default:
		if err := edm.CheckName(property); err != nil {
			return Value{}, err
		}
	}
	v, err := ValueOf(x)
	if err != nil {
		return Value{}, fmt.Errorf("condition on %s: %w", property, err)
	}
	if declared == TypeNull || v.Type() == declared {
		return v, nil
	}
	if n, ok := v.Int(); ok {
		switch {
		case declared == TypeInt64:
			return Int64(n), nil
		case declared == TypeInt32 && n >= math.MinInt32 && n <= math.MaxInt32:
			return Int32(int32(n)), nil
		case declared == TypeDouble && int64(float64(n)) == n:
			return Double(float64(n)), nil
		}
	}
	if m, ok := x.(encoding.TextMarshaler); ok && declared == TypeString {
		text, err := m.MarshalText()
		return String(string(text)), err
	}
	return Value{}, fmt.Errorf("condition on %s: a %s does not compare with %s", property, reflect.TypeOf(x), declared)
}
