package dataseries

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// blobShelf stores each series in a blob, with the marks of its operations. Every change but remove reads the blob,
// and writes it under its ETag.
type blobShelf struct {
	layout
	blobs    blobs
	table    string
	attempts int
}

// errNothingToDo is returned by an edit after which the document must not be written.
var errNothingToDo = errors.New("nothing to do")

// changeOf changes the document of a series.
func (b *blobShelf) changeOf(ctx context.Context, key tables.Key, once bool, edit func(s *stored) error) error {
	name, err := b.nameOf(key)
	if err != nil {
		return err
	}
	return b.change(ctx, name, once, edit)
}

// change edits and writes a document, as persist describes.
func (b *blobShelf) change(ctx context.Context, name string, once bool, edit func(s *stored) error) error {
	return persist(ctx, b.attempts, once, func(ctx context.Context) (step, error) {
		s, err := b.blobs.read(ctx, name)
		if err != nil {
			return step{}, err
		}
		switch err := edit(s); {
		case errors.Is(err, errNothingToDo):
			return step{s.etag, func(context.Context) error { return nil }}, nil
		case err != nil:
			return step{}, err
		}
		s.sort()
		return step{s.etag, func(ctx context.Context) error { return b.blobs.write(ctx, name, s) }}, nil
	})
}

func (b *blobShelf) set(ctx context.Context, key tables.Key, values []slotValue) error {
	return b.changeOf(ctx, key, false, func(s *stored) error {
		for _, v := range values {
			s.slots.Set(b.property(v.slot), v.value)
		}
		return nil
	})
}

func (b *blobShelf) read(ctx context.Context, key tables.Key) ([]tables.Value, error) {
	name, err := b.nameOf(key)
	if err != nil {
		return nil, err
	}
	return b.load(ctx, name)
}

func (b *blobShelf) load(ctx context.Context, name string) ([]tables.Value, error) {
	s, err := b.blobs.read(ctx, name)
	if err != nil {
		return nil, err
	}
	values := make([]tables.Value, b.layout.slots)
	if _, err := b.take(values, s.slots, 0); err != nil {
		return nil, &tables.Error{Table: name, Kind: tables.ErrGarbled, Err: err}
	}
	return values, nil
}

func (b *blobShelf) readMany(ctx context.Context, partition string, of compoundkey.Span) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		for item, err := range b.list(ctx, &partition) {
			if err != nil {
				yield(record{}, tables.ServiceError("", b.prefixOf(&partition), err))
				return
			}
			key, ok := b.keyOf(*item.Name)
			if !ok || !of.Contains(key.Row) {
				continue
			}
			values, err := b.load(ctx, *item.Name)
			if !yield(record{key, values}, err) || err != nil { // an error is the last element
				return
			}
		}
	}
}

// list lists the blobs of a partition, or of all partitions if partition is nil.
func (b *blobShelf) list(ctx context.Context, partition *string) iter.Seq2[*container.BlobItem, error] {
	return blobio.List(ctx, b.blobs.container, b.prefixOf(partition), container.ListBlobsInclude{})
}

func (b *blobShelf) remove(ctx context.Context, key tables.Key) error {
	name, err := b.nameOf(key)
	if err != nil {
		return err
	}
	return b.blobs.remove(ctx, name)
}

func (b *blobShelf) add(ctx context.Context, key tables.Key, slot int, sum sum) error {
	return b.changeOf(ctx, key, false, func(s *stored) error { return b.addTo(s, slot, sum) })
}

func (b *blobShelf) addTo(s *stored, slot int, sum sum) error {
	property := b.property(slot)
	value, err := sum(s.slots.Get(property))
	if err == nil {
		s.slots.Set(property, value)
	}
	return err
}

// addOnce writes the mark together with the sum.
func (b *blobShelf) addOnce(ctx context.Context, m *mark, sum sum) (counted bool, err error) {
	var refused error
	err = b.changeOf(ctx, m.key, true, func(s *stored) error {
		if there, ok := s.mark(m.hash); ok {
			counted, refused = there.call == m.call, m.same(tables.String(there.slot), there.delta)
			return errNothingToDo
		}
		s.marks = append(s.marks, blobMark{hash: m.hash, slot: m.property, call: m.call, at: s.now, delta: m.delta})
		counted = true
		return b.addTo(s, m.slot, sum)
	})
	if err == nil {
		err = refused
	}
	return counted && err == nil, err
}

// sweep rewrites the documents that have old marks. It skips blobs that the service refuses to read or write, and returns the last reason.
func (b *blobShelf) sweep(ctx context.Context, s *sweeping) (refused error) {
	partitions := make([]*string, 0, len(s.Partitions))
	for i := range s.Partitions {
		partitions = append(partitions, &s.Partitions[i])
	}
	if s.Partitions == nil {
		partitions = append(partitions, nil)
	}
	for ; s.at.Part < len(partitions); s.at.Part, s.at.Row = s.at.Part+1, "" {
		partition := partitions[s.at.Part]
		for item, err := range b.list(ctx, partition) {
			if err != nil {
				return tables.ServiceError("", b.prefixOf(partition), err)
			}
			name := *item.Name
			if name <= s.at.Row {
				continue
			}
			old, err := b.sweepOne(ctx, name, s)
			if errors.Is(err, tables.ErrRefused) {
				refused = err
				s.report.Failed++
				continue
			}
			if err != nil {
				return err
			}
			removed := old
			if s.DryRun {
				removed = 0
			}
			s.passed(tables.Key{Row: name}, old, removed)
		}
	}
	return refused
}

