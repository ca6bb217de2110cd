package tables

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/wire"
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
type Codec[T any] struct{ raw *RawCodec }

// NewCodec returns a codec of T. It returns ErrWiring, naming the field, if a field cannot be stored.
func NewCodec[T any]() (*Codec[T], error) {
	c := &RawCodec{typ: reflect.TypeFor[T](), room: func() (any, *RawState) { return new(T), nil }}
	if c.typ == reflect.TypeFor[Entity]() {
		return &Codec[T]{c}, nil
	}
	if c.typ.Kind() != reflect.Struct {
		return nil, Wiringf("NewCodec", "", "%s is not a struct; use a struct or Entity", c.typ)
	}
	plan, err := fields.New(c.typ, storedTypes)
	if err != nil {
		return nil, Wiringf("NewCodec", "", "%w", err)
	}
	c.plan = plan
	if plan.HasMeta() {
		c.room = func() (any, *RawState) { // allocates the T and its RawState together
			both := new(struct {
				v     T
				state RawState
			})
			return &both.v, &both.state
		}
	}
	return &Codec[T]{c}, nil
}

var (
	// storedTypes are the types of this package that a struct may have for fields.
	storedTypes = fields.Types{Value: reflect.TypeFor[Value](), Meta: reflect.TypeFor[Meta]()}

	errNil       = errors.New("the value is nil; give a pointer to a value")
	errNoAccount = errors.New("the table has no account; make it with Account.Table")
	errKeptBag   = errors.New("the row is one of several that a Repository keeps consistent, and the property bag does not have the library's own properties; copy the table with Copy of package backup, insert the entity through a repository, or make a new Entity for a plain row")
	// errPartial is the cause of ErrInvalid if a program replaces a row by a value that was read through a projection.
	errPartial = errors.New("the value was read through a projection, and a replace would remove the properties that were not read; read all properties, or use Merge")
)

// Encode returns the custom properties of v, without the keys and the library's own properties.
func (c *Codec[T]) Encode(v *T) (Properties, error) {
	if v == nil {
		return nil, Invalid("Encode", errNil)
	}
	return c.raw.Encode(v)
}

// EncodeOnly encodes only the named properties; the other fields of v may hold values that cannot be stored.
func (c *Codec[T]) EncodeOnly(v *T, names []string) (Properties, error) {
	if v == nil {
		return nil, Invalid("EncodeOnly", errNil)
	}
	if c.raw.plan == nil {
		return any(v).(*Entity).Properties.Only(names), nil
	}
	some, err := fields.EncodeOnly(c.raw.plan, reflect.ValueOf(v).Elem(), names, accessProperty)
	if err != nil {
		return nil, Invalid("EncodeOnly", err)
	}
	return some, nil
}

// Decode sets the fields of v for which p has a property, and leaves the others as they are. It replaces all properties
// of an Entity.
func (c *Codec[T]) Decode(p Properties, v *T) error {
	if v == nil {
		return Invalid("Decode", errNil)
	}
	return c.raw.Decode(p, v)
}

// PropertyNames lists the properties that T stores, without keys and the library's own; nil if T accepts any property.
func (c *Codec[T]) PropertyNames() []string {
	if c.raw.plan == nil {
		return nil
	}
	return c.raw.plan.Names()
}

// RawCodec is a Codec whose T is not known at compile time. Its values are pointers to T. The zero RawCodec is for
// property bags, and for rows that are not decoded.
type RawCodec struct {
	typ  reflect.Type
	plan *fields.Plan // nil for Entity
	room func() (any, *RawState)
}

// IsBag reports whether T is Entity.
func (c *RawCodec) IsBag() bool { return c.plan == nil }

// HasMeta reports whether T embeds a Meta.
func (c *RawCodec) HasMeta() bool { return c.plan != nil && c.plan.HasMeta() }

// Type returns the type T.
func (c *RawCodec) Type() reflect.Type { return c.typ }

// Copy returns a pointer to a new T, which is a shallow copy of *v.
func (c *RawCodec) Copy(v any) any {
	copied := c.New()
	c.Assign(copied, v)
	return copied
}

