package eventual

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Decode reads the body into what v points to. Names of members match as encoding/json matches them: an exact match
// first, then one that differs in case only; members without a field are ignored. A body that sets no field of a struct
// is refused (tables.ErrInvalid), since the message was then meant for somebody else, and a handler that goes on with
// the zero value would have it deleted; WorkerOptions.AllowUnfilled allows it. What Send writes for the zero value is
// accepted. An error names the type and the place, never a value.
func (m *Message) Decode(v any) error {
	if err := json.Unmarshal(m.Body, v, namesMatch); err != nil {
		return invalidf("Decode", m.queueName(), "the body of a message of type %q does not fit a %T%s", m.Type, v, whereJSON(err))
	}
	if !m.allowUnfilled && !fills(m.Body, reflect.TypeOf(v).Elem()) {
		return invalidf("Decode", m.queueName(), "the body of a message of type %q sets no field of a %T; decode it into the type that its sender wrote, or set WorkerOptions.AllowUnfilled", m.Type, v)
	}
	return nil
}

// namesMatch makes names match as encoding/json does. Without it, {"department":"Sales"} would leave a field Department
// empty and be no error.
var namesMatch = json.JoinOptions(json.MatchCaseInsensitiveNames(true), jsonv1.MatchCaseSensitiveDelimiter(true))

// fills reports whether a body that was decoded into a t has something that t has a place for. Types other than structs
// and pointers to them take every body. A body without members fills t only if t's zero value is written so.
func fills(body []byte, t reflect.Type) bool {
	base := t
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	if base.Kind() != reflect.Struct {
		return true
	}
	if kind := jsontext.Value(body).Kind(); kind != '{' && kind != 'n' {
		return true // text or a number, which the struct reads itself
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

// memberNames returns the names of an object's members, none for null.
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
