package fields

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// conversion says how a Go type is stored.
type conversion uint8

const (
	asString conversion = iota
	asBinary
	asBoolean
	asInt32
	asInt64
	asUint64
	asDouble
	asDateTime
	asGuid
	asValue
	asText
	asJSONText
)

func (c conversion) edmType() edm.Type {
	return [...]edm.Type{edm.TypeString, edm.TypeBinary, edm.TypeBoolean, edm.TypeInt32, edm.TypeInt64, edm.TypeInt64, edm.TypeDouble, edm.TypeDateTime,
		edm.TypeGuid, edm.TypeNull, edm.TypeString, edm.TypeString}[c]
}

var valueType, metaType = reflect.TypeFor[entity.Value](), reflect.TypeFor[entity.Meta]()

// own returns a pointer to the value of a field of type entity.Value.
func own(v reflect.Value) *edm.Value { return (*edm.Value)(v.Addr().Interface().(*entity.Value)) }

// conversionOf chooses the conversion for a type or a pointer to it.
func conversionOf(t reflect.Type, asJSON bool) (c conversion, pointer bool, err error) {
	if asJSON {
		return asJSONText, false, nil
	}
	if t.Kind() == reflect.Pointer {
		t, pointer = t.Elem(), true
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return asDateTime, pointer, nil
	case reflect.TypeFor[uuid.UUID]():
		return asGuid, pointer, nil
	case valueType:
		return asValue, pointer, nil
	}
	if address := reflect.PointerTo(t); address.Implements(reflect.TypeFor[encoding.TextMarshaler]()) &&
		address.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return asText, pointer, nil
	}
	switch t.Kind() {
	case reflect.String:
		return asString, pointer, nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return asBinary, pointer, nil
		}
	case reflect.Bool:
		return asBoolean, pointer, nil
	case reflect.Int32, reflect.Int16, reflect.Int8, reflect.Uint8, reflect.Uint16:
		return asInt32, pointer, nil
	case reflect.Int, reflect.Int64, reflect.Uint32:
		return asInt64, pointer, nil
	case reflect.Uint, reflect.Uint64:
		return asUint64, pointer, nil
	case reflect.Float64, reflect.Float32:
		return asDouble, pointer, nil
	}
	return 0, false, fmt.Errorf("%s has no EDM type; tag the field `table:\",json\"` or `table:\"-\"`", t)
}

// store returns the stored value of an addressable field.
func (c conversion) store(v reflect.Value) (edm.Value, error) {
	switch c {
	case asString:
		return edm.String(v.String()), nil
	case asBinary:
		if v.IsNil() {
			return edm.Value{}, nil
		}
		return edm.Binary(v.Bytes()), nil
	case asBoolean:
		return edm.Boolean(v.Bool()), nil
	case asInt32:
		return edm.Int32(int32(intOf(v))), nil
	case asInt64:
		return edm.Int64(intOf(v)), nil
	case asUint64:
		if v.Uint() > math.MaxInt64 {
			return edm.Value{}, fmt.Errorf("the unsigned integer is larger than %d, the largest Edm.Int64; use a smaller one, or a string", int64(math.MaxInt64))
		}
		return edm.Int64(int64(v.Uint())), nil
	case asDouble:
		return edm.Double(v.Float()), nil
	case asDateTime:
		t := v.Addr().Interface().(*time.Time)
		if t.IsZero() {
			return edm.Value{}, errors.New("the time is zero, and the first year that the service stores is 1601; tag the field omitzero, or use a pointer, if the time may be unset")
		}
		return edm.DateTime(*t)
	case asGuid:
		return edm.Guid(*v.Addr().Interface().(*uuid.UUID)), nil
	case asValue:
		return *own(v), nil
	case asText:
		text, err := v.Addr().Interface().(encoding.TextMarshaler).MarshalText()
		return edm.String(string(text)), foreign(v, err)
	}
	text, err := json.Marshal(v.Addr().Interface())
	return edm.String(string(text)), foreign(v, err)
}

// foreign replaces an error of a type's own conversion to or from text, because such an error usually quotes the value,
// and the value may be a secret. The result names only the types of the field and of the error, and does not wrap the
// error.
func foreign(v reflect.Value, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the type's own conversion to or from text of %s failed with an error of type %T (its text may quote the value, so it is left out)", v.Type(), err)
}

func intOf(v reflect.Value) int64 {
	if v.CanInt() {
		return v.Int()
	}
	return int64(v.Uint())
}

// load sets a field to a stored value. It accepts a value of another type only if the conversion loses nothing.
func (c conversion) load(v reflect.Value, value edm.Value) error {
	switch c {
	case asString:
		if s, ok := value.Str(); ok {
			v.SetString(s)
			return nil
		}
	case asBinary:
		if b, ok := value.Bytes(); ok {
			v.SetBytes(b)
			return nil
		}
	case asBoolean:
		if b, ok := value.Bool(); ok {
			v.SetBool(b)
			return nil
		}
	case asInt32, asInt64, asUint64:
		if n, ok := value.Int(); ok {
			return loadInt(v, n)
		}
	case asDouble:
		f, ok := value.Float()
		if n, isInt := value.Int(); isInt {
			f = float64(n)
			ok = int64(f) == n
		}
		if ok {
			return loadFloat(v, f)
		}
	case asDateTime:
		if t, ok := value.Time(); ok {
			*v.Addr().Interface().(*time.Time) = t
			return nil
		}
	case asGuid:
		if u, ok := value.UUID(); ok {
			*v.Addr().Interface().(*uuid.UUID) = u
			return nil
		}
	case asValue:
		*own(v) = value
		return nil
	case asText:
		if s, ok := value.Str(); ok {
			return foreign(v, v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)))
		}
	case asJSONText:
		if s, ok := value.Str(); ok {
			return foreign(v, json.Unmarshal([]byte(s), v.Addr().Interface()))
		}
	}
	return fmt.Errorf("a field of type %s cannot hold a value of the stored type", v.Type())
}

func loadInt(v reflect.Value, n int64) error {
	if v.CanInt() {
		if !v.OverflowInt(n) {
			v.SetInt(n)
			return nil
		}
	} else if n >= 0 && !v.OverflowUint(uint64(n)) {
		v.SetUint(uint64(n))
		return nil
	}
	return fmt.Errorf("the number overflows the field's type %s", v.Type())
}

func loadFloat(v reflect.Value, f float64) error {
	if v.Kind() == reflect.Float32 && float64(float32(f)) != f && !math.IsNaN(f) {
		return fmt.Errorf("the field's type %s cannot hold the number without loss", v.Type())
	}
	v.SetFloat(f)
	return nil
}

// ValueOf returns the value that a field of x's type with the content x would be stored as.
func ValueOf(x any) (edm.Value, error) {
	if x == nil {
		return edm.Value{}, errNil
	}
	v := reflect.ValueOf(x)
	c, pointer, err := conversionOf(v.Type(), false)
	if err != nil {
		return edm.Value{}, err
	}
	if pointer {
		if v.IsNil() {
			return edm.Value{}, errNil
		}
		return c.store(v.Elem())
	}
	addressable := reflect.New(v.Type()).Elem()
	addressable.Set(v)
	return c.store(addressable)
}

var errNil = errors.New("a value must not be nil")

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// isZero implements the rule of omitzero in encoding/json: it calls IsZero if the type has it.
func isZero(v reflect.Value) bool {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return true
	}
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	return v.IsZero()
}
