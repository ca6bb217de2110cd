package largeentities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Property keeps one property of entities in blobs where its values are large. It belongs to the one Repository that it was
// given to.
type Property[T any] struct {
	name    string
	field   func(*T) *Stream // nil for a []byte or a string
	blobs   *blobs
	given   Options
	options Options
	codec   *tables.Codec[T]
	form    form
	repo    *patterns.Repository[T] // nil while it is free
	nursery nursery
}

// NewProperty makes the pattern for a property whose field is a []byte, a string, or anything that is stored as a string. name is the
// property's, as it is stored. The container is one of Account.Container, which may be another account's, and has to exist. The
// repository needs a Schema.Intents of package eventual.
func NewProperty[T any](name string, c *container.Client, options *Options) *Property[T] {
	return newProperty[T](name, nil, c, options)
}

// NewStream makes the pattern for a property whose field is a Stream, which field returns.
func NewStream[T any](name string, field func(*T) *Stream, c *container.Client, options *Options) *Property[T] {
	x := newProperty[T](name, field, c, options)
	x.form = streamForm
	return x
}

func newProperty[T any](name string, field func(*T) *Stream, c *container.Client, options *Options) *Property[T] {
	x := &Property[T]{name: name, field: field, blobs: &blobs{container: c}}
	if options != nil {
		x.given = *options
	}
	return x
}

// PatternName is the property's name.
func (x *Property[T]) PatternName() string { return x.name }

// Attach is called by patterns.NewRepository, with nil where the property is free again.
func (x *Property[T]) Attach(host driver.Host) (err error) {
	if host == nil {
		x.repo = nil
		return nil
	}
	repo, ok := host.(*patterns.Repository[T])
	switch {
	case !ok:
		return fmt.Errorf("it is for entities of type %T, and the repository's are %v", *new(T), host.EntityType())
	case x.repo != nil:
		return errors.New("it belongs to another repository")
	case x.blobs.container == nil:
		return errors.New("the container is nil; an account without a blob endpoint has none")
	case x.form == streamForm && x.field == nil:
		return errors.New("there is no function that returns the Stream")
	}
	if x.options, err = x.given.complete(); err != nil {
		return err
	}
	if names := host.PropertyNames(); names != nil && !slices.Contains(names, x.name) {
		return fmt.Errorf("%v has no property of this name", host.EntityType())
	}
	if x.codec, err = tables.NewCodec[T](); err != nil {
		return err
	}
	if err := x.checkForm(); err != nil {
		return err
	}
	for _, p := range repo.Patterns() {
		if t, ok := p.(driver.PropertyTransformer); ok && t.Stage() == driver.StageEncrypt && !t.Filterable(x.name) {
			return fmt.Errorf("pattern %q encrypts it, which leaves its blob in clear; Options.Sealer is for that", p.PatternName())
		}
	}
	if x.blobs.prefix = x.options.Prefix; x.blobs.prefix == "" {
		x.blobs.prefix = host.Table().Name() + "/" + x.name
	}
	x.blobs.blockSize, x.blobs.concurrency, x.blobs.deadline = x.options.BlockSize, x.options.Concurrency, x.options.Deadline
	x.blobs.sealing = nil
	if x.options.Sealer != nil {
		x.blobs.sealing = &sealing{x.options.Sealer, strings.ToLower(host.Table().Name()), x.name, x.options.AcceptPlaintext}
	}
	x.repo, x.blobs.home = repo, blobowner.Home(host.Table().Account().Endpoints().Table, host.Table().Name())
	return nil
}

// checkForm finds out how the field is declared. The codec decides what a field takes: a []byte takes an Edm.Binary alone, and
// what is stored as a string an Edm.String alone. Fields that take both, such as a tables.Value, cannot tell a value from a
// pointer.
func (x *Property[T]) checkForm() error {
	takes := func(v tables.Value) bool {
		return x.codec.Decode(tables.Properties{{Name: x.name, Value: v}}, new(T)) == nil
	}
	isBinary := takes(tables.Binary([]byte("x")))
	isString := takes(tables.String("x")) || takes(tables.String("")) || takes(tables.String("null"))
	if x.form == streamForm {
		v := new(T)
		err := x.codec.Decode(tables.Properties{{Name: x.name, Value: tables.String(inlineMark)}}, v)
		if s := x.field(v); err != nil || s == nil || s.IsZero() {
			return errors.New("the function returns another field's Stream, or none")
		}
		return nil
	}
	switch {
	case isBinary && !isString:
		x.form = binaryForm
	case isString && !isBinary:
		x.form = stringForm
	default:
		return errors.New("its field is neither a []byte nor stored as a string")
	}
	return nil
}

// Stage implements driver.PropertyTransformer.
func (x *Property[T]) Stage() driver.Stage { return driver.StageSpill }

