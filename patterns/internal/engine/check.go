package engine

import (
	"context"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Check implements Repository.Check.
func (r *Engine) Check(ctx context.Context, v any) error {
	w, err := r.Inserting("Check", v)
	if err != nil {
		return err
	}
	return r.checkInsert(ctx, w)
}

// CheckUnder implements Host.CheckUnder.
func (r *Engine) CheckUnder(ctx context.Context, key tables.Key, v any) error {
	w, err := r.Inserting("CheckUnder", v)
	if err != nil {
		return err
	}
	w.Change.Key, w.Change.standIn = key, true
	return r.checkInsert(ctx, w)
}

func (r *Engine) checkInsert(ctx context.Context, w *Work) error {
	if err := Raw(r.Table).Usable(); err != nil {
		return r.Located(w, tables.Invalid("", err))
	}
	w.Begin()
	w.Change.DryRun = true
	s := r.NewSet(w)
	if err := s.preflight(ctx); err != nil {
		return err
	}
	_, err := s.Intent(ctx) // patterns return an error here for an entity that they cannot store outside
	return err
}
