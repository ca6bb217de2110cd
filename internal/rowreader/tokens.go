package rowreader

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/jsonscan"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// tokens reads the parts of a response that do not depend on the type of a property. Nothing that it returns is a part of the response,
// except what next returns, so that the response's memory can be used again.
type tokens struct {
	*memory
	scanner jsonscan.Scanner
	broken  bool // the whole response cannot be trusted, not only one value
	lossy   bool // the row has a half of a surrogate pair
}

// newTokens returns the tokens of an answer, of which the properties in known are kept. plain treats the library's own properties like any
// others.
func newTokens(answer []byte, known map[string]int, plain bool) tokens {
	return tokens{memory: remembered(known, plain), scanner: jsonscan.New(answer)}
}

// release ends the reading: the next reader gets the memory. Rows that were read keep their values.
func (t *tokens) release() {
	memories.Put(t.memory)
	t.memory, t.scanner = nil, jsonscan.Scanner{}
}

// next reads the raw text of a value.
func (t *tokens) next() ([]byte, error) {
	raw, err := t.scanner.Value()
	t.broken = t.broken || err != nil
	return raw, err
}

func (t *tokens) peek() jsonscan.Kind { return t.scanner.Peek() }

// expect reads a brace or bracket.
func (t *tokens) expect(kind jsonscan.Kind) error {
	if got := t.scanner.Peek(); got != kind && got != 0 {
		return Garbled(fmt.Errorf("the response has %s where %s must be", got, kind))
	}
	if err := t.scanner.Step(); err != nil {
		return Garbled(err)
	}
	return nil
}

func (t *tokens) end() error {
	if err := t.scanner.End(); err != nil {
		return Garbled(fmt.Errorf("the response has more text after the end of its JSON: %w", err))
	}
	return nil
}

func (t *tokens) beginRow() error {
	t.names.row, t.names.last = t.names.row+1, 0
	t.lossy = false
	return t.expect('{')
}

func (t *tokens) endRow() error {
	if err := t.expect('}'); err != nil {
		return fmt.Errorf("an entity in the response has no closing brace: %w", err)
	}
	return nil
}

// readName reads the name of a property or an annotation. It returns an error if the row already had the name.
func (t *tokens) readName() (*nameEntry, error) {
	raw, err := t.next()
	if err != nil {
		return nil, err
	}
	if t.scanner.Half {
		t.broken = true
		return nil, errors.New("a name in the response has half of a surrogate pair")
	}
	n, err := t.names.see(raw)
	t.broken = t.broken || err != nil
	return n, err
}

// skip reads a value that the reader does not use. The value must be valid JSON.
func (t *tokens) skip() error {
	raw, err := t.next()
	if err != nil {
		return err
	}
	if t.scanner.Half && jsonscan.KindOf(raw) != '"' { // programs store halves, but no program has written an object of the response
		t.broken = true
		return errors.New("an object in the response has half of a surrogate pair")
	}
	return nil
}

// readType reads the annotation of the property n.
func (t *tokens) readType(n *nameEntry) (edm.Type, error) {
	raw, err := t.next()
	if err != nil {
		return edm.TypeNull, err
	}
	if len(raw) < 2 {
		return edm.TypeNull, fmt.Errorf("a type annotation in the response is cut off")
	}
	typ, ok := edm.ParseType(raw[1 : len(raw)-1])
	if !ok {
		return edm.TypeNull, fmt.Errorf("property %s has a type annotation that names no Edm type", n.name)
	}
	return typ, nil
}

// readValue reads a JSON scalar as the annotated type, TypeNull for none.
func (t *tokens) readValue(typ edm.Type) (edm.Value, error) {
	raw, err := t.next()
	if err != nil {
		return edm.Value{}, err
	}
	switch kind := jsonscan.KindOf(raw); kind {
	case '"':
		text := t.unquote(raw)
		if typ == edm.TypeNull {
			typ = edm.TypeString
		}
		if typ == edm.TypeString {
			return edm.String(t.text(text)), nil
		}
		return edm.FromText(typ, text)
	case '0':
		return edm.FromNumber(typ, raw)
	case 't', 'f':
		if typ != edm.TypeNull && typ != edm.TypeBoolean {
			return edm.Value{}, fmt.Errorf("got a boolean, want %s", typ)
		}
		return edm.Boolean(kind == 't'), nil
	case 'n':
		return edm.Value{}, nil
	}
	return edm.Value{}, fmt.Errorf("the value is an object or array; it must be a string, a number or a boolean")
}

// readString reads a JSON string; it returns same instead of a new string if both are equal.
func (t *tokens) readString(same string) (string, error) {
	raw, err := t.next()
	if err != nil {
		return "", err
	}
	if kind := jsonscan.KindOf(raw); kind != '"' {
		return "", fmt.Errorf("a key, ETag or library property is %s; it must be a string", kind)
	}
	text := t.unquote(raw)
	if same != "" && string(text) == same {
		return same, nil
	}
	return string(text), nil
}

