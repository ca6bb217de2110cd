package patterns

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// The names of the system's own properties. They count as properties like any other, and no field and no bag may
// use a name with their prefix.
const (
	propertyPrefix      = "_tp"
	propertyWriteID     = "_tpWrite"       // id of the write that left the row: resolves an ambiguous answer
	propertyIncarnation = "_tpIncarnation" // id of the insert that began this life of the entity
	propertyPrimary     = "_tpPrimary"     // on a copy or a further row: the row key of the entity's own row
	propertyCopies      = "_tpCopies"      // names of the patterns whose copies of the entity are in step with the row
	propertyShared      = "_tpShared"      // on a row that belongs to no one entity: the name of its pattern
	propertyPartition   = "_tpPartition"   // on a copy outside of the entity's partition: which that is
	propertyVersion     = "_tpVersion"     // on such a copy: the ETag of the entity's own row that it was made of
	propertyReserved    = "_tpReserved"    // on such a copy that only holds its key free: the id of the change that will fill it
	propertyTerm        = "_tpTerm"        // on such a reserved key: after how many seconds the change that reserved it can no longer be committed
	propertyLayout      = "_tpLayout"      // on rows of an entity that is spread over several: the layout's directory, or that it is a further one
	propertyClaim       = "_tpClaim"       // on a row that says whose a copy is: the row key of the copy
)

// Codec turns values of T into properties and back. T is a struct, or Entity for the property bag.
//
//	Go                                        stored as
//	string                                    Edm.String
//	[]byte                                    Edm.Binary; nil is absent
//	bool                                      Edm.Boolean
//	int32, int16, int8, uint16, uint8         Edm.Int32
//	int, int64, uint32, uint, uint64          Edm.Int64; what does not fit is refused
//	float64, float32                          Edm.Double, NaN and the infinities too
//	time.Time                                 Edm.DateTime in UTC; finer than 100 ns or before 1601 is refused
//	uuid.UUID                                 Edm.Guid
//	encoding.TextMarshaler                    Edm.String
//	patterns.Value                            as it is; null is absent
//	a pointer to one of these                 nil is absent
//	anything, tagged `table:"Name,json"`      Edm.String
//
// Named types go as what they are made of; those made of time.Time or uuid.UUID must marshal themselves. The tag is
// `table:"Name,options"`: the name ("" keeps the field's, "-" leaves the field out) and omitempty, omitzero, json or
// rest. Embedded structs flatten, an outer field hiding an inner one of its name. One field map[string]patterns.Value
// tagged `table:",rest"` keeps the properties that T does not know, so that Replace by an older build loses nothing. A
// field named PartitionKey, RowKey or Timestamp is that system property.
//
// What was written reads back equal, or the write was refused; the sign of a zero is the one thing that the service
// may lose. A Codec is immutable and safe for concurrent use.
type Codec[T any] struct {
	plan *typePlan // nil for Entity
}

// NewCodec examines T once. A field that cannot be stored is ErrInvalid, naming the field.
func NewCodec[T any]() (*Codec[T], error) {
	t := reflect.TypeFor[T]()
	if t == reflect.TypeFor[Entity]() {
		return &Codec[T]{}, nil
	}
	if t.Kind() != reflect.Struct {
		return nil, invalidf("NewCodec", "%s is not a struct", t)
	}
	plan, err := newTypePlan(t)
	if err != nil {
		return nil, invalid("NewCodec", err)
	}
	return &Codec[T]{plan: plan}, nil
}

var errNil = errors.New("the value is nil")

// Encode returns the custom properties of v: neither keys nor system properties.
func (c *Codec[T]) Encode(v *T) (Properties, error) {
	if v == nil {
		return nil, invalid("Encode", errNil)
	}
	if c.plan == nil {
		return slices.Clone(any(v).(*Entity).Properties), nil // the caller may reuse the bag before they are sent
	}
	properties, err := c.plan.encode(reflect.ValueOf(v).Elem())
	if err != nil {
		return nil, invalid("Encode", err)
	}
	return properties, nil
}

// EncodeOnly is Encode of the named properties alone: what v holds besides need not be storable.
func (c *Codec[T]) EncodeOnly(v *T, names []string) (Properties, error) {
	if v == nil {
		return nil, invalid("EncodeOnly", errNil)
	}
	if c.plan == nil {
		return project(any(v).(*Entity).Properties, names), nil
	}
	some, err := c.plan.encodeOnly(reflect.ValueOf(v).Elem(), names)
	if err != nil {
		return nil, invalid("EncodeOnly", err)
	}
	return some, nil
}

