package odata

import "strings"

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
		if prefix := strings.ToLower(word); isLiteralPrefix(prefix) {
			return l.quoted(start, prefix)
		}
	}
	return token{kind: kindWord, pos: start, text: word}, nil
}

func isLiteralPrefix(word string) bool {
	return word == "datetime" || word == "guid" || word == "x" || word == "binary"
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
