package largeentities

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// where says what a change does with the value.
type where uint8

const (
	nowhere  where = iota // there is no value
	inEntity              // the value is small
	keptBlob              // the entity already points at it
	newBlob
)

// placement says how a change stores the value.
type placement struct {
	where
	value   tables.Value // for inEntity the stored value; for newBlob the plain value, null for a Stream
	pointer *pointer     // for keptBlob the pointer; for newBlob a placeholder at least as long as the real pointer
	open    func(context.Context) (io.ReadCloser, error)
	check   func(length int64) error // checks the number of bytes that were read; nil for none
	report  func(int64)              // nil for none
	stream  *Stream                  // the Stream to which upload gives the new pointer; nil for a value that is not a Stream
}

// place decides how a change stores the value. v is the result of the codec.
func (x *spill) place(ctx context.Context, change *driver.Change, v tables.Value) (placement, error) {
	if x.form == streamForm {
		return x.placeStream(ctx, change)
	}
	if v.IsNull() {
		return placement{}, nil
	}
	data, err := x.form.content(v)
	if err != nil {
		return placement{}, err
	}
	if x.form == stringForm && !utf8.Valid(data) {
		return placement{}, errs.Invalidf("Store", "property %s is not valid UTF-8; make it a []byte", x.name)
	}
	if int64(len(data)) > x.options.MaxValue {
		return placement{}, fault("Store", "", tables.ErrTooLarge, "property %s has %d bytes, and Options.MaxValue is %d; a Stream has no such bound", x.name, len(data), x.options.MaxValue)
	}
	tooLong := false
	if s, ok := v.Text(); ok {
		tooLong = edm.Units(s) > tables.MaxStringUnits
	}
	if len(data) <= x.options.Threshold && !tooLong {
		return placement{where: inEntity, value: v}, nil
	}
	if kept := x.keep(ctx, change, data, x.options.ContentType); kept != nil {
		return *kept, nil
	}
	l := x.newPlacement(change, int64(len(data)), x.options.ContentType)
	l.value, l.open = v, func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return l, nil
}

// placeStream is place for a Stream. It takes the Stream from the entity, since the codec's text does not contain the Stream's source.
func (x *spill) placeStream(ctx context.Context, change *driver.Change) (placement, error) {
	holder := change.Entity
	if change.Given != nil {
		holder = change.Given // Entity of a merge is made of encoded properties, so only the caller's value has the Stream's source
	}
	s := x.field(holder)
	if s == nil || s.c == nil {
		return placement{}, nil
	}
	old := x.old(change)
	if s.c.ptr != nil && x.keeps(ctx, old) && *old == *s.c.ptr {
		return placement{where: keptBlob, pointer: old}, nil
	}
	src := s.c.src
	switch {
	case src != nil && !src.spent():
		return x.placeSource(ctx, change, s, src)
	case s.c.ptr != nil:
		return x.placeCopy(change, s), nil
	}
	return placement{}, errs.Invalidf("Store", "property %s: %w", x.name, errReaderUsed)
}

func (x *spill) placeSource(ctx context.Context, change *driver.Change, s *Stream, src *source) (placement, error) {
	kind := cmp.Or(src.kind, x.options.ContentType)
	if err := checkType(kind); err != nil {
		return placement{}, errs.Invalidf("Store", "property %s: %w", x.name, err)
	}
	if src.length < 0 {
		return placement{}, errs.Invalidf("Store", "property %s: StreamOptions.Length is %d; it must not be negative", x.name, src.length)
	}
	if src.memory {
		if err := src.checkLength(int64(len(src.data))); err != nil {
			return placement{}, err
		}
	}
	if kind == x.options.ContentType {
		head, whole, err := src.peek(x.options.Threshold)
		if err != nil {
			return placement{}, fmt.Errorf("reading the Stream of property %s: %w", x.name, err)
		}
		if whole {
			return placement{where: inEntity, value: tables.Binary(head)}, nil
		}
	}
	length := unknownLength
	if src.memory {
		length = int64(len(src.data))
		if kept := x.keep(ctx, change, src.data, kind); kept != nil {
			return *kept, nil
		}
	}
	l := x.newPlacement(change, length, kind)
	l.stream, l.report, l.check = s, src.report, src.checkLength
	l.open = func(context.Context) (io.ReadCloser, error) { return src.reader() }
	return l, nil
}

// placeCopy copies the content of a Stream into a new blob. The Stream's present blob belongs to another entity or an
// earlier attempt, or Reseal or a changed Sealer replaces it.
func (x *spill) placeCopy(change *driver.Change, s *Stream) placement {
	from, home := s.c.ptr, s.c.home
	if home == nil {
		home = x.blobs
	}
	l := x.newPlacement(change, from.length, from.contentType)
	l.stream = s
	l.open = func(ctx context.Context) (io.ReadCloser, error) {
		r, err := home.openValue(ctx, "Copy", from, 0, from.length)
		if isReplaced(err) && s.c.src != nil {
			return nil, errs.Invalidf("Store", "property %s: %w", x.name, errReaderUsed)
		}
		return r, err
	}
	return l
}