func (b *blobShelf) sweepOne(ctx context.Context, name string, s *sweeping) (old int, err error) {
	err = b.change(ctx, name, true, func(d *stored) error {
		var young []blobMark
		for _, m := range d.marks {
			if d.now.Sub(m.at) <= s.olderThan {
				young = append(young, m)
			}
		}
		if len(young) == len(d.marks) {
			return errNothingToDo // an attempt whose response was lost may have removed the marks; old then keeps the number that this attempt found
		}
		if old = len(d.marks) - len(young); s.DryRun {
			return errNothingToDo
		}
		d.marks = young
		return nil
	})
	return old, err
}

const contentType = "application/json"

// blobs are documents in blobs of a container.
type blobs struct{ container *container.Client }

// stored is a document as it was read. Its ETag is empty if the blob does not exist.
type stored struct {
	document
	etag azcore.ETag
	now  time.Time // by the service's clock
}

// read reads a document. Requests: 1.
func (b blobs) read(ctx context.Context, name string) (*stored, error) {
	content, err := blobio.Read(ctx, b.container, name)
	if err != nil {
		return nil, tables.ServiceError("", name, err)
	}
	s := &stored{etag: content.ETag}
	if s.now, err = dateOf(content.Header); err != nil || s.etag == "" {
		return s, err
	}
	d, err := decodeDocument(content.Text)
	if err != nil {
		return nil, &tables.Error{Table: name, Kind: tables.ErrGarbled, Err: err}
	}
	s.document = *d
	return s, nil
}

// write writes the changed document under the ETag with which it was read. If the response is lost, the write ID in
// the blob may show the outcome. Requests: 1.
func (b blobs) write(ctx context.Context, name string, s *stored) error {
	s.document.write = rand.Text()
	kind := contentType
	var ex wire.Exchange
	_, err := b.container.NewBlockBlobClient(name).Upload(wire.With(ctx, &ex), streaming.NopCloser(bytes.NewReader(s.encode())),
		&blockblob.UploadOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &kind},
			AccessConditions: blobio.Unchanged(s.etag)})
	if err == nil {
		return nil
	}
	failed := tables.ServiceError("", name, err)
	if !ex.Lost() && !ex.EarlierUnknown() {
		return failed
	}
	now, readErr := b.read(ctx, name)
	if readErr == nil && now.document.write == s.document.write {
		return nil
	}
	failed.Kind, failed.Err = tables.ErrUnknownOutcome, errors.Join(failed.Err, readErr)
	return failed
}

// remove deletes a document without a check of its ETag. Requests: 1.
func (b blobs) remove(ctx context.Context, name string) error {
	var ex wire.Exchange
	_, err := b.container.NewBlobClient(name).Delete(wire.With(ctx, &ex), nil)
	if err == nil {
		return nil
	}
	failed := tables.ServiceError("", name, err)
	switch {
	case blobio.IsGone(err) && ex.EarlierUnknown():
		return nil // an earlier attempt of the SDK may have deleted the blob
	case ex.Lost():
		failed.Kind = tables.ErrUnknownOutcome
	}
	return failed
}

const segmentEnd = "/"

func segment(key string) string {
	return blobio.Segment(compoundkey.Join("", compoundkey.String(key)))
}

// prefixOf returns the common prefix of the names of all series' blobs, or of those in a partition. The table's name
// is in lower case, since the table service ignores its case.
func (b *blobShelf) prefixOf(partition *string) string {
	prefix := strings.ToLower(b.table) + segmentEnd + b.prefix + segmentEnd
	if partition != nil {
		prefix += segment(*partition) + segmentEnd
	}
	return prefix
}

func (b *blobShelf) nameOf(key tables.Key) (string, error) {
	name := b.prefixOf(&key.Partition) + segment(key.Row)
	if err := blobio.CheckName(name); err != nil {
		return "", tables.Invalid("", err)
	}
	return name, nil
}

// keyOf is the inverse of nameOf; ok is false for other blobs.
func (b *blobShelf) keyOf(name string) (key tables.Key, ok bool) {
	rest, ok := strings.CutPrefix(name, b.prefixOf(nil))
	partition, row, two := strings.Cut(rest, segmentEnd)
	if !ok || !two || strings.Contains(row, segmentEnd) {
		return key, false
	}
	return key, keyOfSegment(partition, &key.Partition) && keyOfSegment(row, &key.Row)
}

func keyOfSegment(text string, key *string) bool {
	return compoundkey.Parse(blobio.ParseSegment(text), "", compoundkey.ToString(key)) == nil
}
