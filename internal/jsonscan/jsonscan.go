// Package jsonscan splits a JSON text into its names and values. It is as strict as RFC 7493 asks: a text that is cut off, has a name
// twice within a value, is not valid UTF-8 or goes on behind its end is an error. Since the whole text is in memory, the package keeps
// no state for a stream, which makes it several times faster than a decoder of one.
package jsonscan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// Kind is the kind of a token: the first byte of its text, and '0' for every number. 0 is no token.
type Kind byte

// String returns the name of the kind, for the text of an error.
func (k Kind) String() string {
	switch k {
	case '"':
		return "string"
	case '0':
		return "number"
	case 't':
		return "true"
	case 'f':
		return "false"
	case 'n':
		return "null"
	case '{', '}', '[', ']':
		return string(rune(k))
	}
	return "no token"
}

// KindOf returns the kind of a text that Value returned.
func KindOf(text []byte) Kind { return kindOf[text[0]] }

// SyntaxError says that the text is not JSON. It has no excerpt of the text, which may be a secret.
type SyntaxError struct {
	At int // index of the first byte that is wrong, or of the value that it is in
}

// Error says where.
func (e SyntaxError) Error() string { return fmt.Sprintf("not JSON at byte %d", e.At) }

// ErrRepeatedName says that an object has a name twice: it is unknown which of the two values is right.
var ErrRepeatedName = errors.New("an object in the response has a member twice")

const (
	// maxOpen is how deep Step can go. A page of rows needs 3: the page, its list and a row.
	maxOpen = 4
	// maxDepth is how deep a value can be, so that a hostile text cannot use up the stack.
	maxDepth = 10_000
)

// Scanner reads a text from its beginning to its end. After an error, nothing that it returns has a meaning.
type Scanner struct {
	// Escaped reports that the text that Value returned last has an escape, so that Unquote must resolve it.
	Escaped bool
	// Half reports that the text that Value returned last has half of a surrogate pair, be it in a value within it.
	Half bool

	text  []byte
	at    int // index of the next byte
	state state
	depth int            // number of objects and arrays that Step has opened and not closed
	outer [maxOpen]state // the state after the end of each of them
}

// New returns a scanner of the text. The scanner does not change the text, and returns parts of it.
func New(text []byte) Scanner { return Scanner{text: text} }

// state says what may come next.
type state uint8

const (
	top state = iota // outside of everything, where values follow each other
	firstName
	nextName // behind a comma
	beforeColon
	beforeValue // behind a colon
	afterMember
	firstItem
	nextItem // behind a comma
	afterItem
)

// after is the state behind a name or value, by the state before it.
var after = [...]state{top: top, firstName: beforeColon, nextName: beforeColon, beforeValue: afterMember, firstItem: afterItem, nextItem: afterItem}

// class is a set of kinds.
type class uint8

const (
	aText class = 1 << iota
	another
	endOfObject
	endOfArray

	aValue = aText | another
)

// allowed are the kinds that may come in each state, once comma and colon are passed.
var allowed = [...]class{
	top: aValue, firstName: aText | endOfObject, nextName: aText, beforeColon: 0, beforeValue: aValue, afterMember: endOfObject,
	firstItem: aValue | endOfArray, nextItem: aValue, afterItem: endOfArray,
}

var kindOf, classOf = func() (kinds [256]Kind, classes [256]class) {
	for _, c := range []byte(`"{[tfn-0123456789`) {
		kinds[c], classes[c] = Kind(c), another
		if c == '-' || c >= '0' && c <= '9' {
			kinds[c] = '0'
		}
	}
	kinds['}'], kinds[']'] = '}', ']'
	classes['"'], classes['}'], classes[']'] = aText, endOfObject, endOfArray
	return kinds, classes
}()

// Peek returns the kind of the next token, and passes the comma or colon before it. It returns 0 at the end of the text and if the next
// token may not be there; then Step, Value and End return the error.
func (s *Scanner) Peek() Kind {
	c := s.skipSpace()
	switch {
	case c == ':' && s.state == beforeColon:
		s.at, s.state = s.at+1, beforeValue
		c = s.skipSpace()
	case c == ',' && s.state == afterMember:
		s.at, s.state = s.at+1, nextName
		c = s.skipSpace()
	case c == ',' && s.state == afterItem:
		s.at, s.state = s.at+1, nextItem
		c = s.skipSpace()
	}
	if classOf[c]&allowed[s.state] == 0 {
		return 0
	}
	return kindOf[c]
}

// skipSpace returns the next byte that is no white space, 0 at the end.
func (s *Scanner) skipSpace() byte {
	for ; s.at < len(s.text); s.at++ {
		if c := s.text[s.at]; c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
	}
	return 0
}

func (s *Scanner) wrong() error { return SyntaxError{s.at} }

// Step reads a brace or bracket.
func (s *Scanner) Step() error {
	switch kind := s.Peek(); kind {
	case '{', '[':
		if s.depth == maxOpen {
			return s.wrong()
		}
		s.outer[s.depth] = after[s.state]
		s.depth++
		s.state = firstIn(kind)
	case '}', ']':
		s.depth--
		s.state = s.outer[s.depth]
	default:
		return s.wrong()
	}
	s.at++
	return nil
}

func firstIn(kind Kind) state {
	if kind == '{' {
		return firstName
	}
	return firstItem
}