// Assign copies *from to *to, only the named properties if any is named; both are pointers to T.
func (c *RawCodec) Assign(to, from any, properties ...string) {
	if len(properties) == 0 {
		reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
		return
	}
	c.plan.Assign(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem(), properties)
}

// New returns a pointer to a new T.
func (c *RawCodec) New() any { return reflect.New(c.typ).Interface() }

// NewWithState returns a pointer to a new T and, if T embeds a Meta, a new RawState for it, in one allocation;
// otherwise the RawState is nil.
func (c *RawCodec) NewWithState() (any, *RawState) { return c.room() }

// Encode is Codec.Encode.
func (c *RawCodec) Encode(v any) (Properties, error) {
	if c.plan == nil {
		return slices.Clone(v.(*Entity).Properties), nil // the caller may change the bag before it is sent
	}
	properties, err := fields.Encode(c.plan, reflect.ValueOf(v).Elem(), accessProperty)
	if err != nil {
		return nil, Invalid("Encode", err)
	}
	return properties, nil
}

// EncodeMerge returns the named properties of v, all if none is named. It returns ErrInvalid if one of them has no value,
// since a merge cannot remove a property from the stored row.
func (c *RawCodec) EncodeMerge(v any, names []string) (Properties, error) {
	if c.plan != nil {
		properties, err := fields.EncodeMerge(c.plan, reflect.ValueOf(v).Elem(), names, accessProperty)
		if err != nil {
			return nil, Invalid("Encode", err)
		}
		return properties, nil
	}
	bag := slices.Clone(v.(*Entity).Properties)
	if len(names) > 0 {
		bag = bag.Only(names)
	}
	for i := range bag {
		if bag[i].Value.IsNull() {
			return nil, Invalid("Encode", fields.NoValue(bag[i].Name))
		}
	}
	for _, name := range names {
		if !bag.Has(name) {
			return nil, Invalid("Encode", fields.NoValue(name))
		}
	}
	return bag, nil
}

// Decode is Codec.Decode.
func (c *RawCodec) Decode(p Properties, v any) error {
	if c.plan == nil {
		v.(*Entity).Properties = append(Properties(nil), p...) // the reader reuses its own slice
		return nil
	}
	if err := fields.Decode(c.plan, p, reflect.ValueOf(v).Elem(), accessProperty); err != nil {
		return &Error{Op: "Decode", Kind: ErrGarbled, Err: err}
	}
	return nil
}

// Key reads the key out of fields PartitionKey and RowKey, or out of the bag.
func (c *RawCodec) Key(v any) (Key, error) {
	if c.plan == nil {
		return v.(*Entity).Key, nil
	}
	partition, row, err := c.plan.Key(reflect.ValueOf(v).Elem())
	return Key{partition, row}, err
}

// Meta returns a pointer to the embedded Meta of v, nil if T embeds none.
func (c *RawCodec) Meta(v any) *Meta {
	if !c.HasMeta() {
		return nil
	}
	return c.plan.Meta(reflect.ValueOf(v).Elem()).(*Meta)
}

// SetKey sets the fields PartitionKey and RowKey of a struct that has them.
func (c *RawCodec) SetKey(v any, key Key) {
	c.plan.SetKey(reflect.ValueOf(v).Elem(), key.Partition, key.Row)
}

// Finish sets the ETag, the timestamp and the key of v. For a row that is a copy, key is the entity's key.
func (c *RawCodec) Finish(row *RawRow, key Key, v any) {
	if c.plan == nil {
		e := v.(*Entity)
		e.Key, e.ETag, e.Timestamp, e.Lossy = key, row.ETag, row.Timestamp, row.Lossy
		return
	}
	c.SetKey(v, key)
	c.plan.SetTimestamp(reflect.ValueOf(v).Elem(), row.Timestamp)
	if meta := c.Meta(v); meta != nil {
		meta.ETag, meta.Timestamp, meta.Lossy = row.ETag, row.Timestamp, row.Lossy
	}
}

