package rowreader

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// tokens reads the parts of a response that do not depend on the type of a property. It has no type parameter because
// the compiler does not inline the decoder's functions into generic code that another package instantiates, which costs
// 1 % of a page's instructions.
type tokens struct {
	decoder *jsontext.Decoder
	names   nameTable
	scratch []byte
	broken  bool // the whole response cannot be trusted, not only one value
	halves  bool // the response may have halves of surrogate pairs
	lossy   bool // the row has a half of a surrogate pair
}

// newTokens makes a strict decoder, unless the response may contain half of a surrogate pair, which a program in JavaScript can
// store. Then it makes a lenient decoder, which also lets invalid UTF-8 pass; next refuses that.
func newTokens(answer []byte, known map[string]int) tokens {
	halves := bytes.Contains(answer, []byte(`\ud`)) || bytes.Contains(answer, []byte(`\uD`))
	return tokens{
		decoder: jsontext.NewDecoder(bytes.NewBuffer(answer), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(halves)),
		names:   nameTable{known: known, entries: make([]nameEntry, 1, fewNames)},
		halves:  halves,
	}
}

// next reads the raw text of a value.
func (t *tokens) next() (jsontext.Value, error) {
	raw, err := t.decoder.ReadValue()
	if err == nil && t.halves && !utf8.Valid(raw) {
		err = errors.New("the response is not valid UTF-8")
	}
	t.broken = t.broken || err != nil
	return raw, err
}

func (t *tokens) peek() jsontext.Kind { return t.decoder.PeekKind() }

func (t *tokens) expect(kind jsontext.Kind) error {
	token, err := t.decoder.ReadToken()
	if err != nil {
		return Garbled(err)
	}
	if token.Kind() != kind {
		return Garbled(fmt.Errorf("the response has %s where %s must be", token.Kind(), kind))
	}
	return nil
}

func (t *tokens) end() error {
	if _, err := t.decoder.ReadToken(); err != io.EOF {
		return Garbled(errors.New("the response has more text after the end of its JSON"))
	}
	return nil
}

func (t *tokens) beginRow() error {
	t.names.row, t.names.last = t.names.row+1, 0
	t.lossy = false
	_, err := t.decoder.ReadToken()
	return err
}

func (t *tokens) endRow() error {
	if token, err := t.decoder.ReadToken(); err != nil || token.Kind() != '}' {
		return errors.Join(errors.New("an entity in the response has no closing brace"), err)
	}
	return nil
}

// readName reads the name of a property or an annotation. It returns an error if the row already had the name.
func (t *tokens) readName() (*nameEntry, error) {
	raw, err := t.next()
	if err != nil {
		return nil, err
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
	if kind := raw.Kind(); (kind == '{' || kind == '[') && !raw.IsValid() {
		t.broken = true
		return errRepeatedName // the value has no other error: the decoder or next has checked it
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
	switch raw.Kind() {
	case '"':
		text, err := t.unquote(raw)
		if err != nil {
			return edm.Value{}, err
		}
		if typ == edm.TypeNull {
			typ = edm.TypeString
		}
		return edm.FromText(typ, text)
	case '0':
		return edm.FromNumber(typ, raw)
	case 't', 'f':
		if typ != edm.TypeNull && typ != edm.TypeBoolean {
			return edm.Value{}, fmt.Errorf("got a boolean, want %s", typ)
		}
		return edm.Boolean(raw.Kind() == 't'), nil
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
	if raw.Kind() != '"' {
		return "", fmt.Errorf("a key, ETag or library property is %s; it must be a string", raw.Kind())
	}
	text, err := t.unquote(raw)
	if err != nil {
		return "", err
	}
	if same != "" && string(text) == same {
		return same, nil
	}
	return string(text), nil
}

// unquote returns the text of a JSON string, valid until the next read. A half of a surrogate pair, which no Go string can hold, is read
// as U+FFFD and makes the row lossy.
func (t *tokens) unquote(raw jsontext.Value) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	var err error
	t.scratch, err = jsontext.AppendUnquote(t.scratch[:0], raw)
	if err != nil && t.halves { // the decoder has checked everything else in the string
		t.lossy, err = true, nil
	}
	return t.scratch, err
}

const (
	metadataPrefix = "odata."
	annotation     = "@odata.type"
)

// errRepeatedName reports that a response has a name twice: it is unknown which of the two values is right.
var errRepeatedName = errors.New("an object in the response has a member twice")

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
	if len(raw) < 2 {
		return nil, errors.New("a property name in the response is cut off")
	}
	name := raw[1 : len(raw)-1]
	i := t.entries[t.last].next
	if n := &t.entries[i]; i == 0 || !n.plain || n.name != string(name) {
		if bytes.IndexByte(raw, '\\') >= 0 {
			var err error
			if name, err = jsontext.AppendUnquote(nil, raw); err != nil {
				return nil, err
			}
		}
		i = t.entry(string(name))
		t.entries[t.last].next = i
	}
	n := &t.entries[i]
	if n.row == t.row {
		return nil, errRepeatedName
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
