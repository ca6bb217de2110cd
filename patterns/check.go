package patterns

import (
	"context"

	"github.com/tablepatterns/tablepatterns/tables"
)

// check is Repository.Check.
func (r *engine) check(ctx context.Context, v any) error {
	w, err := r.inserting("Check", v)
	if err != nil {
		return err
	}
	return r.checkInsert(ctx, w)
}

// checkUnder is Repository.CheckUnder.
func (r *engine) checkUnder(ctx context.Context, key tables.Key, v any) error {
	w, err := r.inserting("CheckUnder", v)
	if err != nil {
		return err
	}
	w.change.Key, w.change.standIn = key, true
	return r.checkInsert(ctx, w)
}

func (r *engine) checkInsert(ctx context.Context, w *work) error {
	if err := raw(r.table).Usable(); err != nil {
		return r.located(w, tables.Invalid("", err))
	}
	w.begin()
	w.change.DryRun = true
	if err := r.rehearse(ctx, w); err != nil {
		return r.located(w, err)
	}
	_, err := r.intentOf(ctx, w) // patterns refuse here what has no place outside
	return r.located(w, err)
}
