package dataseries

import (
	"context"
	"errors"
	"iter"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/blobio"
	"github.com/tablepatterns/tablepatterns/tables"
)

// blobShelf stores each series in a blob, with the marks of its operations. Every change reads the blob, and writes
// it under its ETag.
type blobShelf struct {
	layout
	blobs    blobs
	table    string
	attempts int
}

// errNothingToDo ends a change that is not needed.
var errNothingToDo = errors.New("nothing to do")

// change edits and writes a document, and retries on conflict.
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
	name, err := b.nameOf(key)
	if err != nil {
		return err
	}
	return b.change(ctx, name, false, func(s *stored) error {
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
	name, err := b.nameOf(key)
	if err != nil {
		return err
	}
	return b.change(ctx, name, false, func(s *stored) error { return b.addTo(s, slot, sum) })
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
	name, err := b.nameOf(m.key)
	if err != nil {
		return false, err
	}
	var refused error
	err = b.change(ctx, name, true, func(s *stored) error {
		if there, ok := s.mark(m.hash); ok {
			counted, refused = there.call == m.call, m.sameIn(there)
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

// sweep rewrites the documents that have old marks.
func (b *blobShelf) sweep(ctx context.Context, s *sweeping) error {
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
	return nil
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
			return errNothingToDo // an earlier attempt with a lost response may have removed them
		}
		if old = len(d.marks) - len(young); s.DryRun {
			return errNothingToDo
		}
		d.marks = young
		return nil
	})
	return old, err
}