// unquote returns the text of the JSON string that next has returned, valid until the next read. A half of a surrogate pair, which no Go
// string can hold but a program in JavaScript can store, is read as U+FFFD and makes the row lossy.
func (t *tokens) unquote(raw []byte) []byte {
	if !t.scanner.Escaped {
		return raw[1 : len(raw)-1]
	}
	t.lossy = t.lossy || t.scanner.Half
	t.scratch = jsonscan.Unquote(t.scratch[:0], raw)
	return t.scratch
}

const (
	metadataPrefix = "odata."
	annotation     = "@odata.type"
)

// nameTable holds the names in one response: the meaning of each, whether the current row has it already, and
// which name followed it in the previous row. Most rows have the same names in the same order, so the next
// name is usually found by one comparison instead of a search.
type nameTable struct {
	known   map[string]int // properties to keep, nil for all
	plain   bool           // treat the library's own properties like any others
	entries []nameEntry    // entry 0 stands for the start of a row
	byName  map[string]int32
	row     int32
	last    int32 // index of the entry of the previous name
}

// nameEntry is one name.
type nameEntry struct {
	name  string // without quotes and escapes
	plain bool   // equal to its own quoted form, so that it can be compared with the response's bytes
	use   nameUse
	later bool     // a property of a later version of the library
	text  string   // for useOwn: the value in the last row that had the name
	typ   edm.Type // for a property: its annotation in row typRow
	of    int32    // for an annotation: index of the entry of its property
	next  int32    // index of the entry that followed last time, 0 if unknown
	row   int32    // number of the last row that had the name

	at     int32 // for a property: its index in that row's properties, -1 for none
	typRow int32
}

// nameUse says how the reader uses the value under a name.
type nameUse uint8

const (
	useNothing nameUse = iota // metadata, and properties that are not wanted
	useProperty
	useAnnotation
	usePartitionKey
	useRowKey
	useTimestamp
	useETag
	useOwn // a property of the library that this version knows
)

// fewNames is the number of names up to which a linear search is faster than a map.
const fewNames = 32

// see returns the entry of a name. raw is the name as in the response, with its quotes. see returns an error if the row
// already had the name. The entry is valid until the next call.
func (t *nameTable) see(raw []byte) (*nameEntry, error) {
	name := raw[1 : len(raw)-1]
	i := t.entries[t.last].next
	if n := &t.entries[i]; i == 0 || !n.plain || n.name != string(name) {
		if bytes.IndexByte(raw, '\\') >= 0 {
			name = jsonscan.Unquote(nil, raw)
		}
		i = t.entry(string(name))
		t.entries[t.last].next = i
	}
	n := &t.entries[i]
	if n.row == t.row {
		return nil, jsonscan.ErrRepeatedName
	}
	n.row, n.at, t.last = t.row, -1, i
	return n, nil
}

// entry returns the entry of a name, and creates it if necessary.
func (t *nameTable) entry(name string) int32 {
	if i, ok := t.byName[name]; ok {
		return i
	}
	for i := 1; t.byName == nil && i < len(t.entries); i++ {
		if t.entries[i].name == name {
			return int32(i)
		}
	}
	n := nameEntry{name: name, plain: strings.IndexByte(name, '\\') < 0, use: t.useOf(name), later: !t.plain && strings.HasPrefix(name, rows.Prefix)}
	if n.use == useAnnotation {
		n.of = t.entry(strings.TrimSuffix(name, annotation))
	}
	i := int32(len(t.entries))
	t.entries = append(t.entries, n)
	switch {
	case t.byName != nil:
		t.byName[name] = i
	case len(t.entries) > fewNames:
		t.byName = make(map[string]int32, 2*len(t.entries))
		for i := range t.entries[1:] {
			t.byName[t.entries[i+1].name] = int32(i + 1)
		}
	}
	return i
}

func (t *nameTable) useOf(name string) nameUse {
	switch name {
	case "PartitionKey":
		return usePartitionKey
	case "RowKey":
		return useRowKey
	case "Timestamp":
		return useTimestamp
	case "odata.etag":
		return useETag
	}
	if !t.plain && rows.IsKnown(name) {
		return useOwn
	}
	if strings.HasPrefix(name, metadataPrefix) {
		return useNothing
	}
	of, annotates := strings.CutSuffix(name, annotation)
	_, wanted := t.known[of]
	wanted = wanted || t.known == nil || strings.HasPrefix(of, rows.Prefix)
	if !wanted || annotates && of == "Timestamp" {
		return useNothing
	}
	if !annotates {
		return useProperty
	}
	if strings.HasSuffix(of, annotation) {
		return useNothing
	}
	return useAnnotation
}