// Decode sets the fields of v for which there are properties, and leaves the others as they are.
func (c *Codec[T]) Decode(p Properties, v *T) error {
	if v == nil {
		return invalid("Decode", errNil)
	}
	if c.plan == nil {
		any(v).(*Entity).Properties = append(Properties(nil), p...) // a reader of rows reuses its own
		return nil
	}
	if err := c.plan.decode(p, reflect.ValueOf(v).Elem()); err != nil {
		return &Error{Op: "Decode", Kind: ErrGarbled, Err: err}
	}
	return nil
}

// PropertyNames lists the properties that T stores, keys and system properties aside; nil when T takes any.
func (c *Codec[T]) PropertyNames() []string {
	if c.plan == nil || c.plan.rest != nil {
		return nil
	}
	names := make([]string, len(c.plan.fields))
	for i := range c.plan.fields {
		names[i] = c.plan.fields[i].name
	}
	return names
}

// typeOf returns the EDM type under which T stores a property, TypeNull when T does not say.
func (c *Codec[T]) typeOf(name string) Type {
	if c.plan != nil {
		if i, ok := c.plan.byName[name]; ok {
			return c.plan.fields[i].conversion.edmType()
		}
	}
	return TypeNull
}

// key reads the key out of fields PartitionKey and RowKey, or out of the bag.
func (c *Codec[T]) key(v *T) (Key, error) {
	if c.plan == nil {
		return any(v).(*Entity).Key, nil
	}
	if c.plan.partition == nil || c.plan.row == nil {
		return Key{}, fmt.Errorf("%s has no fields PartitionKey and RowKey", c.plan.typ)
	}
	s := reflect.ValueOf(v).Elem()
	partition, ok1 := fieldAt(s, c.plan.partition, false)
	row, ok2 := fieldAt(s, c.plan.row, false)
	if !ok1 || !ok2 {
		return Key{}, fmt.Errorf("the embedded pointer of %s that holds its keys is nil", c.plan.typ)
	}
	return Key{Partition: partition.String(), Row: row.String()}, nil
}

// meta returns the embedded Meta of v, nil when T has none.
func (c *Codec[T]) meta(v *T) *Meta {
	if c.plan == nil || c.plan.meta == nil {
		return nil
	}
	meta, _ := fieldAt(reflect.ValueOf(v).Elem(), c.plan.meta, true)
	return meta.Addr().Interface().(*Meta)
}

// setKey sets the fields PartitionKey and RowKey of a struct that has them.
func (c *Codec[T]) setKey(v *T, key Key) {
	s := reflect.ValueOf(v).Elem()
	if c.plan.partition != nil {
		field, _ := fieldAt(s, c.plan.partition, true)
		field.SetString(key.Partition)
	}
	if c.plan.row != nil {
		field, _ := fieldAt(s, c.plan.row, true)
		field.SetString(key.Row)
	}
}

// finish sets what a row says beside its properties: ETag, time, and the key, which for a copy is its entity's.
func (c *Codec[T]) finish(row *storedRow, key Key, v *T) {
	if c.plan == nil {
		e := any(v).(*Entity)
		e.Key, e.ETag, e.Timestamp = key, row.etag, row.time()
		return
	}
	c.setKey(v, key)
	s := reflect.ValueOf(v).Elem()
	if c.plan.timestamp != nil {
		field, _ := fieldAt(s, c.plan.timestamp, true)
		field.Set(reflect.ValueOf(row.time()))
	}
	if meta := c.meta(v); meta != nil {
		meta.ETag, meta.Timestamp = row.etag, row.time()
	}
}

// known is the filter for the reader of answers: the index of names to keep, nil to keep all.
func (c *Codec[T]) known() map[string]int {
	if c.plan == nil || c.plan.rest != nil {
		return nil
	}
	return c.plan.byName
}

// etag returns what the conditional writes send; a value that was never read has none.
func (c *Codec[T]) etag(v *T) (azcore.ETag, error) {
	if v == nil {
		return "", errNil
	}
	var etag azcore.ETag
	if c.plan == nil {
		etag = any(v).(*Entity).ETag
	} else if meta := c.meta(v); meta != nil {
		etag = meta.ETag
	} else {
		return "", fmt.Errorf("%s embeds no patterns.Meta to hold an ETag; use the unconditional form", c.plan.typ)
	}
	if etag == "" {
		return "", fmt.Errorf("the value has no ETag: it was not read before; use the unconditional form, Insert or Upsert")
	}
	return etag, nil
}

// settle brings v up to date after a write of its row by itself.
func (c *Codec[T]) settle(verb wire.Verb, v *T, etag azcore.ETag) {
	if c.plan == nil {
		e := any(v).(*Entity)
		e.ETag = etag
		if left := e.read.after(verb); left != &e.read { // a source of bulk writes may read them in the same bag meanwhile
			e.read = *left
		}
	} else if meta := c.meta(v); meta != nil {
		meta.ETag = etag
		if meta.state != nil {
			meta.state = meta.state.after(verb)
		}
	}
}
