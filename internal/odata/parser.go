package odata

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Limits of Parse. The service allows 15 comparisons. Parse allows more, so that the caller can return an
// error about that limit.
const (
	maxNesting     = 100  // depth of parentheses and "not" operators
	maxComparisons = 1000 // comparisons and constants
)

// SyntaxError says where a filter is invalid. It does not quote the filter, which may contain a secret.
type SyntaxError struct {
	Pos    int // offset in bytes
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("filter, at byte %d: %s", e.Pos, e.Reason)
}

// Parse parses a filter. An empty text is a nil Expr, which every entity matches. An error is a *SyntaxError.
//
// The operator "not" applies to the whole comparison after it: "not A eq 5" means "not (A eq 5)".
func Parse(text string) (Expr, error) {
	if !utf8.ValidString(text) {
		return nil, &SyntaxError{Reason: "the filter is not valid UTF-8"}
	}
	p := parser{lexer: lexer{text: text}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.token.kind == kindEnd {
		return nil, nil
	}
	e, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.token.kind != kindEnd {
		return nil, p.unexpected("and, or or the end")
	}
	return e, nil
}

type parser struct {
	lexer       lexer
	token       token
	comparisons int
}

func (p *parser) advance() (err error) {
	p.token, err = p.lexer.next()
	return err
}

func (p *parser) unexpected(wanted string) error {
	return &SyntaxError{Pos: p.token.pos, Reason: fmt.Sprintf("got %s, want %s", p.token.kind, wanted)}
}

func (p *parser) atWord(word string) bool { return p.token.kind == kindWord && p.token.text == word }

func (p *parser) or(depth int) (Expr, error) {
	left, err := p.and(depth)
	for err == nil && p.atWord("or") {
		var right Expr
		if err = p.advance(); err == nil {
			right, err = p.and(depth)
		}
		left = Or{left, right}
	}
	return left, err
}

func (p *parser) and(depth int) (Expr, error) {
	left, err := p.term(depth)
	for err == nil && p.atWord("and") {
		var right Expr
		if err = p.advance(); err == nil {
			right, err = p.term(depth)
		}
		left = And{left, right}
	}
	return left, err
}

// term parses the operator "not" with its operand, a group in parentheses, or a comparison.
func (p *parser) term(depth int) (Expr, error) {
	if depth > maxNesting {
		return nil, &SyntaxError{Pos: p.token.pos, Reason: fmt.Sprintf("the filter is nested deeper than %d levels; use fewer parentheses", maxNesting)}
	}
	switch {
	case p.atWord("not"):
		return p.not(depth + 1)
	case p.token.kind == kindOpen:
		return p.group(depth + 1)
	}
	if p.comparisons++; p.comparisons > maxComparisons {
		return nil, &SyntaxError{Pos: p.token.pos, Reason: fmt.Sprintf("the filter has more than %d comparisons; split the query", maxComparisons)}
	}
	return p.comparison()
}

// not parses the operand of the operator "not". The operator and the parentheses directly after it count as one level,
// since the printed form always has these parentheses and must not be nested deeper than the parsed text.
func (p *parser) not(depth int) (x Expr, err error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.token.kind == kindOpen {
		x, err = p.group(depth)
	} else {
		x, err = p.term(depth)
	}
	return Not{x}, err
}

func (p *parser) group(depth int) (Expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	e, err := p.or(depth)
	if err != nil {
		return nil, err
	}
	if p.token.kind != kindClose {
		return nil, p.unexpected("and, or or a closing parenthesis")
	}
	return e, p.advance()
}

// comparison parses a comparison, with the property on either side, or a boolean operand on its own.
func (p *parser) comparison() (Expr, error) {
	start := p.token
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	op, compared := ParseOp(p.token.text)
	if !compared || p.token.kind != kindWord {
		return left.alone(start)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	right, err := p.operand()
	switch {
	case err != nil:
		return nil, err
	case left.property != "" && right.property != "":
		return nil, start.invalid("two properties cannot be compared; one side must be a literal (strings stand in single quotes)")
	case left.property == "" && right.property == "":
		return nil, start.invalid("two literals cannot be compared; one side must be a property")
	case left.property == "":
		return Comparison{right.property, op.mirrored(), left.value}, nil
	}
	return Comparison{left.property, op, right.value}, nil
}

// operand is one side of a comparison: a property or a value.
type operand struct {
	property string
	value    edm.Value
}

func (p *parser) operand() (operand, error) {
	at := p.token
	var o operand
	var err error
	switch {
	case at.kind == kindString || at.kind == kindNumber:
		o.value, err = at.value()
	case at.kind != kindWord:
		err = p.unexpected("a property or a literal")
	case at.text == "true" || at.text == "false":
		o.value = edm.Boolean(at.text == "true")
	case at.text == "null":
		err = at.invalid("the service does not support null; not (Name ne '') finds entities without Name")
	case at.text == "not":
		err = at.invalid("not stands before a single operand; it must stand before a condition, such as not (Name eq 'a')")
	case edm.CheckName(at.text) == nil:
		o.property = at.text
	default:
		err = at.invalid("the word is neither a property name nor a literal; write Property eq literal")
	}
	if err != nil {
		return operand{}, err
	}
	return o, p.advance()
}

// alone returns the condition for an operand that no operator follows.
func (o operand) alone(at token) (Expr, error) {
	if o.property == "" {
		if b, ok := o.value.Bool(); ok {
			return Constant(b), nil
		}
		return nil, at.invalid("the literal is not compared with a property; write Property eq literal")
	}
	if _, isOp := ParseOp(o.property); isOp || o.property == "and" || o.property == "or" {
		return nil, at.invalid("got an operator, want a property or a literal")
	}
	return Comparison{o.property, Eq, edm.Boolean(true)}, nil
}

// kind is the kind of a token.
type kind uint8

const (
	kindEnd    kind = iota
	kindOpen        // (
	kindClose       // )
	kindWord        // a name or keyword
	kindNumber      // text starts with a digit or a minus sign
	kindString      // '...'; prefix is the word directly before it, such as guid
)

func (k kind) String() string {
	switch k {
	case kindOpen:
		return "an opening parenthesis"
	case kindClose:
		return "a closing parenthesis"
	case kindWord:
		return "a word"
	case kindNumber:
		return "a number"
	case kindString:
		return "a quoted literal"
	}
	return "the end"
}

// token is a piece of a filter. Its text may be a secret, so no error contains it.
type token struct {
	kind   kind
	pos    int    // offset in the filter, in bytes
	text   string // for a string: the text between the quotes, with quotes still doubled
	prefix string // for a string: datetime, guid, x or binary, in lower case
}

type lexer struct {
	text string
	pos  int
}

const (
	spaces     = " \t\r\n"
	wordBreaks = spaces + "()'"
)

func (l *lexer) next() (token, error) {
	for l.pos < len(l.text) && strings.IndexByte(spaces, l.text[l.pos]) >= 0 {
		l.pos++
	}
	start := l.pos
	if start == len(l.text) {
		return token{kind: kindEnd, pos: start}, nil
	}
	switch c := l.text[start]; {
	case c == '(':
		l.pos++
		return token{kind: kindOpen, pos: start}, nil
	case c == ')':
		l.pos++
		return token{kind: kindClose, pos: start}, nil
	case c == '\'':
		return l.quoted(start, "")
	}
	length := strings.IndexAny(l.text[start:], wordBreaks)
	if length < 0 {
		length = len(l.text) - start
	}
	l.pos += length
	word := l.text[start:l.pos]
	if c := word[0]; c >= '0' && c <= '9' || c == '-' {
		return token{kind: kindNumber, pos: start, text: word}, nil
	}
	if l.pos < len(l.text) && l.text[l.pos] == '\'' && length <= len("datetime") {
		switch prefix := strings.ToLower(word); prefix {
		case "datetime", "guid", "x", "binary":
			return l.quoted(start, prefix)
		}
	}
	return token{kind: kindWord, pos: start, text: word}, nil
}

// quoted reads a string from its opening quote at l.pos. Two quotes within it stand for one quote.
func (l *lexer) quoted(start int, prefix string) (token, error) {
	from := l.pos + 1
	for at := from; ; {
		quote := strings.IndexByte(l.text[at:], '\'')
		if quote < 0 {
			return token{}, &SyntaxError{Pos: start, Reason: "the quoted literal has no closing quote"}
		}
		at += quote
		if at+1 < len(l.text) && l.text[at+1] == '\'' {
			at += 2
			continue
		}
		l.pos = at + 1
		return token{kind: kindString, pos: start, text: l.text[from:at], prefix: prefix}, nil
	}
}

// UnprintableError says why a tree or value cannot be written in the filter language. It never contains the value.
type UnprintableError struct {
	Property string // the property in the comparison; "" for a value outside of a comparison
	Reason   string
}

func (e *UnprintableError) Error() string {
	if e.Property == "" {
		return "filter: " + e.Reason
	}
	return "filter on " + strconv.Quote(e.Property) + ": " + e.Reason
}

// AppendLiteral appends v as a literal: a string in single quotes with its own quotes doubled, 5, 5L, 5.0, true, X'0aff',
// datetime'2014-08-22T00:50:32.1234567Z', guid'c9da6455-213d-42c9-9a79-3e9149a57833'. NaN, the infinities, null and invalid
// UTF-8 have no literal: it returns an *UnprintableError and dst unchanged.
func AppendLiteral(dst []byte, v edm.Value) ([]byte, error) {
	switch v.Type() {
	case edm.TypeString:
		s, _ := v.Str()
		if !utf8.ValidString(s) {
			return dst, &UnprintableError{Reason: "a string is not valid UTF-8, which the service refuses; compare with a valid one"}
		}
		return append(append(append(dst, '\''), strings.ReplaceAll(s, "'", "''")...), '\''), nil
	case edm.TypeBinary:
		b, _ := v.Bytes()
		dst = hex.AppendEncode(append(dst, "X'"...), b)
		return append(dst, '\''), nil
	case edm.TypeBoolean:
		b, _ := v.Bool()
		return strconv.AppendBool(dst, b), nil
	case edm.TypeInt32, edm.TypeInt64:
		n, _ := v.Int()
		dst = strconv.AppendInt(dst, n, 10)
		if v.Type() == edm.TypeInt64 {
			dst = append(dst, 'L')
		}
		return dst, nil
	case edm.TypeDouble:
		f, _ := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return dst, &UnprintableError{Reason: "the value is NaN or infinite, for which filters have no literal; compare with a finite number"}
		}
		return appendDouble(dst, f), nil
	case edm.TypeDateTime:
		return appendPrefixed(dst, "datetime", v), nil
	case edm.TypeGuid:
		return appendPrefixed(dst, "guid", v), nil
	}
	return dst, &UnprintableError{Reason: "the value is null, which the service neither stores nor compares; compare with another value"}
}

// appendDouble always writes a decimal point, because without one the service reads an Int32. It never writes
// an exponent, because Azurite interprets 1e300 as the name of a property, and returns every row that lacks
// such a property.
func appendDouble(dst []byte, f float64) []byte {
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendPrefixed appends prefix'text', where text is the content of the value's JSON string.
func appendPrefixed(dst []byte, prefix string, v edm.Value) []byte {
	dst = append(dst, prefix...)
	start := len(dst)
	dst = edm.AppendValue(dst, v)
	dst[start], dst[len(dst)-1] = '\'', '\''
	return dst
}

// Unimplemented reports whether a filter that Parse refuses is valid OData that the table service does not implement: it calls a
// function, as startswith(Name,'a') does, or calculates, as Age add 1 eq 6 does. The service answers a text that is not OData with
// another status.
func Unimplemented(text string) bool {
	l := lexer{text: text}
	operand := false // the previous token can be the left operand of a calculation
	for {
		t, err := l.next()
		switch {
		case err != nil || t.kind == kindEnd:
			return false
		case t.kind != kindWord:
			operand = t.kind == kindNumber || t.kind == kindString || t.kind == kindClose
		case isJoint(t.text):
			operand = false
		case operand && isArithmetic(t.text) || l.pos < len(text) && text[l.pos] == '(':
			return true
		default:
			operand = true
		}
	}
}

// isJoint reports whether a word is an operator between operands or conditions.
func isJoint(word string) bool {
	_, isOp := ParseOp(word)
	return isOp || word == "and" || word == "or" || word == "not"
}

func isArithmetic(word string) bool {
	return word == "add" || word == "sub" || word == "mul" || word == "div" || word == "mod"
}
