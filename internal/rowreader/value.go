package rowreader

import (
	"bytes"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// skip reads a value that nobody wants. It still has to be JSON.
func (r *Reader[P]) skip() error {
	raw, err := r.decoder.ReadValue()
	if err != nil {
		return err
	}
	if kind := raw.Kind(); (kind == '{' || kind == '[') && !raw.IsValid() {
		return errRepeatedName // the only fault that the decoder was told to let pass
	}
	return nil
}

// readProperty reads the value of a property.
func (r *Reader[P]) readProperty(n *nameEntry) error {
	v, err := r.readValue(r.names.typeOf(n))
	if err != nil {
		return fmt.Errorf("property %s: %w", n.name, err)
	}
	if !v.IsNull() {
		n.at = int32(len(r.row.Properties))
		r.row.Properties = r.access.Append(r.row.Properties, n.name, v)
		r.later = r.later || n.later
	}
	return nil
}

// readAnnotation notes a type. The service writes it before the value it belongs to; after it is legal as well.
func (r *Reader[P]) readAnnotation(n *nameEntry) error {
	raw, err := r.decoder.ReadValue()
	if err != nil {
		return err
	}
	if len(raw) < 2 {
		return fmt.Errorf("an annotation is cut")
	}
	of := &r.names.entries[n.of]
	t, ok := edm.ParseType(raw[1 : len(raw)-1])
	if !ok {
		return fmt.Errorf("property %s has a type that no property can have", of.name)
	}
	if of.at >= 0 && of.row == r.names.row {
		_, p := r.access(&r.row.Properties[of.at])
		*p, err = p.Retype(t)
		return err
	}
	of.typ, of.typRow = t, r.names.row
	return nil
}

// readValue reads a JSON scalar as the annotated type, TypeNull for none.
func (r *Reader[P]) readValue(t edm.Type) (edm.Value, error) {
	raw, err := r.decoder.ReadValue()
	if err != nil {
		return edm.Value{}, err
	}
	switch raw.Kind() {
	case '"':
		text, err := r.unquote(raw)
		if err != nil {
			return edm.Value{}, err
		}
		if t == edm.TypeNull {
			t = edm.TypeString
		}
		return edm.FromText(t, text)
	case '0':
		return edm.FromNumber(t, raw)
	case 't', 'f':
		if t != edm.TypeNull && t != edm.TypeBoolean {
			return edm.Value{}, fmt.Errorf("a boolean is no %s", t)
		}
		return edm.Boolean(raw.Kind() == 't'), nil
	case 'n':
		return edm.Value{}, nil
	}
	return edm.Value{}, fmt.Errorf("neither a text nor a number")
}

// readString reads a JSON string; same is returned instead of a new string when it is the same.
func (r *Reader[P]) readString(same string) (string, error) {
	raw, err := r.decoder.ReadValue()
	if err != nil {
		return "", err
	}
	if raw.Kind() != '"' {
		return "", fmt.Errorf("%s where a text belongs", raw.Kind())
	}
	text, err := r.unquote(raw)
	if err != nil {
		return "", err
	}
	if same != "" && string(text) == same {
		return same, nil
	}
	return string(text), nil
}

// readOwn reads one of the library's own properties that this version knows. All are texts, but for the term of a reservation: one
// that is not a number of seconds is left out, as if it were not there. Such a reservation is never freed for its age, and a row
// that another program has damaged does not hide the others of its page.
func (r *Reader[P]) readOwn(n *nameEntry) error {
	if n.name == rows.Term {
		raw, err := r.decoder.ReadValue()
		if err != nil {
			return err
		}
		if term := lease.ParseTerm(string(raw)); term > 0 {
			r.row.System = r.access.Append(r.row.System, n.name, edm.Int32(int32(term/time.Second)))
		}
		return nil
	}
	var err error
	n.text, err = r.readString(n.text) // mostly the same as in the row before
	if n.name == rows.WriteID {
		r.row.WriteID = n.text
		return err
	}
	r.row.System = r.access.Append(r.row.System, n.name, edm.String(n.text))
	return err
}

// unquote returns the text of a JSON string, valid until the next read.
func (r *Reader[P]) unquote(raw jsontext.Value) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	var err error
	r.scratch, err = jsontext.AppendUnquote(r.scratch[:0], raw)
	return r.scratch, err
}
