package scatter

import (
	"context"
	"errors"
	"iter"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Writer has the verbs that write entities: those of the Repository, which is behind them, with the same errors. They see to
// it that the entity's partition is known, and count what they send in the Meter.
type Writer[T any] struct {
	repository *patterns.Repository[T]
	meter      *Meter
	copies     []driver.CopyContributor
	// reach makes the partition of an entity known that may be new, look that of one that is stored; nil where it always is.
	reach, look func(ctx context.Context, op string, v *T) error
}

func newWriter[T any](repository *patterns.Repository[T], meter *Meter) Writer[T] {
	w := Writer[T]{repository: repository, meter: meter}
	for _, p := range repository.Patterns() {
		if x, ok := p.(driver.CopyContributor); ok {
			w.copies = append(w.copies, x)
		}
	}
	return w
}

// Repository returns the repository that keeps the entities, for all that is not here: queries of one partition, Verify,
// StageInsert. What it inserts must be prepared (Spread.Prepare), and it does not count.
func (w *Writer[T]) Repository() *patterns.Repository[T] { return w.repository }

// Insert adds an entity, and is tables.ErrExists when there is one with this key. Requests: 1.
func (w *Writer[T]) Insert(ctx context.Context, v *T) error {
	return w.run(ctx, "Insert", w.reach, v, w.repository.Insert)
}

// Upsert inserts the entity or writes it in the place of what is there. Requests: 2.
func (w *Writer[T]) Upsert(ctx context.Context, v *T) error {
	return w.run(ctx, "Upsert", w.reach, v, w.repository.Upsert)
}

// Replace writes the entity in the place of what it was read as. Requests: 1.
func (w *Writer[T]) Replace(ctx context.Context, v *T) error {
	return w.run(ctx, "Replace", w.look, v, w.repository.Replace)
}

// Merge writes the named properties, all of v's when none are named. Requests: 1, with patterns 2.
func (w *Writer[T]) Merge(ctx context.Context, v *T, properties ...string) error {
	return w.run(ctx, "Merge", w.look, v, func(ctx context.Context, v *T) error { return w.repository.Merge(ctx, v, properties...) })
}

// Delete removes the entity as it was read. Requests: 1.
func (w *Writer[T]) Delete(ctx context.Context, v *T) error {
	return w.run(ctx, "Delete", w.look, v, w.repository.Delete)
}

// run makes the partition known, writes and counts.
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

// BulkInsertNonAtomic inserts any number of entities: see the Repository's. Requests: 1 for each 100 rows of a partition at
// best.
func (w *Writer[T]) BulkInsertNonAtomic(ctx context.Context, entities iter.Seq2[*T, error], options *tables.BulkOptions) (tables.BulkProgress, error) {
	var skip int64
	if options != nil {
		skip = options.Skip
	}
	prepared := func(yield func(*T, error) bool) {
		var n int64
		for v, err := range entities {
			if n++; err == nil && v != nil && n > skip {
				if w.reach != nil {
					err = w.reach(ctx, "BulkInsertNonAtomic", v)
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
	return w.repository.BulkInsertNonAtomic(ctx, prepared, options)
}

// update is the Repository's Update, counted.
func (w *Writer[T]) update(ctx context.Context, key tables.Key, change func(*T) error) (*T, error) {
	v, err := w.repository.Update(ctx, key, change)
	if err == nil {
		w.count(v)
	}
	return v, err
}

// count adds the entity's rows to the meter: they all are in its partition, and count one by one against its target.
func (w *Writer[T]) count(v *T) {
	if w.meter == nil || v == nil {
		return
	}
	rows := 1
	for _, x := range w.copies {
		copies, _ := x.Copies(v) // an entity whose copies are an error was not written
		rows += len(copies)
	}
	w.meter.Add(w.repository.KeyOf(v).Partition, rows)
}
