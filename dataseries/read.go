package dataseries

import (
	"context"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Read returns all slots of a series. For a series that does not exist, all slots are gaps. A series of
// several rows is read row by row, so its rows may have been read at different times. Requests: 1.
func (s *Series[V]) Read(ctx context.Context, key tables.Key) (*Values[V], error) {
	const op = "Read"
	if err := s.checkKey(key); err != nil {
		return nil, s.failed(op, key, err)
	}
	stored, err := s.shelf.read(ctx, key)
	if err != nil {
		return nil, s.failed(op, key, err)
	}
	v, err := s.values(record{key, stored})
	return v, s.failed(op, key, err)
}

// ReadMany yields the series of a partition whose row keys are in the span, in the order of their keys
// (series in blobs: in the order of the blob names). It skips other rows of the partition. Requests: 1 for
// each page of at most 1,000 rows; in blobs, 1 for each 5,000, and 1 for each series.
func (s *Series[V]) ReadMany(ctx context.Context, partition string, of compoundkey.Span) iter.Seq2[*Values[V], error] {
	const op = "ReadMany"
	return func(yield func(*Values[V], error) bool) {
		key := tables.Key{Partition: partition}
		err := of.Err()
		if err != nil {
			err = tables.Invalid("", err)
		} else {
			err = checkKeys(key)
		}
		if err != nil {
			yield(nil, s.failed(op, key, err))
			return
		}
		for r, err := range s.shelf.readMany(ctx, partition, of) {
			var v *Values[V]
			if err == nil {
				v, err = s.values(r)
			}
			if err != nil {
				yield(nil, s.failed(op, r.key, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
