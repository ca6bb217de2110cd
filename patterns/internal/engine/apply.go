package engine

import (
	"context"
	"fmt"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Apply implements Host.Apply.
func (r *Engine) Apply(ctx context.Context, kind driver.ChangeKind, v any, incarnation string, beside *driver.Beside) error {
	op := "Apply"
	if kind <= driver.ChangeDelete {
		op = kind.String()
	}
	w, err := r.changing(ctx, op, kind, v)
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

// changing prepares a change whose kind is a value.
func (r *Engine) changing(ctx context.Context, op string, kind driver.ChangeKind, v any) (*Work, error) {
	switch kind {
	case driver.ChangeInsert:
		return r.Inserting(op, v)
	case driver.ChangeReplace:
		return r.Replacing(op, v)
	case driver.ChangeDelete:
		return r.Deleting(ctx, op, v, nil)
	}
	return nil, r.Invalid(op, tables.Key{}, fmt.Errorf("the kind of change is %d; it must be ChangeInsert, ChangeReplace or ChangeDelete", kind))
}
