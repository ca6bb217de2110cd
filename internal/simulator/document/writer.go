package simulator

import (
	"bytes"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// xmlWriter writes one document. A document begins with a byte order mark, as the services' do: a reader that trips over it
// would trip in production.
type xmlWriter struct {
	buf   bytes.Buffer
	open  []string
	empty bool // the element opened last holds nothing yet, and its start tag is not closed
}

func newXMLWriter(root string, attributes ...string) *xmlWriter {
	w := &xmlWriter{}
	w.buf.WriteString("\ufeff" + `<?xml version="1.0" encoding="utf-8"?>`)
	w.begin(root, attributes...)
	return w
}

// begin opens an element; attributes are names and values in turn.
func (w *xmlWriter) begin(name string, attributes ...string) {
	w.fill()
	w.buf.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		w.buf.WriteString(" " + attributes[i] + `="`)
		w.escape(attributes[i+1], true)
		w.buf.WriteByte('"')
	}
	w.open, w.empty = append(w.open, name), true
}

// fill closes the start tag of the element opened last, since something goes into the element.
func (w *xmlWriter) fill() {
	if w.empty {
		w.buf.WriteByte('>')
	}
	w.empty = false
}

// end closes the element opened last. One that holds nothing is written as <Name />.
func (w *xmlWriter) end() {
	last := len(w.open) - 1
	if w.empty {
		w.buf.WriteString(" />")
	} else {
		w.buf.WriteString("</" + w.open[last] + ">")
	}
	w.open, w.empty = w.open[:last], false
}

// element writes an element that holds text only.
func (w *xmlWriter) element(name, text string) {
	w.begin(name)
	if text != "" {
		w.text(text)
	}
	w.end()
}

// optional writes an element unless its text is empty.
func (w *xmlWriter) optional(name, text string) {
	if text != "" {
		w.element(name, text)
	}
}

// name writes a blob's name, or a prefix of names. Names may hold what XML cannot: such are escaped, and say so.
func (w *xmlWriter) name(name string) {
	if xmlLegal(name) {
		w.element("Name", name)
		return
	}
	w.begin("Name", "Encoded", "true")
	w.text(strings.ReplaceAll(url.QueryEscape(name), "+", "%20"))
	w.end()
}

func (w *xmlWriter) metadata(m map[string]string) {
	w.begin("Metadata")
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.element(k, m[k])
	}
	w.end()
}

// text writes text into the element opened last.
func (w *xmlWriter) text(s string) {
	w.fill()
	w.escape(s, false)
}

// escape writes text with what must be escaped and nothing more, as the services do: some clients read a numeric reference as
// the characters that it is written with. Only a carriage return has no other form in which a reader keeps it. What XML cannot
// hold becomes a replacement character.
func (w *xmlWriter) escape(s string, inAttribute bool) {
	for _, r := range s { // what is no UTF-8 is a replacement character already
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
		case xmlRune(r):
			w.buf.WriteRune(r)
		default:
			w.buf.WriteRune(utf8.RuneError)
		}
	}
}

// answer closes all that is open and makes the document a's body.
func (w *xmlWriter) answer(a *answer) *answer {
	for len(w.open) > 0 {
		w.end()
	}
	a.header.Set("Content-Type", "application/xml")
	a.body = w.buf.Bytes()
	return a
}

// xmlLegal says whether a document can hold s.
func xmlLegal(s string) bool {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
		if !xmlRune(r) {
			return false
		}
	}
	return true
}

func xmlRune(r rune) bool {
	return (r >= 0x20 || r == '\t' || r == '\n' || r == '\r') && r != 0xFFFE && r != 0xFFFF
}
