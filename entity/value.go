package entity

import (
	"time"

	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Value is the value of one property: one of the eight EDM types, or null, which is the zero Value. It is immutable and comparable:
// two Values are == if type and content are the same bit for bit, so NaN equals NaN, and -0 differs from 0.
type Value edm.Value

// Type is the EDM type of a Value.
type Type edm.Type

// The types of property values.
const (
	TypeNull     = Type(edm.TypeNull)
	TypeString   = Type(edm.TypeString)
	TypeBinary   = Type(edm.TypeBinary)
	TypeBoolean  = Type(edm.TypeBoolean)
	TypeInt32    = Type(edm.TypeInt32)
	TypeInt64    = Type(edm.TypeInt64)
	TypeDouble   = Type(edm.TypeDouble)
	TypeDateTime = Type(edm.TypeDateTime)
	TypeGUID     = Type(edm.TypeGuid)
)

// String returns the name that the service uses, such as "Edm.Int64"; "null" for TypeNull.
func (t Type) String() string { return edm.Type(t).String() }

// String makes an Edm.String value.
func String(s string) Value { return Value(edm.String(s)) }

// Binary makes an Edm.Binary value of a copy of b.
func Binary(b []byte) Value { return Value(edm.Binary(b)) }

// Boolean makes an Edm.Boolean value.
func Boolean(b bool) Value { return Value(edm.Boolean(b)) }

// Int32 makes an Edm.Int32 value.
func Int32(i int32) Value { return Value(edm.Int32(i)) }

// Int64 makes an Edm.Int64 value.
func Int64(i int64) Value { return Value(edm.Int64(i)) }

// Double makes an Edm.Double value. NaN and the infinities can be stored; every NaN becomes the same one.
func Double(f float64) Value { return Value(edm.Double(f)) }

// GUID makes an Edm.Guid value.
func GUID(u uuid.UUID) Value { return Value(edm.Guid(u)) }

// DateTime makes an Edm.DateTime value in UTC. A time finer than 100 ns, before 1601 or after 9999 is an error: nothing is rounded.
func DateTime(t time.Time) (Value, error) {
	v, err := edm.DateTime(t)
	return Value(v), err
}

// Type returns the value's type, TypeNull for the zero Value.
func (v Value) Type() Type { return Type(edm.Value(v).Type()) }

// IsNull reports whether v is the zero Value.
func (v Value) IsNull() bool { return edm.Value(v).IsNull() }

// Text returns the text of an Edm.String; false for a value of another type.
func (v Value) Text() (string, bool) { return edm.Value(v).Str() }

// Bytes returns a copy of an Edm.Binary; false for a value of another type.
func (v Value) Bytes() ([]byte, bool) { return edm.Value(v).Bytes() }

// Bool returns an Edm.Boolean; false for a value of another type.
func (v Value) Bool() (value, ok bool) { return edm.Value(v).Bool() }

// Int returns an Edm.Int32 or an Edm.Int64; false for a value of another type.
func (v Value) Int() (int64, bool) { return edm.Value(v).Int() }

// Float returns an Edm.Double; false for a value of another type.
func (v Value) Float() (float64, bool) { return edm.Value(v).Float() }

// Time returns an Edm.DateTime in UTC; false for a value of another type.
func (v Value) Time() (time.Time, bool) { return edm.Value(v).Time() }

// UUID returns an Edm.Guid; false for a value of another type.
func (v Value) UUID() (uuid.UUID, bool) { return edm.Value(v).UUID() }

// Any returns the value as the Go type that stands for its EDM type: string, []byte, bool, int32, int64, float64, time.Time,
// uuid.UUID, or nil for null.
func (v Value) Any() any { return edm.Value(v).Any() }

// StoredSize returns how many bytes of the 1 MiB of an entity the value takes.
func (v Value) StoredSize() int { return edm.Value(v).StoredSize() }

// String returns type and size, such as "Edm.String of 24 bytes", and never the content: a Value may be a secret.
func (v Value) String() string { return edm.Value(v).String() }

// GoString returns type and content, for the failures of tests. No error and no log line of the library uses it.
func (v Value) GoString() string { return edm.Value(v).GoString() }

// The limits of the service. Input over one of them causes ErrTooLarge before any request; a page size over MaxPageSize
// causes ErrInvalid.
const (
	MaxProperties            = edm.MaxProperties  // 252 properties of an entity, including the library's own
	MaxEntitySize            = edm.MaxEntitySize  // 1 MiB: the bytes of an entity, by the service's formula
	MaxStringUnits           = edm.MaxStringUnits // 32,768 UTF-16 code units of a string property (64 KiB)
	MaxBinarySize            = edm.MaxBinarySize  // 65,536 bytes of a binary property (64 KiB)
	MaxTransactionOperations = edm.MaxBatchOps    // 100 operations of an entity group transaction
	MaxTransactionSize       = edm.MaxBatchBytes  // 4 MiB: the bytes of an entity group transaction, as sent
	MaxPageSize              = edm.MaxPageSize    // 1,000 entities of a page
	MaxFilterComparisons     = edm.MaxComparisons // 15 comparisons of a filter
)
