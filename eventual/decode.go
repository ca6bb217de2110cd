package eventual

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Decode reads the body into the value that v points to. It matches names of members as encoding/json does: first exactly, then
// ignoring case; it ignores members without a field.
//
// It returns tables.ErrInvalid for a body that sets no field of a struct: such a message was meant for
// another handler. If the handler continued with the zero value, the worker would delete the message.
// WorkerOptions.AllowUnfilled accepts such bodies. Decode always accepts what Send writes for the zero value.
// Its errors name the type and the position, never a value.
func (m *Message) Decode(v any) error {
	if err := json.Unmarshal(m.Body, v, namesMatch); err != nil {
		return tables.InvalidIn("Decode", m.queueName(), "the body of a message of type %q does not decode into a %T%s; decode it into the type that its sender wrote", m.Type, v, whereJSON(err))
	}
	if !m.allowUnfilled && !fills(m.Body, reflect.TypeOf(v).Elem()) {
		return tables.InvalidIn("Decode", m.queueName(), "the body of a message of type %q sets no field of a %T; decode it into the type that its sender wrote, or set WorkerOptions.AllowUnfilled", m.Type, v)
	}
	return nil
}

// namesMatch matches names as encoding/json does. Without it, {"department":"Sales"} would silently leave a field
// Department empty.
var namesMatch = json.JoinOptions(json.MatchCaseInsensitiveNames(true), jsonv1.MatchCaseSensitiveDelimiter(true))

// fills reports whether a body that was decoded into a t sets any field of t. Types other than structs and pointers
// to them accept every body. A body without members is accepted only if t's zero value encodes to it.
func fills(body []byte, t reflect.Type) bool {
	base := t
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	if base.Kind() != reflect.Struct {
		return true
	}
	if kind := jsontext.Value(body).Kind(); kind != '{' && kind != 'n' {
		return true // a string or number, which the struct decodes itself
	}
	names := memberNames(body)
	if len(names) == 0 {
		zero, err := json.Marshal(reflect.New(t).Elem().Interface())
		return err == nil && bytes.Equal(zero, bytes.Join(bytes.Fields(body), nil))
	}
	for _, name := range names {
		probe, err := json.Marshal(map[string]any{name: nil})
		if err != nil {
			return true
		}
		err = json.Unmarshal(probe, reflect.New(base).Interface(), namesMatch, json.RejectUnknownMembers(true))
		if !errors.Is(err, json.ErrUnknownName) {
			return true
		}
	}
	return false
}

// memberNames returns the names of an object's members; none for null.
func memberNames(body []byte) (names []string) {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return names
		}
		names = append(names, name.String())
		if err := d.SkipValue(); err != nil {
			return names
		}
	}
	return names
}
