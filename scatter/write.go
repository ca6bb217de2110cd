package scatter

import (
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Writer has the methods that write entities, with the errors of Repository. Before a write they make sure that
// the entity's partition is known; after it they count the entity and its index copies in the partition in the
// Meter, which does not count copies that a change removes, nor rows of other patterns.
type Writer[T any] struct {
	repository *patterns.Repository[T]
	meter      *Meter
	copies     []func(any) ([]driver.Copy, error)
	// reach makes the partition of a new entity known, check that of a stored one. Natural's reach checks the
	// row key, and its check is nil.
	reach, check func(ctx context.Context, op string, v *T) error
}

func newWriter[T any](repository *patterns.Repository[T], meter *Meter) Writer[T] {
	w := Writer[T]{repository: repository, meter: meter}
	for _, p := range patterns.HostOf(repository).Patterns() {
		if p.Copies != nil {
			w.copies = append(w.copies, p.Copies)
		}
	}
	return w
}

// Repository returns the underlying repository, for queries of one partition, Verify, StageInsert and other
// methods. Call Spread.Prepare before you insert with it; the Meter does not count its writes.
func (w *Writer[T]) Repository() *patterns.Repository[T] { return w.repository }

// Insert adds an entity. It returns tables.ErrExists if an entity has this key. Requests: 1, and up to 2 for a row
// key above the known horizon.
func (w *Writer[T]) Insert(ctx context.Context, v *T) error {
	return w.run(ctx, "Insert", w.reach, v, w.repository.Insert)
}

// Upsert inserts the entity or replaces the stored one. Requests: 2, and up to 2 for a row key above the known
// horizon.
func (w *Writer[T]) Upsert(ctx context.Context, v *T) error {
	return w.run(ctx, "Upsert", w.reach, v, w.repository.Upsert)
}

// Replace replaces the entity that v was read from. Requests: 1.
func (w *Writer[T]) Replace(ctx context.Context, v *T) error {
	return w.run(ctx, "Replace", w.check, v, w.repository.Replace)
}

// Merge writes the named properties, or all properties of v if none are named. Requests: 1, with patterns 2.
func (w *Writer[T]) Merge(ctx context.Context, v *T, properties ...string) error {
	return w.run(ctx, "Merge", w.check, v, func(ctx context.Context, v *T) error { return w.repository.Merge(ctx, v, properties...) })
}

// Delete removes the entity that v was read from. Requests: 1.
func (w *Writer[T]) Delete(ctx context.Context, v *T) error {
	return w.run(ctx, "Delete", w.check, v, w.repository.Delete)
}

func (w *Writer[T]) run(ctx context.Context, op string, prepare func(context.Context, string, *T) error, v *T, write func(context.Context, *T) error) error {
	if v != nil && prepare != nil {
		if err := prepare(ctx, op, v); err != nil {
			return err
		}
	}
	err := write(ctx, v)
	if !errors.Is(err, tables.ErrInvalid) && !errors.Is(err, tables.ErrTooLarge) {
		w.count(v)
	}
	return err
}

// BulkNonAtomic changes any number of entities with one verb: see Repository.BulkNonAtomic. Requests: 1 for each 100
// rows of a partition at best.
func (w *Writer[T]) BulkNonAtomic(ctx context.Context, entities iter.Seq2[*T, error], options *tables.BulkOptions) (tables.BulkReport, error) {
	var skip int64
	prepare := w.reach
	if options != nil {
		if options.Verb == tables.BulkReplace || options.Verb == tables.BulkMerge || options.Verb == tables.BulkDelete {
			prepare = w.check
		}
		skip, _ = strconv.ParseInt(options.Resume, 10, 64) // BulkNonAtomic refuses any other text
	}
	prepared := func(yield func(*T, error) bool) {
		var n int64
		for v, err := range entities {
			if n++; err == nil && v != nil && n > skip {
				if prepare != nil {
					err = prepare(ctx, "BulkNonAtomic", v)
				}
				if err == nil {
					w.count(v)
				}
			}
			if !yield(v, err) {
				return
			}
		}
	}
	return w.repository.BulkNonAtomic(ctx, prepared, options)
}

func (w *Writer[T]) update(ctx context.Context, key tables.Key, change func(*T) error) (*T, error) {
	v, err := w.repository.Update(ctx, key, change)
	if err == nil {
		w.count(v)
	}
	return v, err
}

// count adds the entity's row and copies to the meter, since the partition's target counts each row.
func (w *Writer[T]) count(v *T) {
	if w.meter == nil || v == nil {
		return
	}
	rows := 1
	for _, copiesOf := range w.copies {
		copies, _ := copiesOf(v) // an entity with an error here was not written
		rows += len(copies)
	}
	w.meter.Add(w.repository.KeyOf(v).Partition, rows)
}
