// Package odata implements the $filter language of Azure Tables: literals, a tree with its parser and printer, the evaluation
// of a tree for one entity, and the query class of a tree.
//
// The language has comparisons of one property with one literal (eq ne gt ge lt le, the property on either side), a
// boolean property on its own, the constants true and false, the operators "and", "or" and "not", and parentheses.
// Keywords are in lower case, and names are case-sensitive. Like the service, the parser refuses comparisons of two
// properties, null, arithmetic and functions.
//
// Parse limits the depth and size of a tree, so functions of this package may recurse over it. A tree within these limits,
// printed by Append, parses to the same tree again.
package odata

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

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

// Comparison compares a property with a value. A boolean property on its own is a Comparison with Eq and true.
type Comparison struct {
	Property string
	Op       Op
	Value    edm.Value
}

// And matches if both sides match.
type And struct{ Left, Right Expr }

// Or matches if at least one side matches.
type Or struct{ Left, Right Expr }

// Not matches an entity that X does not match. A Comparison does not match an entity that lacks its property, so the
// Not of a Comparison matches that entity.
type Not struct{ X Expr }

// Constant is a filter that matches every entity (true) or none (false).
type Constant bool

func (Comparison) isExpr() {}
func (And) isExpr()        {}
func (Or) isExpr()         {}
func (Not) isExpr()        {}
func (Constant) isExpr()   {}

// AllOf joins terms by "and", without nil terms. Without terms it returns nil, the filter that every entity matches.
func AllOf(terms ...Expr) Expr {
	var all Expr
	for _, term := range terms {
		switch {
		case term == nil:
		case all == nil:
			all = term
		default:
			all = And{all, term}
		}
	}
	return all
}

// AnyOf joins terms by "or". With a nil term it returns nil, because every entity matches that term. Without terms it
// returns Constant(false).
func AnyOf(terms ...Expr) Expr {
	var one Expr = Constant(false)
	for i, term := range terms {
		switch {
		case term == nil:
			return nil
		case i == 0:
			one = term
		default:
			one = Or{one, term}
		}
	}
	return one
}

// Comparisons returns the number of comparisons in e. The service allows edm.MaxComparisons.
func Comparisons(e Expr) int {
	switch e := e.(type) {
	case Comparison:
		return 1
	case And:
		return Comparisons(e.Left) + Comparisons(e.Right)
	case Or:
		return Comparisons(e.Left) + Comparisons(e.Right)
	case Not:
		return Comparisons(e.X)
	}
	return 0
}

// Append appends the text of e, which Parse converts to e again; for nil it appends nothing. It returns an
// *UnprintableError for an invalid property name, which could otherwise inject a condition, and for a value without a
// literal.
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
		// Always add parentheses: in the OData grammar, "not" binds more tightly than "eq".
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
	if err := edm.CheckName(c.Property); err != nil {
		return dst, &UnprintableError{Property: c.Property, Reason: err.Error()}
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

// value returns the value of a string or number token.
func (t token) value() (edm.Value, error) {
	if t.kind == kindNumber {
		return t.number()
	}
	text := strings.ReplaceAll(t.text, "''", "'")
	switch t.prefix {
	case "x", "binary":
		b, err := hex.DecodeString(text)
		if err != nil {
			return edm.Value{}, t.invalid("a binary literal must be pairs of hexadecimal digits, such as X'0aff'")
		}
		return edm.Binary(b), nil
	case "guid":
		v, err := edm.FromText(edm.TypeGuid, []byte(text))
		if err != nil {
			return edm.Value{}, t.invalid("a guid literal must have 36 characters, in groups of 8-4-4-4-12")
		}
		return v, nil
	case "datetime":
		return t.dateTime(text)
	}
	return edm.String(text), nil
}

func (t token) invalid(reason string) error { return &SyntaxError{Pos: t.pos, Reason: reason} }

// dateTime also accepts the forms in which OData allows the Z, the seconds or the time to be omitted. All times are UTC.
func (t token) dateTime(text string) (edm.Value, error) {
	if v, err := edm.FromText(edm.TypeDateTime, []byte(text)); err == nil {
		return v, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02T15:04Z", time.DateOnly} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if v, err := edm.DateTime(at); err == nil {
			return v, nil
		}
	}
	return edm.Value{}, t.invalid("a datetime literal must be yyyy-mm-ddThh:mm:ss with up to seven decimals and Z")
}

// number parses -5, 5L, 5.0, 5e3 and 5d. As on the service, an integer of more than 32 bits without L is an error.
func (t token) number() (edm.Value, error) {
	shape, ok := shapeOf(t.text)
	if !ok {
		return edm.Value{}, t.invalid("a number must be digits with an optional sign, point, exponent and suffix L or D")
	}
	switch shape {
	case shapeInt64:
		n, err := strconv.ParseInt(t.text[:len(t.text)-1], 10, 64)
		if err != nil {
			return edm.Value{}, t.invalid("the integer does not fit into 64 bits; use a smaller one, or a decimal point")
		}
		return edm.Int64(n), nil
	case shapeInt32:
		n, err := strconv.ParseInt(t.text, 10, 32)
		if err != nil {
			return edm.Value{}, t.invalid("an integer that does not fit into 32 bits needs the suffix L")
		}
		return edm.Int32(int32(n)), nil
	}
	f, err := strconv.ParseFloat(strings.TrimRight(t.text, "dD"), 64)
	if err != nil {
		return edm.Value{}, t.invalid("the number does not fit into a double")
	}
	return edm.Double(f), nil
}

type numberShape uint8

const (
	shapeInt32 numberShape = iota
	shapeInt64
	shapeDouble
)

// shapeOf matches -?digits(.digits)?([eE][+-]?digits)?[dDlL]?. strconv would accept more forms, such as hexadecimal and inf.
func shapeOf(s string) (numberShape, bool) {
	shape := shapeInt32
	s, ok := cutDigits(strings.TrimPrefix(s, "-"))
	if ok && strings.HasPrefix(s, ".") {
		shape = shapeDouble
		s, ok = cutDigits(s[1:])
	}
	if ok && s != "" && (s[0] == 'e' || s[0] == 'E') {
		shape = shapeDouble
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		s, ok = cutDigits(s)
	}
	switch {
	case !ok:
		return 0, false
	case s == "":
		return shape, true
	case s == "d" || s == "D":
		return shapeDouble, true
	case (s == "L" || s == "l") && shape == shapeInt32:
		return shapeInt64, true
	}
	return 0, false
}

// cutDigits removes the digits at the beginning of s; ok is false if there are none.
func cutDigits(s string) (rest string, ok bool) {
	rest = strings.TrimLeft(s, "0123456789")
	return rest, len(rest) < len(s)
}
