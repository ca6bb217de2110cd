package core

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// CodecOf returns the codec of T, a struct or entity.Entity. It returns ErrWiring, naming the field, if a field cannot be stored.
func CodecOf[T any]() (*Codec, error) {
	return newCodec(reflect.TypeFor[T](), func() (any, *State) { return new(T), nil }, func() (any, *State) { // allocates the T and its State together
		both := new(struct {
			v     T
			state State
		})
		return &both.v, &both.state
	})
}

func newCodec(typ reflect.Type, plain, withState func() (any, *State)) (*Codec, error) {
	c := &Codec{typ: typ, room: plain}
	if c.typ == reflect.TypeFor[entity.Entity]() {
		return c, nil
	}
	if c.typ.Kind() != reflect.Struct {
		return nil, errs.Wiringf("NewCodec", "", "%s is not a struct; use a struct or Entity", c.typ)
	}
	plan, err := fields.New(c.typ)
	if err != nil {
		return nil, errs.Wiringf("NewCodec", "", "%w", err)
	}
	c.plan = plan
	if plan.HasMeta() {
		c.room = withState
	}
	return c, nil
}

var (
	// ErrNil is the cause of ErrInvalid for a nil value.
	ErrNil       = errors.New("the value is nil; give a pointer to a value")
	errNoAccount = errors.New("the table has no account; make it with Account.Table")
	errKeptBag   = errors.New("the row is one of several that a Repository keeps consistent, and the property bag does not have the library's own properties; copy the table with Copy of package backup, insert the entity through a repository, or make a new Entity for a plain row")
	// ErrPartial is the cause of ErrInvalid if a program replaces a row by a value that was read through a projection.
	ErrPartial = errors.New("the value was read through a projection, and a replace would remove the properties that were not read; read all properties, or use Merge")
)

// Codec turns values of a type T into properties and back; its values are pointers to T. The zero Codec is for
// property bags, and for rows that are not decoded.
type Codec struct {
	typ  reflect.Type
	plan *fields.Plan // nil for Entity
	room func() (any, *State)
}

// IsBag reports whether T is Entity.
func (c *Codec) IsBag() bool { return c.plan == nil }

// HasMeta reports whether T embeds a Meta.
func (c *Codec) HasMeta() bool { return c.plan != nil && c.plan.HasMeta() }

// Type returns the type T.
func (c *Codec) Type() reflect.Type { return c.typ }

// Copy returns a pointer to a new T, which is a shallow copy of *v.
func (c *Codec) Copy(v any) any {
	copied := c.New()
	c.Assign(copied, v)
	return copied
}

// Assign copies *from to *to, only the named properties if any is named; both are pointers to T.
func (c *Codec) Assign(to, from any, properties ...string) {
	if len(properties) == 0 {
		reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
		return
	}
	c.plan.Assign(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem(), properties)
}

// New returns a pointer to a new T.
func (c *Codec) New() any { return reflect.New(c.typ).Interface() }

// NewWithState returns a pointer to a new T and, if T embeds a Meta, a new State for it, in one allocation;
// otherwise the State is nil.
func (c *Codec) NewWithState() (any, *State) { return c.room() }

// ValueOf makes the value that a struct field of v's type would be stored as.
func ValueOf(v any) (entity.Value, error) {
	if value, ok := v.(entity.Value); ok {
		return value, nil
	}
	value, err := fields.ValueOf(v)
	return entity.Value(value), err
}

// Encode returns the custom properties of v, without the keys and the library's own properties.
func (c *Codec) Encode(v any) (entity.Properties, error) {
	if c.plan == nil {
		return slices.Clone(v.(*entity.Entity).Properties), nil // the caller may change the bag before it is sent
	}
	properties, err := c.plan.Encode(reflect.ValueOf(v).Elem())
	if err != nil {
		return nil, errs.Invalid("Encode", err)
	}
	return properties, nil
}