// Value reads a name or a value, and returns its text. Of an object or array this is all of it, and it has no name twice.
func (s *Scanner) Value() ([]byte, error) {
	s.Escaped, s.Half = false, false
	kind := s.Peek()
	start := s.at
	if err := s.read(kind, s.depth+1); err != nil {
		return nil, err
	}
	s.state = after[s.state]
	return s.text[start:s.at:s.at], nil
}

// End returns an error unless the text is at its end and everything is closed.
func (s *Scanner) End() error {
	if s.skipSpace(); s.at < len(s.text) || s.depth > 0 {
		return s.wrong()
	}
	return nil
}

// read reads a value at the depth, which Peek has seen.
func (s *Scanner) read(kind Kind, depth int) error {
	ok := false
	switch kind {
	case '"':
		ok = s.string()
	case '0':
		ok = s.number()
	case 't':
		ok = s.literal("true")
	case 'f':
		ok = s.literal("false")
	case 'n':
		ok = s.literal("null")
	case '{', '[':
		return s.all(kind, depth)
	}
	if !ok {
		return s.wrong()
	}
	return nil
}

// all reads an object or array with all that it holds. It leaves the state as it was.
func (s *Scanner) all(kind Kind, depth int) error {
	if depth > maxDepth {
		return s.wrong()
	}
	outer := s.state
	s.at, s.state = s.at+1, firstIn(kind)
	var names map[string]struct{}
	for {
		kind := s.Peek()
		if kind == '}' || kind == ']' {
			s.at, s.state = s.at+1, outer
			return nil
		}
		start := s.at
		if err := s.read(kind, depth+1); err != nil {
			return err
		}
		if s.state = after[s.state]; s.state == beforeColon {
			name := string(Unquote(nil, s.text[start:s.at]))
			if _, repeated := names[name]; repeated {
				return ErrRepeatedName
			}
			if names == nil {
				names = map[string]struct{}{}
			}
			names[name] = struct{}{}
		}
	}
}

func (s *Scanner) literal(want string) bool {
	end := s.at + len(want)
	if end > len(s.text) || string(s.text[s.at:end]) != want {
		return false
	}
	s.at = end
	return true
}

func (s *Scanner) number() bool {
	if s.text[s.at] == '-' {
		s.at++
	}
	switch {
	case s.at < len(s.text) && s.text[s.at] == '0':
		s.at++ // no digit follows a leading zero
	case !s.digits():
		return false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if s.at == len(s.text) || s.text[s.at]|0x20 != 'e' {
		return true
	}
	s.at++
	if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
		s.at++
	}
	return s.digits()
}

// digits reads at least one digit.
func (s *Scanner) digits() bool {
	start := s.at
	for s.at < len(s.text) && s.text[s.at]-'0' <= 9 {
		s.at++
	}
	return s.at > start
}

// string reads a string.
func (s *Scanner) string() bool {
	start, wide := s.at, false
	for s.at++; ; {
		s.at = plain(s.text, s.at)
		if s.at == len(s.text) {
			return false
		}
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return !wide || utf8.Valid(s.text[start:s.at])
		case c == '\\':
			if !s.escape() {
				return false
			}
		case c < ' ':
			return false
		default:
			wide = true
			for s.at < len(s.text) && s.text[s.at] >= utf8.RuneSelf {
				s.at++
			}
		}
	}
}

// plain returns the index of the first byte from i on that is a control character, a quote, a backslash or not ASCII. It looks at
// eight bytes at a time, since most texts have several dozen.
func plain(b []byte, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		// The highest bit of a byte is set if a subtraction borrows, so for a byte that is less than a space, or equal to one of the two.
		// A borrow from the next byte can only come from one that is found itself, so the lowest bit is never wrong.
		found := (w | (w - ' '*ones) | (w ^ '"'*ones - ones) | (w ^ '\\'*ones - ones)) & high
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] < utf8.RuneSelf && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// escape reads an escape in a string, both of those of a surrogate pair.
func (s *Scanner) escape() bool {
	s.Escaped = true
	r, n := unescape(s.text[s.at:])
	s.at += n
	s.Half = s.Half || r == half
	return n > 0
}

// half is what unescape returns for half of a surrogate pair: no rune.
const half = -1

// unescape returns what an escape at the beginning of b stands for and its length, or 0 for one that is not valid.
func unescape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch c := b[1]; c {
	case '"', '\\', '/':
		return rune(c), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	r, ok := unit(b)
	if !ok {
		return 0, 0
	}
	const firstHigh, firstLow, end = 0xD800, 0xDC00, 0xE000
	if r < firstHigh || r >= end {
		return r, 6
	}
	if low, ok := unit(b[6:]); ok && r < firstLow && low >= firstLow && low < end {
		return 0x10000 + (r-firstHigh)<<10 + (low - firstLow), 12
	}
	return half, 6
}

// unit returns the code unit of an escape such as \u00e9 at the beginning of b.
func unit(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = (c | 0x20) - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Unquote appends what a string stands for that Value returned. Half of a surrogate pair becomes U+FFFD.
func Unquote(dst, quoted []byte) []byte {
	b := quoted[1 : len(quoted)-1]
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return append(dst, b...)
		}
		dst = append(dst, b[:i]...)
		r, n := unescape(b[i:])
		dst = utf8.AppendRune(dst, r) // appends U+FFFD for half
		b = b[i+n:]
	}
}
