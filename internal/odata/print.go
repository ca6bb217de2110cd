package odata

import (
	"errors"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Append appends the text of e, which parses to e again; for nil it appends nothing. It returns an
// *UnprintableError for an invalid property name, which could otherwise inject a condition, and for a value
// without a literal.
func Append(dst []byte, e Expr) ([]byte, error) {
	if e == nil {
		return dst, nil
	}
	start := len(dst)
	dst, err := appendExpr(dst, e)
	if err != nil {
		return dst[:start], err
	}
	return dst, nil
}

func appendExpr(dst []byte, e Expr) ([]byte, error) {
	switch e := e.(type) {
	case Comparison:
		return appendComparison(dst, e)
	case And:
		return appendJoined(dst, e.Left, " and ", e.Right, precedenceAnd)
	case Or:
		return appendJoined(dst, e.Left, " or ", e.Right, precedenceOr)
	case Not:
		// Always add parentheses: in the OData grammar, not binds more tightly than eq.
		dst, err := appendExpr(append(dst, "not ("...), e.X)
		return append(dst, ')'), err
	case Constant:
		if e {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	}
	return dst, &UnprintableError{Reason: "an operand of 'and', 'or' or 'not' is nil"}
}

// The precedences of operators, lowest first.
const (
	precedenceOr = iota
	precedenceAnd
	precedenceTerm
)

func precedenceOf(e Expr) int {
	switch e.(type) {
	case Or:
		return precedenceOr
	case And:
		return precedenceAnd
	}
	return precedenceTerm
}

// appendJoined appends two operands and an operator. It adds parentheses where the text would otherwise parse
// to another tree: around an operand of lower precedence, and, because both operators are left-associative,
// around a right operand of the same precedence.
func appendJoined(dst []byte, left Expr, joint string, right Expr, precedence int) ([]byte, error) {
	dst, err := appendOperand(dst, left, precedenceOf(left) < precedence)
	if err != nil {
		return dst, err
	}
	return appendOperand(append(dst, joint...), right, precedenceOf(right) <= precedence)
}

func appendOperand(dst []byte, e Expr, inParentheses bool) ([]byte, error) {
	if !inParentheses {
		return appendExpr(dst, e)
	}
	dst, err := appendExpr(append(dst, '('), e)
	return append(dst, ')'), err
}

func appendComparison(dst []byte, c Comparison) ([]byte, error) {
	if !edm.IsPlainName(c.Property) {
		if err := edm.CheckName(c.Property); err != nil {
			return dst, &UnprintableError{Property: c.Property, Reason: err.Error()}
		}
	}
	if isReserved(c.Property) {
		return dst, &UnprintableError{Property: c.Property, Reason: "the name is a keyword of the filter language; rename the property to filter on it"}
	}
	if int(c.Op) >= len(opNames) {
		return dst, &UnprintableError{Property: c.Property, Reason: "the operator is not one of eq ne gt ge lt le"}
	}
	dst = append(append(dst, c.Property...), ' ')
	dst = append(append(dst, opNames[c.Op]...), ' ')
	dst, err := AppendLiteral(dst, c.Value)
	if unprintable, ok := errors.AsType[*UnprintableError](err); ok {
		return dst, &UnprintableError{Property: c.Property, Reason: unprintable.Reason}
	}
	return dst, err
}

// isReserved reports whether a word cannot name a property because an operand of that spelling has another meaning. The names
// of operators are not reserved: their position distinguishes them.
func isReserved(word string) bool {
	return word == "not" || word == "true" || word == "false" || word == "null"
}
