package document

import (
	"bytes"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// Writer writes one document. A document begins with a byte order mark, as the services' documents do, so that a reader that
// cannot handle it fails in tests, too.
type Writer struct {
	buf   bytes.Buffer
	open  []string
	empty bool // the element opened last has no content yet, and its start tag is not closed
}

// New begins a document; attributes are alternating names and values.
func New(root string, attributes ...string) *Writer {
	w := &Writer{}
	w.buf.WriteString("\ufeff" + `<?xml version="1.0" encoding="utf-8"?>`)
	w.Begin(root, attributes...)
	return w
}

// Begin opens an element; attributes are alternating names and values.
func (w *Writer) Begin(name string, attributes ...string) {
	w.fill()
	w.buf.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		w.buf.WriteString(" " + attributes[i] + `="`)
		w.escape(attributes[i+1], true)
		w.buf.WriteByte('"')
	}
	w.open, w.empty = append(w.open, name), true
}

// fill closes the start tag of the element opened last, before content is written.
func (w *Writer) fill() {
	if w.empty {
		w.buf.WriteByte('>')
	}
	w.empty = false
}

// End closes the element opened last. An element without content is written as <Name />.
func (w *Writer) End() {
	last := len(w.open) - 1
	if w.empty {
		w.buf.WriteString(" />")
	} else {
		w.buf.WriteString("</" + w.open[last] + ">")
	}
	w.open, w.empty = w.open[:last], false
}

// Element writes an element that contains only text.
func (w *Writer) Element(name, text string) {
	w.Begin(name)
	if text != "" {
		w.text(text)
	}
	w.End()
}

// Optional writes an element unless its text is empty.
func (w *Writer) Optional(name, text string) {
	if text != "" {
		w.Element(name, text)
	}
}

// Name writes a blob's name, or a prefix of names. A name with characters that XML does not allow is percent-encoded, and an
// attribute says so.
func (w *Writer) Name(name string) {
	if legal(name) {
		w.Element("Name", name)
		return
	}
	w.Begin("Name", "Encoded", "true")
	w.text(strings.ReplaceAll(url.QueryEscape(name), "+", "%20"))
	w.End()
}

// Metadata writes metadata sorted by name.
func (w *Writer) Metadata(m map[string]string) {
	w.Begin("Metadata")
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.Element(k, m[k])
	}
	w.End()
}

// text writes text into the element opened last.
func (w *Writer) text(s string) {
	w.fill()
	w.escape(s, false)
}

// escape writes text. Like the services, it escapes only characters that must be escaped, because some
// clients do not decode numeric references. A carriage return is the exception: a reader keeps it only as a
// numeric reference. A character that XML does not allow becomes a replacement character.
func (w *Writer) escape(s string, inAttribute bool) {
	for _, r := range s { // range already replaces invalid UTF-8
		switch {
		case r == '&':
			w.buf.WriteString("&amp;")
		case r == '<':
			w.buf.WriteString("&lt;")
		case r == '>':
			w.buf.WriteString("&gt;")
		case r == '"' && inAttribute:
			w.buf.WriteString("&quot;")
		case r == '\r':
			w.buf.WriteString("&#xD;")
		case legalRune(r):
			w.buf.WriteRune(r)
		default:
			w.buf.WriteRune(utf8.RuneError)
		}
	}
}

// Answer closes all open elements and makes the document a's body.
func (w *Writer) Answer(a *protocol.Answer) *protocol.Answer {
	for len(w.open) > 0 {
		w.End()
	}
	a.Header.Set("Content-Type", "application/xml")
	a.Body = w.buf.Bytes()
	return a
}

// legal reports whether XML allows all characters of s.
func legal(s string) bool {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
		if !legalRune(r) {
			return false
		}
	}
	return true
}

func legalRune(r rune) bool {
	return (r >= 0x20 || r == '\t' || r == '\n' || r == '\r') && r != 0xFFFE && r != 0xFFFF
}