// EncodeMerge returns the named properties of v, all if none is named. It returns ErrInvalid if one of them has no value,
// since a merge cannot remove a property from the stored row.
func (c *Codec) EncodeMerge(v any, names []string) (entity.Properties, error) {
	if c.plan != nil {
		properties, err := c.plan.EncodeMerge(reflect.ValueOf(v).Elem(), names)
		if err != nil {
			return nil, errs.Invalid("Encode", err)
		}
		return properties, nil
	}
	bag := slices.Clone(v.(*entity.Entity).Properties)
	if len(names) > 0 {
		bag = bag.Only(names)
	}
	for i := range bag {
		if bag[i].Value.IsNull() {
			return nil, errs.Invalid("Encode", fields.NoValue(bag[i].Name))
		}
	}
	for _, name := range names {
		if !bag.Has(name) {
			return nil, errs.Invalid("Encode", fields.NoValue(name))
		}
	}
	return bag, nil
}

// EncodeOnly encodes only the named properties; the other fields of v may hold values that cannot be stored.
func (c *Codec) EncodeOnly(v any, names []string) (entity.Properties, error) {
	if c.plan == nil {
		return v.(*entity.Entity).Properties.Only(names), nil
	}
	some, err := c.plan.EncodeOnly(reflect.ValueOf(v).Elem(), names)
	if err != nil {
		return nil, errs.Invalid("EncodeOnly", err)
	}
	return some, nil
}

// Names lists the properties that T stores, without keys and the library's own; nil if T accepts any property.
func (c *Codec) Names() []string {
	if c.plan == nil {
		return nil
	}
	return c.plan.Names()
}

// Stores returns an error if T has no field for the property and none that is tagged rest.
func (c *Codec) Stores(property string) error {
	known := c.Known()
	if _, ok := known[property]; known == nil || ok {
		return nil
	}
	return fmt.Errorf("%s stores no property of this name; use the name under which its field is stored, or add a field", c.typ)
}

// Decode sets the fields of v for which p has a property, and leaves the others as they are. It replaces all properties of a bag.
func (c *Codec) Decode(p entity.Properties, v any) error {
	if c.plan == nil {
		v.(*entity.Entity).Properties = append(entity.Properties(nil), p...) // the reader reuses its own slice
		return nil
	}
	if err := c.plan.Decode(p, reflect.ValueOf(v).Elem()); err != nil {
		return &entity.Error{Op: "Decode", Kind: entity.ErrGarbled, Err: err}
	}
	return nil
}

// Key reads the key out of fields PartitionKey and RowKey, or out of the bag.
func (c *Codec) Key(v any) (entity.Key, error) {
	if c.plan == nil {
		return v.(*entity.Entity).Key, nil
	}
	partition, row, err := c.plan.Key(reflect.ValueOf(v).Elem())
	return entity.Key{Partition: partition, Row: row}, err
}

// Meta returns a pointer to the embedded Meta of v, nil if T embeds none.
func (c *Codec) Meta(v any) *entity.Meta {
	if !c.HasMeta() {
		return nil
	}
	return c.plan.Meta(reflect.ValueOf(v).Elem())
}

// SetKey sets the fields PartitionKey and RowKey of a struct that has them.
func (c *Codec) SetKey(v any, key entity.Key) {
	c.plan.SetKey(reflect.ValueOf(v).Elem(), key.Partition, key.Row)
}

