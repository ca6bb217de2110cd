package largeentities

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Property keeps one property of entities in blobs where its values are large. It belongs to the one Repository that it was
// given to.
type Property[T any] struct {
	name       string
	field      func(*T) *Stream // nil for a []byte or a string
	streams    bool
	container  *container.Client
	options    Options
	repository driver.Binding[T]
}

// NewProperty makes the pattern for a property whose field is a []byte, a string, or anything that is stored as a string. name is the
// property's, as it is stored. The container is one of Account.Container, which may be another account's, and has to exist. The
// repository needs a Schema.Intents of package eventual.
func NewProperty[T any](name string, c *container.Client, options *Options) *Property[T] {
	x := &Property[T]{name: name, container: c}
	if options != nil {
		x.options = *options
	}
	return x
}

// NewStream makes the pattern for a property whose field is a Stream, which field returns.
func NewStream[T any](name string, field func(*T) *Stream, c *container.Client, options *Options) *Property[T] {
	x := NewProperty[T](name, c, options)
	x.field, x.streams = field, true
	return x
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (p *Property[T]) Attach(host driver.Host[T]) (driver.Implementation[T], error) {
	s, err := p.spillOf(host)
	return driver.Implementation[T]{Name: p.name, Binding: &p.repository, Pattern: s, Fits: s.fits,
		Prior: s.prior, OutsideKeys: s.outsideKeys, Reconcile: s.reconcile,
		Transform: &driver.Transform[T]{Stage: driver.StageSpill, Store: s.store, Load: s.load, Streams: p.streams,
			Filterable: func(property string) bool { return property != p.name }},
	}, err
}

// Of returns the entity's Stream, also of an entity that a projection has read. It is nil for a property that is none.
func (p *Property[T]) Of(v *T) *Stream {
	if p.field == nil || v == nil {
		return nil
	}
	stream := p.field(v)
	if s, err := p.spill("Of"); err == nil {
		s.bind(stream)
	}
	return stream
}

// spill returns what the property does in its repository; before it was given to one, that is tables.ErrInvalid.
func (p *Property[T]) spill(op string) (*spill[T], error) {
	host, err := p.repository.Host(op, p.name)
	if err != nil {
		return nil, err
	}
	for _, attached := range host.Patterns() {
		if s, ok := attached.Pattern.(*spill[T]); ok && attached.Binding == &p.repository {
			return s, nil
		}
	}
	return nil, tables.Invalidf(op, "property %s is not among the patterns of its repository", p.name)
}

// spill is what a Property does in its repository: it keeps the large values in blobs.
type spill[T any] struct {
	host    driver.Host[T]
	name    string
	field   func(*T) *Stream // nil for a []byte or a string
	blobs   *blobs
	options Options // complete
	codec   *tables.Codec[T]
	form    form
	nursery nursery
}

// spillOf makes the spill of a repository, and refuses a property that does not fit it.
func (p *Property[T]) spillOf(host driver.Host[T]) (s *spill[T], err error) {
	s = &spill[T]{host: host, name: p.name, field: p.field}
	switch {
	case p.container == nil:
		return s, errors.New("the container is nil; an account without a blob endpoint has none")
	case p.streams && p.field == nil:
		return s, errors.New("there is no function that returns the Stream")
	}
	if s.options, err = p.options.complete(); err != nil {
		return s, err
	}
	if names := host.PropertyNames(); names != nil && !slices.Contains(names, p.name) {
		return s, fmt.Errorf("%v has no property of this name", reflect.TypeFor[T]())
	}
	if s.codec, err = tables.NewCodec[T](); err != nil {
		return s, err
	}
	if s.form, err = s.formOf(p.streams); err != nil {
		return s, err
	}
	table, o := host.Table(), s.options
	s.blobs = &blobs{container: p.container, prefix: o.Prefix, home: blobowner.Home(table.Account().Endpoints().Table, table.Name()),
		blockSize: o.BlockSize, concurrency: o.Concurrency, deadline: o.Deadline}
	if o.Prefix == "" {
		s.blobs.prefix = table.Name() + "/" + p.name
	}
	if o.Sealer != nil {
		s.blobs.sealing = &sealing{o.Sealer, strings.ToLower(table.Name()), p.name, o.AcceptPlaintext}
	}
	return s, nil
}

// fits refuses a pattern that encrypts the property in its row: the blob would hold it in clear.
func (x *spill[T]) fits(all []driver.Implementation[T]) error {
	for _, p := range all {
		if t := p.Transform; t != nil && t.Stage == driver.StageEncrypt && t.Filterable != nil && !t.Filterable(x.name) {
			return fmt.Errorf("pattern %q encrypts it, which leaves its blob in clear; Options.Sealer is for that", p.Name)
		}
	}
	return nil
}

// formOf finds out how the field is declared. The codec decides what a field takes: a []byte takes an Edm.Binary alone, and
// what is stored as a string an Edm.String alone. Fields that take both, such as a tables.Value, cannot tell a value from a
// pointer.
func (x *spill[T]) formOf(streams bool) (form, error) {
	takes := func(v tables.Value) bool {
		return x.codec.Decode(tables.Properties{{Name: x.name, Value: v}}, new(T)) == nil
	}
	if streams {
		v := new(T)
		err := x.codec.Decode(tables.Properties{{Name: x.name, Value: tables.String(inlineMark)}}, v)
		if s := x.field(v); err != nil || s == nil || s.IsZero() {
			return 0, errors.New("the function returns another field's Stream, or none")
		}
		return streamForm, nil
	}
	isBinary := takes(tables.Binary([]byte("x")))
	isString := takes(tables.String("x")) || takes(tables.String("")) || takes(tables.String("null"))
	switch {
	case isBinary && !isString:
		return binaryForm, nil
	case isString && !isBinary:
		return stringForm, nil
	}
	return 0, errors.New("its field is neither a []byte nor stored as a string")
}

// bind tells a Stream that was read where its blob is.
func (x *spill[T]) bind(s *Stream) {
	if s != nil && s.c != nil && s.c.ptr != nil && s.c.home == nil {
		bound := *s.c
		bound.home = x.blobs
		s.c = &bound
	}
}

// store puts a large value into a blob, and a pointer to it into the property.
func (x *spill[T]) store(ctx context.Context, change *driver.Change[T], p tables.Properties) (tables.Properties, error) {
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

// load puts the value of a blob into the property in the place of the pointer.
func (x *spill[T]) load(ctx context.Context, of driver.Reading, p tables.Properties) (tables.Properties, error) {
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
func (x *spill[T]) pointerIn(op string, key tables.Key, v tables.Value) (*pointer, error) {
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
func (x *spill[T]) loaded(ctx context.Context, v tables.Value, ptr *pointer) (tables.Value, error) {
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
