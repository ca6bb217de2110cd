package patterns

import (
	"context"
	"fmt"

	"github.com/tablepatterns/tablepatterns/patterns/driver"

	"github.com/tablepatterns/tablepatterns/tables"
)

// ApplyOptions are what Apply adds to a change; nil is the same as the zero value.
type ApplyOptions struct {
	// Incarnation is the id of the entity's life from this change on. With it a repeated insert of the same thing is known. ""
	// is a new one for an insert, and the entity's own for a replace.
	Incarnation string
	// Beside are rows that are written in the entity's transaction. If one of them has changed, nothing is written, and the
	// error is that of an entity that has changed: ErrConflict, ErrExists or ErrNotFound.
	Beside driver.Beside
}

// apply is Repository.Apply.
func (r *engine) apply(ctx context.Context, kind driver.ChangeKind, v any, options *ApplyOptions) error {
	w, err := r.applying(ctx, kind, v)
	if err != nil {
		return err
	}
	if options != nil {
		w.change.incarnation = options.Incarnation
		w.change.beside = &options.Beside
		if _, err := options.Beside.Writes(pass); err != nil {
			return r.invalid(w.op, w.change.Key, err)
		}
	}
	return r.run(ctx, w)
}

func (r *engine) applying(ctx context.Context, kind driver.ChangeKind, v any) (*work, error) {
	const op = "Apply"
	switch kind {
	case driver.ChangeInsert:
		return r.inserting("Insert", v)
	case driver.ChangeReplace:
		return r.replacing("Replace", v)
	case driver.ChangeDelete:
		return r.deleting(ctx, "Delete", v)
	}
	return nil, r.invalid(op, tables.Key{}, fmt.Errorf("change kind %d; Apply takes ChangeInsert, ChangeReplace or ChangeDelete", kind))
}
