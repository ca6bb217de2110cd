package tables

import (
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
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
//	tables.Value                              as it is; null is absent
//	a pointer to one of these                 nil is absent
//	anything, tagged `table:"Name,json"`      Edm.String
//
// A named type is stored as its underlying type; one with the underlying type of time.Time or uuid.UUID must
// be a TextMarshaler. The tag is `table:"Name,options"`: the name ("" keeps the field's, "-" leaves the field
// out) and omitempty, omitzero, json or rest. The fields of an embedded struct are stored like fields of T;
// an outer field hides an inner one of the same name. One field map[string]tables.Value tagged
// `table:",rest"` holds the properties that T has no field for, so that a Replace by an older build of the
// program does not lose them. A field named PartitionKey, RowKey or Timestamp is that system property.
//
// A value that is written reads back equal, or the write is refused. Exceptions are the sign of a zero, which the
// service may lose, the bits of a NaN, and fields that are tagged json or are TextMarshalers, whose own encoding may
// lose something; each write decodes what they encode to, and returns ErrInvalid if that fails. A Codec is immutable and safe for concurrent use.
type Codec[T any] core.Codec

func (c *Codec[T]) core() *core.Codec { return (*core.Codec)(c) }

// NewCodec returns a codec of T. It returns ErrWiring, naming the field, if a field cannot be stored.
func NewCodec[T any]() (*Codec[T], error) {
	codec, err := core.CodecOf[T]()
	return (*Codec[T])(codec), err
}

// Encode returns the custom properties of v, without the keys and the library's own properties.
func (c *Codec[T]) Encode(v *T) (Properties, error) {
	if v == nil {
		return nil, errs.Invalid("Encode", core.ErrNil)
	}
	return c.core().Encode(v)
}

// EncodeOnly encodes only the named properties; the other fields of v may hold values that cannot be stored.
func (c *Codec[T]) EncodeOnly(v *T, names []string) (Properties, error) {
	if v == nil {
		return nil, errs.Invalid("EncodeOnly", core.ErrNil)
	}
	return c.core().EncodeOnly(v, names)
}

// Decode sets the fields of v for which p has a property, and leaves the others as they are. It replaces all properties
// of an Entity.
func (c *Codec[T]) Decode(p Properties, v *T) error {
	if v == nil {
		return errs.Invalid("Decode", core.ErrNil)
	}
	return c.core().Decode(p, v)
}

// PropertyNames lists the properties that T stores, without keys and the library's own; nil if T accepts any property.
func (c *Codec[T]) PropertyNames() []string { return c.core().Names() }
