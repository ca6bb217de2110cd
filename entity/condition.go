package entity

import (
	"github.com/tablepatterns/tablepatterns/internal/filter"
	"github.com/tablepatterns/tablepatterns/internal/odata"
)

// Condition is a typed condition on the properties of an entity, for Query.Where. The value is escaped. It is sent with
// the EDM type of the property's field in T; if T has no field for the property, with the type that ValueOf chooses.
type Condition filter.Term

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
	return Condition(filter.Compare(op, property, value))
}

// And holds where all of the conditions hold. It needs at least one.
func And(conditions ...Condition) Condition {
	return Condition(filter.Join(terms(conditions), odata.AllOf))
}

// Or holds where at least one of the conditions holds. It needs at least one.
func Or(conditions ...Condition) Condition {
	return Condition(filter.Join(terms(conditions), odata.AnyOf))
}

// Not holds where the condition does not hold. No comparison holds for an entity that lacks the property, so Not of a
// comparison holds for it.
func Not(condition Condition) Condition { return Condition(filter.Not(filter.Term(condition))) }

func terms(conditions []Condition) []filter.Term {
	out := make([]filter.Term, len(conditions))
	for i, c := range conditions {
		out[i] = filter.Term(c)
	}
	return out
}
