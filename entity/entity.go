package entity

import (
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
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

	carried any // what the library knows about the row, for the next write: see package internal/carry
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
