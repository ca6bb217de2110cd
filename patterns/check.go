package patterns

import (
	"context"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Check refuses an entity that Insert would refuse before any request: a key, a property, a size or a number of rows that the
// service does not take, or what a pattern cannot store. It is for those who do something else before an insert that must
// not be done for an entity which cannot be stored. What only the tables can tell is not looked for: a taken key, a list
// that is full. Requests: 0.
func (r *Repository[T]) Check(ctx context.Context, v *T) error {
	w, err := r.inserting("Check", v)
	if err != nil {
		return err
	}
	return r.checkInsert(ctx, w)
}

// CheckUnder is Check for an entity whose key Schema.Key cannot tell yet, such as one that depends on what is still to be read.
// The given key stands for it, and is as long. Requests: 0.
func (r *Repository[T]) CheckUnder(ctx context.Context, key tables.Key, v *T) error {
	w, err := r.inserting("CheckUnder", v)
	if err != nil {
		return err
	}
	w.change.Key, w.change.standIn = key, true
	return r.checkInsert(ctx, w)
}

func (r *Repository[T]) checkInsert(ctx context.Context, w *work[T]) error {
	if err := raw(r.table).Usable(); err != nil {
		return r.located(w, tables.Invalid("", err))
	}
	w.change.ID, w.change.DryRun = newWriteID(), true
	if err := r.rehearse(ctx, w); err != nil {
		return r.located(w, err)
	}
	_, err := r.intentOf(ctx, w) // patterns refuse here what has no place outside
	return r.located(w, err)
}
