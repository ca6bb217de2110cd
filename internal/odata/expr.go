// Package odata implements the $filter language of Azure Tables: literals, a tree with its parser and printer, the evaluation
// of a tree for one entity, and the query class of a tree.
//
// The language has comparisons of one property with one literal (eq ne gt ge lt le, the property on either side), a boolean
// property on its own, true and false, and, or, not, and parentheses. Keywords are in lower case, and names are
// case-sensitive. Like the service, the parser refuses comparisons of two properties, null, arithmetic and functions.
//
// Parse limits the depth and size of a tree, so functions of this package may recurse over it. A tree within these limits,
// printed by Append, parses to the same tree again.
package odata

// Expr is a filter: a Comparison, And, Or, Not or Constant. A nil Expr is the absence of a filter: every entity matches it.
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

// String returns the operator as it is written in a filter, such as "ge".
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

// mirrored returns the operator for exchanged operands: 5 lt A is A gt 5.
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
