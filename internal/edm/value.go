// Package edm holds the eight property types of Azure Tables as one compact, comparable value, and the service's rules
// for them: ranges, sizes, names.
package edm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Type is the EDM type of a stored property.
type Type uint8

// The types a property can have. The zero Type is TypeNull: the property does not exist.
const (
	TypeNull Type = iota
	TypeString
	TypeBinary
	TypeBoolean
	TypeInt32
	TypeInt64
	TypeDouble
	TypeDateTime
	TypeGuid
)

var typeNames = [...]string{"null", "Edm.String", "Edm.Binary", "Edm.Boolean", "Edm.Int32", "Edm.Int64", "Edm.Double", "Edm.DateTime", "Edm.Guid"}

// String returns the name that the service uses, such as "Edm.Int64"; "null" for any other Type.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "null"
}

// ParseType is the inverse of Type.String. It returns false for any text that is not the name of an EDM type, such as
// "null".
func ParseType(name []byte) (Type, bool) {
	for t := TypeString; int(t) < len(typeNames); t++ {
		if string(name) == typeNames[t] {
			return t, true
		}
	}
	return TypeNull, false
}

// Value is one property value. A Value is immutable and comparable: two Values are == if type and content are equal bit by bit, so NaN
// equals NaN, and -0 differs from 0. The zero Value is null.
type Value struct {
	typ    Type
	num    uint64 // boolean, integers, the bits of a double, ticks of a date, first half of a guid
	num2   uint64 // second half of a guid
	string string // text of a string, octets of a binary
}

// String makes an Edm.String.
func String(s string) Value { return Value{typ: TypeString, string: s} }

// Binary makes an Edm.Binary of a copy of b.
func Binary(b []byte) Value { return Value{typ: TypeBinary, string: string(b)} }

// Boolean makes an Edm.Boolean.
func Boolean(b bool) Value {
	if b {
		return Value{typ: TypeBoolean, num: 1}
	}
	return Value{typ: TypeBoolean}
}

// Int32 makes an Edm.Int32.
func Int32(i int32) Value { return Value{typ: TypeInt32, num: uint64(int64(i))} }

// Int64 makes an Edm.Int64.
func Int64(i int64) Value { return Value{typ: TypeInt64, num: uint64(i)} }

// Double makes an Edm.Double. The service stores NaN and the infinities, but only one of the many bit patterns of NaN,
// so Double gives every NaN that pattern.
func Double(f float64) Value {
	if math.IsNaN(f) {
		f = math.NaN()
	}
	return Value{typ: TypeDouble, num: math.Float64bits(f)}
}

// Guid makes an Edm.Guid.
func Guid(u uuid.UUID) Value {
	var hi, lo uint64
	for i := range 8 {
		hi = hi<<8 | uint64(u[i])
		lo = lo<<8 | uint64(u[i+8])
	}
	return Value{typ: TypeGuid, num: hi, num2: lo}
}

// DateTime makes an Edm.DateTime in UTC. It returns an error for a time finer than 100 ns, before 1601-01-01 or after
// 9999-12-31: it rounds nothing.
func DateTime(t time.Time) (Value, error) {
	ticks, err := Ticks(t)
	if err != nil {
		return Value{}, err
	}
	if ticks < minDateTimeTicks {
		return Value{}, fmt.Errorf("the year is %d; it must be 1601 or later, the first year that the service stores", t.UTC().Year())
	}
	return dateTimeOfTicks(ticks), nil
}

func dateTimeOfTicks(ticks int64) Value { return Value{typ: TypeDateTime, num: uint64(ticks)} }

// Type returns the value's EDM type, TypeNull for the zero Value.
func (v Value) Type() Type { return v.typ }

// IsNull reports whether v is the zero Value.
func (v Value) IsNull() bool { return v.typ == TypeNull }

// Str returns the text of an Edm.String.
func (v Value) Str() (string, bool) { return v.string, v.typ == TypeString }

// Bytes returns a copy of an Edm.Binary.
func (v Value) Bytes() ([]byte, bool) {
	if v.typ != TypeBinary {
		return nil, false
	}
	return []byte(v.string), true
}

// Bool returns an Edm.Boolean.
func (v Value) Bool() (value, ok bool) { return v.num == 1, v.typ == TypeBoolean }

// Int returns an Edm.Int32 or Edm.Int64.
func (v Value) Int() (int64, bool) { return int64(v.num), v.typ == TypeInt32 || v.typ == TypeInt64 }

// Float returns an Edm.Double.
func (v Value) Float() (float64, bool) { return math.Float64frombits(v.num), v.typ == TypeDouble }

// Time returns an Edm.DateTime, in UTC.
func (v Value) Time() (time.Time, bool) {
	if v.typ != TypeDateTime {
		return time.Time{}, false
	}
	return TimeOfTicks(int64(v.num)), true
}

// UUID returns an Edm.Guid.
func (v Value) UUID() (uuid.UUID, bool) {
	var u uuid.UUID
	if v.typ != TypeGuid {
		return u, false
	}
	hi, lo := v.num, v.num2
	for i := 7; i >= 0; i-- {
		u[i], u[i+8] = byte(hi), byte(lo)
		hi, lo = hi>>8, lo>>8
	}
	return u, true
}

// Any returns the value as the Go type that stands for its EDM type: string, []byte, bool, int32, int64,
// float64, time.Time, uuid.UUID, or nil.
func (v Value) Any() any {
	switch v.typ {
	case TypeString:
		return v.string
	case TypeBinary:
		return []byte(v.string)
	case TypeBoolean:
		return v.num == 1
	case TypeInt32:
		return int32(int64(v.num))
	case TypeInt64:
		return int64(v.num)
	case TypeDouble:
		return math.Float64frombits(v.num)
	case TypeDateTime:
		return TimeOfTicks(int64(v.num))
	case TypeGuid:
		u, _ := v.UUID()
		return u
	}
	return nil
}

// GoString shows type and content, for the failures of tests. Errors and logs never use it.
func (v Value) GoString() string {
	switch v.typ {
	case TypeDateTime:
		return "DateTime(" + string(AppendDateTime(nil, int64(v.num))) + ")"
	case TypeDouble:
		return "Double(" + strconv.FormatFloat(math.Float64frombits(v.num), 'g', -1, 64) + ")"
	}
	return fmt.Sprintf("%s(%#v)", strings.TrimPrefix(v.typ.String(), "Edm."), v.Any())
}

// String returns the type and the size, never the content: the Value may be a secret that is not yet encrypted.
func (v Value) String() string {
	return fmt.Sprintf("%s of %d bytes", v.typ, v.StoredSize())
}
