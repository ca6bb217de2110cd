package tables

import (
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/filter"
	"github.com/tablepatterns/tablepatterns/internal/odata"
)

// Condition is a typed condition on the properties of an entity, for Query.Where. The value is escaped. It is
// sent with the EDM type of T's field of that name; if T has no such field, with the type that ValueOf
// chooses.
type Condition struct{ term filter.Term }

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
	return Condition{filter.Compare(op, property, value)}
}

// And holds where all of the conditions hold. It needs at least one.
func And(conditions ...Condition) Condition {
	return Condition{filter.Join(terms(conditions), odata.AllOf)}
}

// Or holds where at least one of the conditions holds. It needs at least one.
func Or(conditions ...Condition) Condition {
	return Condition{filter.Join(terms(conditions), odata.AnyOf)}
}

// Not holds where the condition does not hold, and for an entity that lacks the property.
func Not(condition Condition) Condition { return Condition{filter.Not(condition.term)} }

func terms(conditions []Condition) []filter.Term {
	out := make([]filter.Term, len(conditions))
	for i, c := range conditions {
		out[i] = c.term
	}
	return out
}

// types returns how values of the codec's T are stored.
func (c *RawCodec) types() filter.Types {
	return filter.Types{
		Declared: func(property string) edm.Type {
			if c.plan == nil {
				return edm.TypeNull
			}
			return c.plan.EDMType(property)
		},
		ValueOf: func(value any) (edm.Value, error) {
			v, err := ValueOf(value)
			return edm.Value(v), err
		},
	}
}
