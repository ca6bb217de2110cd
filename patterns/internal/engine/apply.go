package engine

import (
	"context"
	"fmt"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Apply implements Host.Apply.
func (r *Engine) Apply(ctx context.Context, kind driver.ChangeKind, v any, incarnation string, beside *driver.Beside) error {
	w, err := r.applying(ctx, kind, v)
	if err != nil {
		return err
	}
	w.Change.incarnation = incarnation
	if beside != nil {
		w.Change.beside = beside
		if _, err := beside.Writes(pass); err != nil {
			return r.Invalid(w.Op, w.Change.Key, err)
		}
	}
	return r.Run(ctx, w)
}

func (r *Engine) applying(ctx context.Context, kind driver.ChangeKind, v any) (*Work, error) {
	const op = "Apply"
	switch kind {
	case driver.ChangeInsert:
		return r.Inserting("Insert", v)
	case driver.ChangeReplace:
		return r.Replacing("Replace", v)
	case driver.ChangeDelete:
		return r.Deleting(ctx, "Delete", v)
	}
	return nil, r.Invalid(op, tables.Key{}, fmt.Errorf("change kind %d; Apply takes ChangeInsert, ChangeReplace or ChangeDelete", kind))
}