// CheckWhole refuses a value that was read lossily (Meta.Lossy), since a write would make the loss permanent.
func (c *RawCodec) CheckWhole(v any) error {
	lossy := false
	if c.plan == nil {
		lossy = v.(*Entity).Lossy
	} else if meta := c.Meta(v); meta != nil {
		lossy = meta.Lossy
	}
	if lossy {
		return Invalidf("", "a text of the value had half of a surrogate pair, which was read as U+FFFD; a write would store the U+FFFD: correct the text and set Lossy to false")
	}
	return nil
}

// Known tells the reader of responses which property names to keep, with the index of each; nil keeps all.
func (c *RawCodec) Known() map[string]int {
	if c.plan == nil {
		return nil
	}
	return c.plan.Known()
}

// etag returns the ETag that the conditional writes send. It returns an error for a value that was never read.
func (c *RawCodec) etag(v any) (azcore.ETag, error) {
	var etag azcore.ETag
	if c.plan == nil {
		etag = v.(*Entity).ETag
	} else if meta := c.Meta(v); meta != nil {
		etag = meta.ETag
	} else {
		return "", fmt.Errorf("%s embeds no tables.Meta to hold an ETag; embed it, or use the unconditional form of the operation", c.plan.Type)
	}
	if etag == "" {
		return "", fmt.Errorf("the value has no ETag, because it was not read; read it first, or use Insert, Upsert or the unconditional form of the operation")
	}
	return etag, nil
}

// written updates v after a write of its row without a repository.
func (c *RawCodec) written(verb wire.Verb, v any, etag azcore.ETag) {
	if c.plan == nil {
		e := v.(*Entity)
		e.ETag = etag
		if left := e.read.after(verb); left != &e.read { // another goroutine may be reading the same bag for a bulk write
			e.read = *left
		}
	} else if meta := c.Meta(v); meta != nil {
		meta.ETag = etag
		if meta.state != nil {
			meta.state = meta.state.after(verb)
		}
	}
}

// load decodes a row into a new value.
func (c *RawCodec) load(row *RawRow, partial bool) (any, error) {
	v, s := c.room()
	if row.Lossy && c.plan != nil && !c.HasMeta() {
		return nil, &Error{Op: "Decode", Kind: ErrGarbled, Err: fmt.Errorf("a text of the row has half of a surrogate pair, which a Go string cannot hold; embed tables.Meta in %s, whose Lossy then reports it", c.plan.Type)}
	}
	if err := c.Decode(row.Properties, v); err != nil {
		return nil, err
	}
	c.Finish(row, row.Key, v)
	if c.plan == nil {
		v.(*Entity).read = row.facts(partial)
	} else if s != nil {
		facts := row.facts(partial)
		*s = RawState{Key: row.Key, Row: row.Key.Row, Incarnation: facts.incarnation, WriteID: row.WriteID, Partial: partial}
		if !facts.none() {
			s.viewed = new(facts)
		}
		c.Meta(v).state = s
	}
	return v, nil
}

// write encodes v as one row of a write. Beside an error, it returns the key as far as that is known. names are the properties that a merge sends, all if there are none.
func (c *RawCodec) write(verb wire.Verb, v any, ifMatch azcore.ETag, names []string) (RawWrite, error) {
	key, err := c.Key(v)
	if err != nil {
		return RawWrite{}, Invalid("", err)
	}
	w := RawWrite{Verb: verb, Key: key, IfMatch: ifMatch}
	if facts := c.facts(v); facts != nil {
		if err := facts.check(verb, c.plan == nil, len(names) > 0); err != nil {
			e := Invalid("", err)
			e.Key = loggable(key)
			return RawWrite{Key: key}, e
		}
		facts.onto(&w)
	}
	if verb == wire.VerbDelete {
		return w, nil
	}
	if err := c.CheckWhole(v); err != nil {
		return RawWrite{Key: key}, err
	}
	if verb == wire.VerbMerge {
		w.Properties, err = c.EncodeMerge(v, names)
	} else {
		w.Properties, err = c.Encode(v)
	}
	if err != nil {
		return RawWrite{Key: key}, err
	}
	if err := checkReserved(w.Properties); err != nil {
		return RawWrite{Key: key}, Invalid("", err)
	}
	return w, nil
}
