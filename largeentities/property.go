package largeentities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Property stores large values of one property in blobs. Give each Property to one Repository only.
type Property[T any] struct {
	name       string
	field      func(*T) *Stream // nil for a []byte or a string
	streams    bool
	container  *container.Client
	options    Options
	repository driver.Binding
}

// NewProperty makes the pattern for a property whose field is a []byte, a string, or of another type that is
// stored as a string. name is the stored name of the property. container comes from blobstorage.Open or
// blobstorage.Container and may be in another account; Store.Create creates it.
func NewProperty[T any](name string, c *container.Client, options *Options) *Property[T] {
	x := &Property[T]{name: name, container: c}
	if options != nil {
		x.options = *options
	}
	return x
}

// NewStream makes the pattern for a property whose field is a Stream; field returns a pointer to it.
func NewStream[T any](name string, field func(*T) *Stream, c *container.Client, options *Options) *Property[T] {
	x := NewProperty[T](name, c, options)
	x.field, x.streams = field, true
	return x
}

// Attach implements patterns.Pattern; NewRepository calls it.
func (p *Property[T]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	s, err := p.spillOf(host)
	return driver.Implementation{Name: p.name, Binding: &p.repository, Pattern: s, Containers: []driver.Container{blobstorage.Resource(p.container)}, Fits: s.fits, Prior: s.prior,
		Transform: &driver.Transform{Stage: driver.StageSpill, Store: s.store, Load: s.load, After: s.after, Streams: p.streams,
			Filterable: func(property string) bool { return property != p.name }},
	}, err
}

// Of returns the entity's Stream, even if the entity was read with a projection. It returns nil if the
// property is not a Stream.
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

// spill returns the state of the property in its repository, or tables.ErrWiring if the property was given to no
// repository.
func (p *Property[T]) spill(op string) (*spill, error) {
	host, err := p.repository.Host(op, p.name)
	if err != nil {
		return nil, err
	}
	for _, attached := range host.Patterns() {
		if s, ok := attached.Pattern.(*spill); ok && attached.Binding == &p.repository {
			return s, nil
		}
	}
	return nil, errs.Wiringf(op, "", "property %s was not given to a repository; give the Property to NewRepository", p.name)
}

// spill is a Property attached to its repository.
type spill struct {
	host    driver.Host
	name    string
	field   func(any) *Stream // nil for a []byte or a string
	blobs   *blobs
	options Options // with defaults filled in
	codec   *core.Codec
	form    form
}

// spillOf attaches the property to a repository. It returns an error if the property does not fit the repository.
func (p *Property[T]) spillOf(host driver.Host) (s *spill, err error) {
	s = &spill{host: host, name: p.name}
	if p.field != nil {
		s.field = func(v any) *Stream { return p.field(driver.As[T](v)) }
	}
	switch {
	case p.container == nil:
		return s, errors.New("the container is nil; give one of blobstorage.Container, which needs an account with a blob endpoint")
	case p.streams && p.field == nil:
		return s, errors.New("the function that returns the Stream is nil; give one")
	}
	if s.options, err = p.options.complete(); err != nil {
		return s, err
	}
	if names := host.PropertyNames(); names != nil && !slices.Contains(names, p.name) {
		return s, fmt.Errorf("%v has no property of this name; give the name under which the field is stored", reflect.TypeFor[T]())
	}
	if s.codec, err = core.CodecOf[T](); err != nil {
		return s, err
	}
	if s.form, err = s.formOf(p.streams); err != nil {
		return s, err
	}
	table, o := host.Table(), s.options
	s.blobs = &blobs{signals: (*core.Account)(table.Account()).Telemetry(), container: p.container, prefix: cmp.Or(o.Prefix, table.Name()+"/"+p.name),
		home: blobowner.Home(table.Account().Identity(), table.Name()), blockSize: o.BlockSize, concurrency: o.Concurrency, deadline: o.Deadline}
	if o.Sealer != nil {
		s.blobs.sealing = &sealing{o.Sealer, table.Account().Identity(), strings.ToLower(table.Name()), p.name, o.AcceptPlaintext}
	}
	return s, nil
}

