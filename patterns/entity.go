package patterns

import (
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/uuid"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// Key addresses one entity of a table. The empty string is a key like any other. Keys made by compoundkey.Join
// carry its error, if any, as an illegal key that every operation refuses with that error.
type Key struct {
	Partition, Row string
}

func (k Key) check() error {
	if err := checkKey("partition key", k.Partition); err != nil {
		return err
	}
	return checkKey("row key", k.Row)
}

// checkKey refuses a key that is only too long as a matter of size, like everything else that is.
func checkKey(what, key string) error {
	err := compoundkey.CheckKey(key)
	if err == nil {
		return nil
	}
	if n := edm.Units(key); n > compoundkey.MaxUnits {
		return &edm.SizeError{What: "a " + what, Size: n, Limit: compoundkey.MaxUnits, Unit: "UTF-16 units"}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Value is the value of one property: one of the eight EDM types. It is immutable and comparable.
type Value = edm.Value

// Type is the EDM type of a Value.
type Type = edm.Type

// The types of property values.
const (
	TypeNull     = edm.TypeNull
	TypeString   = edm.TypeString
	TypeBinary   = edm.TypeBinary
	TypeBoolean  = edm.TypeBoolean
	TypeInt32    = edm.TypeInt32
	TypeInt64    = edm.TypeInt64
	TypeDouble   = edm.TypeDouble
	TypeDateTime = edm.TypeDateTime
	TypeGuid     = edm.TypeGuid
)

// String makes an Edm.String value.
func String(s string) Value { return edm.String(s) }

// Binary makes an Edm.Binary value of a copy of b.
func Binary(b []byte) Value { return edm.Binary(b) }

// Boolean makes an Edm.Boolean value.
func Boolean(b bool) Value { return edm.Boolean(b) }

// Int32 makes an Edm.Int32 value.
func Int32(i int32) Value { return edm.Int32(i) }

// Int64 makes an Edm.Int64 value.
func Int64(i int64) Value { return edm.Int64(i) }

// Double makes an Edm.Double value.
func Double(f float64) Value { return edm.Double(f) }

// DateTime makes an Edm.DateTime value in UTC. Times finer than 100 ns, before 1601 or after 9999 are errors.
func DateTime(t time.Time) (Value, error) { return edm.DateTime(t) }

// Guid makes an Edm.Guid value.
func Guid(u uuid.UUID) Value { return edm.Guid(u) }

// ValueOf makes the value that a struct field of v's type would be stored as (see Codec).
func ValueOf(v any) (Value, error) { return valueOf(v) }

// Property is one named value.
type Property struct {
	Name  string
	Value Value
}

// Properties are the custom properties of an entity in the order they were set or stored.
type Properties []Property

// Get returns the property's value, null when it is not there.
func (p Properties) Get(name string) Value {
	if i := p.index(name); i >= 0 {
		return p[i].Value
	}
	return Value{}
}

// Has reports whether the property is there.
func (p Properties) Has(name string) bool { return p.index(name) >= 0 }

// Set adds or changes a property.
func (p *Properties) Set(name string, v Value) {
	if i := p.index(name); i >= 0 {
		(*p)[i].Value = v
		return
	}
	*p = append(*p, Property{Name: name, Value: v})
}

// Delete removes a property, if it is there.
func (p *Properties) Delete(name string) {
	if i := p.index(name); i >= 0 {
		*p = append((*p)[:i:i], (*p)[i+1:]...) // a new array: copies of the entity share the old one
	}
}

func (p Properties) index(name string) int {
	for i := range p {
		if p[i].Name == name {
			return i
		}
	}
	return -1
}

// Entity is an entity as a property bag, for data whose type is not known or not wanted. The library's own properties
// are not seen in it. A row that a Repository keeps in step with others (an entity with copies, a copy, a row that
// entities share) can be read as a bag and inserted elsewhere as a plain row; every other write of such a bag is
// ErrInvalid.
type Entity struct {
	Key        Key
	ETag       azcore.ETag // as read; sent by the conditional writes
	Timestamp  time.Time   // set by the service
	Properties Properties

	read rowFacts
}

// Clone returns a copy that shares nothing with e. A plain copy of the struct shares the properties.
func (e *Entity) Clone() *Entity {
	c := *e
	c.Properties = slices.Clone(e.Properties)
	return &c
}

// Get returns a property's value, null when it is not there.
func (e *Entity) Get(name string) Value { return e.Properties.Get(name) }

// Set adds or changes a property.
func (e *Entity) Set(name string, v Value) { e.Properties.Set(name, v) }