// RefusesMerge implements driver.PropertyTransformer: what is stored is all in the one property.
func (x *Property[T]) RefusesMerge() error { return nil }

// Streams implements driver.Streamer.
func (x *Property[T]) Streams() bool { return x.field != nil }

// Filterable implements driver.PropertyTransformer.
func (x *Property[T]) Filterable(property string) bool { return property != x.name }

// Of returns the entity's Stream, also of an entity that a projection has read. It is nil for a property that is none.
func (x *Property[T]) Of(v *T) *Stream {
	if x.field == nil || v == nil {
		return nil
	}
	s := x.field(v)
	x.bind(s)
	return s
}

// bind tells a Stream that was read where its blob is.
func (x *Property[T]) bind(s *Stream) {
	if s != nil && s.c != nil && s.c.ptr != nil && s.c.home == nil {
		bound := *s.c
		bound.home = x.blobs
		s.c = &bound
	}
}

// Store implements driver.PropertyTransformer: a large value goes to a blob, and the property holds a pointer to it.
func (x *Property[T]) Store(ctx context.Context, change *driver.Change, p tables.Properties) (tables.Properties, error) {
	if !p.Has(x.name) {
		return p, nil
	}
	l, err := x.place(ctx, change, p.Get(x.name))
	if err != nil {
		return nil, err
	}
	p = slices.Clone(p)
	switch l.where {
	case nowhere:
		p.Delete(x.name)
	case inEntity:
		p.Set(x.name, l.value)
	case keptBlob:
		p.Set(x.name, x.form.pointer(l.pointer))
	case newBlob:
		ptr := l.pointer
		if !change.DryRun {
			if ptr, err = x.upload(ctx, change, l); err != nil {
				return nil, err
			}
		}
		p.Set(x.name, x.form.pointer(ptr))
	}
	return p, nil
}

// Load implements driver.PropertyTransformer.
func (x *Property[T]) Load(ctx context.Context, of driver.Reading, p tables.Properties) (tables.Properties, error) {
	v := p.Get(x.name)
	if g := glanceOf(ctx); g != nil {
		g.note(x.name, of.Key, v)
		p = slices.Clone(p)
		p.Delete(x.name)
		return p, nil
	}
	if v.IsNull() {
		return p, nil
	}
	ptr, err := x.form.read(of.Key, v)
	if err != nil {
		return nil, garbled("Load", "", "property %s: %w", x.name, err)
	}
	loaded, err := x.loaded(ctx, v, ptr)
	p = slices.Clone(p)
	if err != nil {
		if salvageOf(ctx).leavesOut(of, x.name, ptr != nil && ptr.sealed || x.blobs.sealing != nil, err, func() error { _, err := x.loaded(ctx, v, ptr); return err }) {
			p.Delete(x.name)
			return p, nil
		}
		return nil, err
	}
	p.Set(x.name, loaded)
	return p, nil
}

// pointerIn is form.read of a value in the row of an entity, for what acts on the blob: a pointer that leads to a blob which is
// not the entity's is tables.ErrGarbled.
func (x *Property[T]) pointerIn(op string, key tables.Key, v tables.Value) (*pointer, error) {
	ptr, err := x.form.read(key, v)
	if err != nil {
		return nil, garbled(op, "", "property %s: %w", x.name, err)
	}
	if ptr != nil {
		err = x.blobs.checkOwn(op, key, ptr.name)
	}
	return ptr, err
}

// loaded makes the value that the codec gets of what is stored.
func (x *Property[T]) loaded(ctx context.Context, v tables.Value, ptr *pointer) (tables.Value, error) {
	if err := x.blobs.checkSealed(ptr); err != nil {
		return v, garbled("Load", "", "property %s: %w", x.name, err)
	}
	if ptr != nil {
		if err := x.blobs.checkOwn("Load", ptr.of, ptr.name); err != nil {
			return v, err
		}
	}
	switch {
	case x.form == streamForm && ptr != nil:
		return tables.String(textOf(ptr)), nil
	case x.form == streamForm:
		data, _ := v.Bytes()
		text, err := NewStreamBytes(data, nil).MarshalText()
		return tables.String(string(text)), err
	case ptr == nil:
		return v, nil
	}
	if v, ok := x.nursery.recall(ctx, ptr.name); ok {
		return v, nil
	}
	if ptr.length > x.options.MaxValue {
		return v, fault("Load", ptr.name, tables.ErrTooLarge, "property %s has %d bytes, and Options.MaxValue is %d; a Stream has no such bound", x.name, ptr.length, x.options.MaxValue)
	}
	data, err := x.blobs.loadValue(ctx, ptr)
	if isReplaced(err) {
		return v, fault("Load", ptr.name, driver.ErrOutdated, "the blob of property %s is not there", x.name)
	}
	if err != nil {
		return v, err
	}
	return x.form.value(data), nil
}
