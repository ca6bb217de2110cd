// Package odata holds the $filter language of Azure Tables: literals, a tree with its parser and printer, the
// meaning of a tree for one entity, and the class of query that a tree makes the service run.
//
// The language: comparisons of one property with one literal (eq ne gt ge lt le, either side first), a boolean
// property on its own, true and false, and, or, not, parentheses. Keywords are lower case and names are
// case-sensitive. Comparing two properties, null, arithmetic and functions are refused, as the service does.
//
// A tree that was parsed is bounded in depth and size, so everything here may recurse over it. A tree printed by
// Append parses to the same tree again, if it is within those bounds.
package odata

// Expr is a filter: a Comparison, And, Or, Not or Constant. A nil Expr is the absent filter, which every entity
// passes.
type Expr interface{ isExpr() }

// Op is a comparison operator.
type Op uint8

// The comparison operators.
const (
	Eq Op = iota
	Ne
	Gt
	Ge
	Lt
	Le
)

var opNames = [...]string{Eq: "eq", Ne: "ne", Gt: "gt", Ge: "ge", Lt: "lt", Le: "le"}

// String returns the operator as it stands in a filter, such as "ge".
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown operator"
}

// ParseOp is the inverse of Op.String.
func ParseOp(word string) (Op, bool) {
	for i, name := range opNames {
		if name == word {
			return Op(i), true
		}
	}
	return 0, false
}

// mirrored is the operator that says the same with its operands exchanged: 5 lt A is A gt 5.
func (o Op) mirrored() Op {
	switch o {
	case Gt:
		return Lt
	case Ge:
		return Le
	case Lt:
		return Gt
	case Le:
		return Ge
	}
	return o
}
