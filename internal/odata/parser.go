package odata

import (
	"fmt"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Limits of Parse. The service allows 15 comparisons. Parse allows more, so that the caller can return an
// error about that limit.
const (
	maxNesting     = 100  // depth of parentheses and nots
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
// The operator not applies to the whole comparison after it: not A eq 5 is not (A eq 5).
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

// term parses a not, a group in parentheses, or a comparison.
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

// not parses the operand of the operator not. The operator and the parentheses directly after it count as one
// level. So the printed form, which always has these parentheses, is never nested deeper than the parsed
// text.
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
	op, compared := p.operator()
	if !compared {
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

func (p *parser) operator() (Op, bool) {
	if p.token.kind != kindWord {
		return 0, false
	}
	return ParseOp(p.token.text)
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
	case edm.IsPlainName(at.text) || edm.CheckName(at.text) == nil:
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