// fits refuses a pattern that encrypts the property in the row: the value would be in plaintext in its blob.
func (x *spill) fits(all []*driver.Implementation) error {
	for _, p := range all {
		if t := p.Transform; t != nil && t.Stage == driver.StageEncrypt && t.Filterable != nil && !t.Filterable(x.name) {
			return fmt.Errorf("pattern %q encrypts it in the row, but its blob would be in plaintext; remove it from that pattern and set Options.Sealer", p.Name)
		}
	}
	return nil
}

// formOf finds out how the field is declared, by what the codec decodes into it: only Edm.Binary into a []byte, only Edm.String into a
// field stored as a string. It refuses a field that accepts both, such as a tables.Value, since there a pointer would look like a value.
func (x *spill) formOf(streams bool) (form, error) {
	takes := func(v tables.Value) bool {
		return x.codec.Decode(tables.Properties{{Name: x.name, Value: v}}, x.codec.New()) == nil
	}
	if streams {
		v := x.codec.New()
		err := x.codec.Decode(tables.Properties{{Name: x.name, Value: tables.String(inlineMark)}}, v)
		if s := x.field(v); err != nil || s == nil || s.IsZero() {
			return 0, errors.New("the function returns nil or the Stream of another field; return a pointer to the field of this property")
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
	return 0, errors.New("its field must be a []byte or stored as a string; for a Stream use NewStream")
}

// bind lets a Stream that was read know where its blob is.
func (x *spill) bind(s *Stream) {
	if s != nil && s.c != nil && s.c.ptr != nil && s.c.home == nil {
		bound := *s.c
		bound.home = x.blobs
		s.c = &bound
	}
}

// store puts a large value into a blob, and a pointer to it into the property.
func (x *spill) store(ctx context.Context, change *driver.Change, p tables.Properties) (tables.Properties, error) {
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
		if change.Kind == driver.ChangeMerge {
			return nil, fmt.Errorf("property %s has no value, and a merge cannot remove it from the stored row; name only properties that have a value, or use Replace", x.name)
		}
		p.Delete(x.name)
	case inEntity:
		p.Set(x.name, l.value)
	case keptBlob:
		p.Set(x.name, x.form.pointer(l.pointer))
	case newBlob:
		ptr := l.pointer
		change.StoresOutside(entityPrefix(x.blobs.prefix, change.Key))
		if !change.DryRun {
			if ptr, err = x.upload(ctx, change, l); err != nil {
				return nil, err
			}
		}
		p.Set(x.name, x.form.pointer(ptr))
	}
	return p, nil
}

// load replaces the pointer in the property by the value from the blob.
func (x *spill) load(ctx context.Context, of driver.Reading, p tables.Properties) (tables.Properties, error) {
	v := p.Get(x.name)
	if g, _ := ctx.Value(pointerProbeKey{}).(*pointerProbe); g != nil {
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
	if err == nil {
		p.Set(x.name, loaded)
		return p, nil
	}
	sealed := ptr != nil && ptr.sealed || x.blobs.sealing != nil
	readAgain := func() error { _, err := x.loaded(ctx, v, ptr); return err }
	if s, _ := ctx.Value(salvageKey{}).(*salvage); s != nil && s.leavesOut(of, x.name, sealed, err, readAgain) {
		p.Delete(x.name)
		return p, nil
	}
	return nil, err
}

// pointerIn returns the pointer in a row, nil for none. It returns tables.ErrGarbled if the pointer is to a blob of another entity.
func (x *spill) pointerIn(op string, key tables.Key, v tables.Value) (*pointer, error) {
	ptr, err := x.form.read(key, v)
	if err != nil {
		return nil, garbled(op, "", "property %s: %w", x.name, err)
	}
	if ptr != nil {
		err = x.blobs.checkOwn(op, key, ptr.name)
	}
	return ptr, err
}

// loaded returns the value that the codec decodes in place of the stored value.
func (x *spill) loaded(ctx context.Context, v tables.Value, ptr *pointer) (tables.Value, error) {
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
	if ptr.length > x.options.MaxValue {
		return v, fault("Load", ptr.name, tables.ErrTooLarge, "property %s has %d bytes, and Options.MaxValue is %d; a Stream has no such bound", x.name, ptr.length, x.options.MaxValue)
	}
	data, err := x.blobs.load(ctx, ptr)
	if isReplaced(err) {
		return v, fault("Load", ptr.name, driver.ErrOutdated, "the blob of property %s is missing", x.name)
	}
	if err != nil {
		return v, err
	}
	return x.form.value(data), nil
}
