package simulator

import (
	"bytes"
	"encoding/xml"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// xmlWriter writes one document. A document begins with a byte order mark, as the services' do: a reader that trips over it
// would trip in production.
type xmlWriter struct {
	buf  bytes.Buffer
	open []string
}

func newXMLWriter(root string, attributes ...string) *xmlWriter {
	w := &xmlWriter{}
	w.buf.WriteString("\ufeff" + `<?xml version="1.0" encoding="utf-8"?>`)
	w.begin(root, attributes...)
	return w
}

// begin opens an element; attributes are names and values in turn.
func (w *xmlWriter) begin(name string, attributes ...string) {
	w.buf.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		w.buf.WriteString(" " + attributes[i] + `="`)
		w.text(attributes[i+1])
		w.buf.WriteByte('"')
	}
	w.buf.WriteByte('>')
	w.open = append(w.open, name)
}

// end closes the element opened last.
func (w *xmlWriter) end() {
	last := len(w.open) - 1
	w.buf.WriteString("</" + w.open[last] + ">")
	w.open = w.open[:last]
}

// element writes an element that holds text only.
func (w *xmlWriter) element(name, text string) {
	if text == "" {
		w.buf.WriteString("<" + name + " />")
		return
	}
	w.buf.WriteString("<" + name + ">")
	w.text(text)
	w.buf.WriteString("</" + name + ">")
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

func (w *xmlWriter) text(s string) {
	// The buffer's writes cannot fail.
	_ = xml.EscapeText(&w.buf, []byte(s))
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
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}
