package tables

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

// Key addresses one entity of a table. The empty string is a key like any other. If compoundkey.Join fails, it returns
// an illegal key that contains the error; every operation with such a key returns that error.
type Key struct {
	Partition, Row string
}

// Property is one named value.
type Property struct {
	Name  string
	Value Value
}

// Properties are the custom properties of an entity in the order they were set or stored.
type Properties []Property

// Get returns the property's value, the null Value if there is no such property.
func (p Properties) Get(name string) Value {
	if i := p.index(name); i >= 0 {
		return p[i].Value
	}
	return Value{}
}

// Has reports whether there is such a property.
func (p Properties) Has(name string) bool { return p.index(name) >= 0 }

// Set adds or changes a property.
func (p *Properties) Set(name string, v Value) {
	if i := p.index(name); i >= 0 {
		(*p)[i].Value = v
		return
	}
	*p = append(*p, Property{Name: name, Value: v})
}

// Delete removes a property, if there is one of this name.
func (p *Properties) Delete(name string) {
	if i := p.index(name); i >= 0 {
		*p = append((*p)[:i:i], (*p)[i+1:]...) // a new array: copies of the entity share the old one
	}
}

// Only returns the named properties, or p itself if names is nil. The result shares the values with p.
func (p Properties) Only(names []string) Properties {
	if names == nil {
		return p
	}
	kept := make(Properties, 0, len(names))
	for i := range p {
		if slices.Contains(names, p[i].Name) {
			kept = append(kept, p[i])
		}
	}
	return kept
}

func (p Properties) index(name string) int {
	for i := range p {
		if p[i].Name == name {
			return i
		}
	}
	return -1
}

// Entity is an entity as a property bag, for data without a Go type. It does not show the library's own properties. A row that a
// Repository keeps consistent with others (an entity with copies, a copy, a row that entities share) can be read as an Entity, but
// every write of this Entity returns ErrInvalid: for a plain row elsewhere, make a new Entity with its Key and Properties.
type Entity struct {
	Key        Key
	ETag       azcore.ETag // as read; sent by the conditional writes
	Timestamp  time.Time   // set by the service
	Lossy      bool        // see Meta.Lossy
	Properties Properties

	read rowFacts
}

// Clone returns a copy that shares nothing with e. Assigning the struct shares the properties.
func (e *Entity) Clone() *Entity {
	c := *e
	c.Properties = slices.Clone(e.Properties)
	return &c
}

// Get returns a property's value, the null Value if there is no such property.
func (e *Entity) Get(name string) Value { return e.Properties.Get(name) }

// Set adds or changes a property.
func (e *Entity) Set(name string, v Value) { e.Properties.Set(name, v) }

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

// ValueOf makes the value that a struct field of v's type would be stored as (see Codec). nil, and a Go type without an EDM
// type, are errors.
func ValueOf(v any) (Value, error) {
	if value, ok := v.(Value); ok {
		return value, nil
	}
	value, err := storedTypes.ValueOf(v)
	return Value(value), err
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

// checkReserved returns an error if the caller's properties have a name that is reserved for the library.
func checkReserved(properties Properties) error {
	for i := range properties {
		if strings.HasPrefix(properties[i].Name, rows.Prefix) {
			return fmt.Errorf("property %s: names that begin with %s are reserved for the library; choose another name", properties[i].Name, rows.Prefix)
		}
	}
	return nil
}