// keep returns the placement that keeps the entity's blob, or nil if the blob does not have this content and type.
func (x *spill) keep(ctx context.Context, change *driver.Change, data []byte, kind string) *placement {
	old := x.old(change)
	if !x.keeps(ctx, old) || old.length != int64(len(data)) || old.contentType != kind {
		return nil
	}
	if old.sealed && !slices.Contains(change.Prior, contentMemory(data)) || !old.sealed && old.sha256 != sha256.Sum256(data) {
		return nil
	}
	return &placement{where: keptBlob, pointer: old}
}

// old returns the pointer that the entity has before the change, nil if there is none.
func (x *spill) old(change *driver.Change) *pointer {
	for _, text := range change.Prior {
		p, err := parsePointer(change.Key, text)
		if err == nil && x.blobs.checkOwn("Store", change.Key, p.name) == nil { // do not keep or delete a blob that is not the entity's
			return p
		}
	}
	return nil
}

func (x *spill) newPlacement(change *driver.Change, length int64, kind string) placement {
	return placement{where: newBlob, pointer: &pointer{of: change.Key, name: entityPrefix(x.blobs.prefix, change.Key) + rand.Text(), length: length, contentType: kind, sealed: x.blobs.sealing != nil}}
}

// upload stores a value in its blob. From then on, the deadline for the change's transaction runs.
func (x *spill) upload(ctx context.Context, change *driver.Change, l placement) (*pointer, error) {
	r, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	u := &upload{blobs: x.blobs, name: l.pointer.name, kind: l.pointer.contentType, report: l.report, check: l.check, expect: l.pointer.length,
		of: change.Key}
	out, seal, err := x.blobs.sealUpload(ctx, u, r)
	if err != nil {
		return nil, err
	}
	s, err := u.run(ctx, out)
	if err != nil {
		return nil, err
	}
	seal(&s.pointer)
	admit(ctx, x.blobs, s)
	if l.stream != nil {
		l.stream.c = &content{src: l.stream.c.src, ptr: &s.pointer, home: x.blobs}
	}
	return &s.pointer, nil
}

// prior returns the stored pointer and, for a sealed []byte or string, the hash of its content, which keep compares.
func (x *spill) prior(entity any, p tables.Properties) ([]string, error) {
	if x.field != nil && entity != nil {
		x.bind(x.field(entity))
	}
	ptr, err := x.form.read(tables.Key{}, p.Get(x.name)) // the key is not needed: only the text is returned
	if err != nil || ptr == nil {
		return nil, nil // an error means the text of a new Stream, since load would have refused any other text
	}
	memory := []string{ptr.String()}
	if entity != nil && ptr.sealed && x.form != streamForm {
		now, err := x.codec.Encode(entity)
		if err != nil {
			return nil, err
		}
		if data, err := x.form.content(now.Get(x.name)); err == nil {
			memory = append(memory, contentMemory(data))
		}
	}
	return memory, nil
}

// after returns the removal of the blob that no row names after the change: the old one, or the new one if the transaction was not
// committed. Since no name is used twice, no later change names it. Requests: 1 to delete it; 1 more for a Stream and in Discard, since no
// response has shown that the blob is the entity's; 1 more to read the entity if the transaction was not committed, since a gateway may have
// sent it twice.
func (x *spill) after(ctx context.Context, change *driver.Change, committed bool) func(context.Context) {
	if change.Kind != driver.ChangeDelete && !change.Writes(x.name) { // such a merge keeps the stored value
		return nil
	}
	const op = "Store"
	old := x.old(change)
	now, _ := x.pointerIn(op, change.Key, change.Stored.Get(x.name))
	switch {
	case old != nil && now != nil && old.name == now.name:
		return nil
	case committed && old != nil:
		unread := x.form == streamForm || discards(ctx)
		return x.removal(old.name, func(ctx context.Context) error {
			if unread {
				return x.blobs.removeUnread(ctx, op, change.Key, old.name)
			}
			return x.blobs.remove(ctx, op, old.name, "")
		})
	case !committed && now != nil:
		return x.removal(now.name, func(ctx context.Context) error {
			ptr, _, err := x.probeRow(ctx, change.Key)
			if err != nil || ptr != nil && ptr.name == now.name {
				return err
			}
			return x.blobs.remove(ctx, op, now.name, "")
		})
	}
	return nil
}

// removal reports a failure of remove: the blob stays until a Sweep.
func (x *spill) removal(name string, remove func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		if err := remove(ctx); err != nil {
			x.blobs.signals.BlobLeft(ctx, x.blobs.containerName(), fmt.Errorf("blob %s: %w", name, err))
		}
	}
}
