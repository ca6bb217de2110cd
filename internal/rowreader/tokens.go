package rowreader

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/lease"
)

// tokens reads one answer as far as that does not depend on the type of a property. It has no type parameter because the compiler does
// not inline the decoder's functions into generic code that another package instantiates, which costs 1 % of a page's instructions.
type tokens struct {
	decoder *jsontext.Decoder
	names   nameTable
	scratch []byte
}

func newTokens(answer []byte, known map[string]int) tokens {
	return tokens{
		decoder: jsontext.NewDecoder(bytes.NewBuffer(answer), jsontext.AllowDuplicateNames(true)),
		names:   newNameTable(known),
	}
}

func (t *tokens) peek() jsontext.Kind { return t.decoder.PeekKind() }

func (t *tokens) expect(kind jsontext.Kind) error {
	token, err := t.decoder.ReadToken()
	if err != nil {
		return Garbled(err)
	}
	if token.Kind() != kind {
		return Garbled(fmt.Errorf("%s where %s belongs", token.Kind(), kind))
	}
	return nil
}

func (t *tokens) end() error {
	if _, err := t.decoder.ReadToken(); err != io.EOF {
		return Garbled(errors.New("something follows its end"))
	}
	return nil
}

func (t *tokens) beginRow() error {
	t.names.nextRow()
	_, err := t.decoder.ReadToken()
	return err
}

func (t *tokens) endRow() error {
	if token, err := t.decoder.ReadToken(); err != nil || token.Kind() != '}' {
		return errors.Join(errors.New("an entity does not end"), err)
	}
	return nil
}

// readName reads the name of a property or an annotation, which the row must not have had before.
func (t *tokens) readName() (*nameEntry, error) {
	raw, err := t.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	return t.names.see(raw)
}

// skip reads a value that nobody wants. It still has to be JSON.
func (t *tokens) skip() error {
	raw, err := t.decoder.ReadValue()
	if err != nil {
		return err
	}
	if kind := raw.Kind(); (kind == '{' || kind == '[') && !raw.IsValid() {
		return errRepeatedName // the only fault that the decoder was told to let pass
	}
	return nil
}

// readType reads the annotation of the property n.
func (t *tokens) readType(n *nameEntry) (edm.Type, error) {
	raw, err := t.decoder.ReadValue()
	if err != nil {
		return edm.TypeNull, err
	}
	if len(raw) < 2 {
		return edm.TypeNull, fmt.Errorf("an annotation is cut")
	}
	typ, ok := edm.ParseType(raw[1 : len(raw)-1])
	if !ok {
		return edm.TypeNull, fmt.Errorf("property %s has a type that no property can have", n.name)
	}
	return typ, nil
}

// readValue reads a JSON scalar as the annotated type, TypeNull for none.
func (t *tokens) readValue(typ edm.Type) (edm.Value, error) {
	raw, err := t.decoder.ReadValue()
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
			return edm.Value{}, fmt.Errorf("a boolean is no %s", typ)
		}
		return edm.Boolean(raw.Kind() == 't'), nil
	case 'n':
		return edm.Value{}, nil
	}
	return edm.Value{}, fmt.Errorf("neither a text nor a number")
}

// readString reads a JSON string; same is returned instead of a new string when it is the same.
func (t *tokens) readString(same string) (string, error) {
	raw, err := t.decoder.ReadValue()
	if err != nil {
		return "", err
	}
	if raw.Kind() != '"' {
		return "", fmt.Errorf("%s where a text belongs", raw.Kind())
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

// readTerm reads the term of a reservation, 0 for what is not a number of seconds. Such a reservation is never freed for its age, and
// a row that another program has damaged does not hide the others of its page.
func (t *tokens) readTerm() (time.Duration, error) {
	raw, err := t.decoder.ReadValue()
	if err != nil {
		return 0, err
	}
	return lease.ParseTerm(string(raw)), nil
}

// unquote returns the text of a JSON string, valid until the next read.
func (t *tokens) unquote(raw jsontext.Value) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	var err error
	t.scratch, err = jsontext.AppendUnquote(t.scratch[:0], raw)
	return t.scratch, err
}