// Finish sets the ETag, the timestamp and the key of v. For a row that is a copy, key is the entity's key.
func (c *Codec) Finish(row *tablerow.Row, key entity.Key, v any) {
	if c.plan == nil {
		e := v.(*entity.Entity)
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
func (c *Codec) CheckWhole(v any) error {
	lossy := false
	if c.plan == nil {
		lossy = v.(*entity.Entity).Lossy
	} else if meta := c.Meta(v); meta != nil {
		lossy = meta.Lossy
	}
	if lossy {
		return errs.Invalidf("", "a text of the value had half of a surrogate pair, which was read as U+FFFD; a write would store the U+FFFD: correct the text and set Lossy to false")
	}
	return nil
}

// Known tells the reader of responses which property names to keep, with the index of each; nil keeps all.
func (c *Codec) Known() map[string]int {
	if c.plan == nil {
		return nil
	}
	return c.plan.Known()
}

// etag returns the ETag that the conditional writes send. It returns an error for a value that was never read.
func (c *Codec) etag(v any) (azcore.ETag, error) {
	var etag azcore.ETag
	if c.plan == nil {
		etag = v.(*entity.Entity).ETag
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
func (c *Codec) written(verb wire.Verb, v any, etag azcore.ETag) {
	if c.plan == nil {
		e := v.(*entity.Entity)
		e.ETag = etag
		if facts := c.facts(e); facts != nil {
			keep(e, facts.after(verb))
		}
	} else if meta := c.Meta(v); meta != nil {
		meta.ETag = etag
		if state := StateOf(meta); state != nil {
			SetState(meta, state.after(verb))
		}
	}
}

// load decodes a row into a new value.
func (c *Codec) load(row *tablerow.Row, partial bool) (any, error) {
	v, s := c.room()
	if row.Lossy && c.plan != nil && !c.HasMeta() {
		return nil, &entity.Error{Op: "Decode", Kind: entity.ErrGarbled, Err: fmt.Errorf("a text of the row has half of a surrogate pair, which a Go string cannot hold; embed tables.Meta in %s, whose Lossy then reports it", c.plan.Type)}
	}
	if err := c.Decode(row.Properties, v); err != nil {
		return nil, err
	}
	c.Finish(row, row.Key, v)
	if c.plan == nil {
		if facts := factsOf(row, partial); !facts.none() {
			keep(v.(*entity.Entity), &facts)
		}
	} else if s != nil {
		facts := factsOf(row, partial)
		*s = State{Key: row.Key, Row: row.Key.Row, Incarnation: facts.incarnation, WriteID: row.WriteID, Partial: partial}
		if !facts.none() {
			s.viewed = new(facts)
		}
		SetState(c.Meta(v), s)
	}
	return v, nil
}

// write encodes v as one row of a write. Beside an error, it returns the key as far as that is known. names are the properties that a merge
// sends, all if there are none.
func (c *Codec) write(verb wire.Verb, v any, ifMatch azcore.ETag, names []string) (tablerow.Row, error) {
	key, err := c.Key(v)
	if err != nil {
		return tablerow.Row{}, errs.Invalid("", err)
	}
	w := tablerow.Row{Verb: verb, Key: key, IfMatch: ifMatch}
	if facts := c.facts(v); facts != nil {
		if err := facts.check(verb, c.plan == nil, len(names) > 0); err != nil {
			e := errs.Invalid("", err)
			e.Key = errs.Loggable(key)
			return tablerow.Row{Key: key}, e
		}
		facts.onto(&w)
	}
	if verb == wire.VerbDelete {
		return w, nil
	}
	if err := c.CheckWhole(v); err != nil {
		return tablerow.Row{Key: key}, err
	}
	if verb == wire.VerbMerge {
		w.Properties, err = c.EncodeMerge(v, names)
	} else {
		w.Properties, err = c.Encode(v)
	}
	if err != nil {
		return tablerow.Row{Key: key}, err
	}
	if err := CheckReserved(w.Properties); err != nil {
		return tablerow.Row{Key: key}, errs.Invalid("", err)
	}
	return w, nil
}

// CheckReserved returns an error if the caller's properties have a name that is reserved for the library.
func CheckReserved(properties entity.Properties) error {
	for i := range properties {
		if strings.HasPrefix(properties[i].Name, rows.Prefix) {
			return fmt.Errorf("property %s: names that begin with %s are reserved for the library; choose another name", properties[i].Name, rows.Prefix)
		}
	}
	return nil
}
