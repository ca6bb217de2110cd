package rowreader

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/lease"
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

// newTokens returns a strict decoder. A program in JavaScript can store half of a surrogate pair, which a strict decoder refuses; only if
// the response may contain one, newTokens returns a lenient decoder, which also lets invalid UTF-8 pass.
func newTokens(answer []byte, known map[string]int) tokens {
	t := tokens{halves: bytes.Contains(answer, []byte(`\ud`)) || bytes.Contains(answer, []byte(`\uD`)), names: newNameTable(known)}
	t.decoder = jsontext.NewDecoder(bytes.NewBuffer(answer), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(t.halves))
	return t
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
	t.names.nextRow()
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

// readName reads the name of a property or an annotation, and returns an error if the row already had the
// name.
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
		return errRepeatedName // the only error that the decoder was configured to ignore
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

// readTerm reads the term of a reservation; it returns 0 for anything that is not a number of seconds. So a
// row that another program has damaged does not make its page unreadable. A reservation with term 0 never
// expires.
func (t *tokens) readTerm() (time.Duration, error) {
	raw, err := t.next()
	if err != nil {
		return 0, err
	}
	return lease.ParseTerm(string(raw)), nil
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
