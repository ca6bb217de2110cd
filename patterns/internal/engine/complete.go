package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// completeAgain completes an entity whose change is planned again, since the entities that patterns have read may have
// changed.
func (r *Engine) completeAgain(ctx context.Context, w *Work) error {
	beside := slices.DeleteFunc(slices.Clone(r.completers), func(p *Pattern) bool { return p.Companions == nil })
	if len(beside) > 0 {
		w.Change.Stored, w.merged = nil, nil
	}
	if len(beside) == 0 {
		return nil
	}
	return r.completeBy(ctx, w, r.completers) // call all patterns again, since each must get the entity as the caller gave it
}

func (r *Engine) completeBy(ctx context.Context, w *Work, completers []*Pattern) error {
	if w.Change.Kind == driver.ChangeDelete || len(completers) == 0 {
		return nil
	}
	if w.given == nil {
		w.given, w.merges = w.Change.Entity, w.Change.State.Given
	}
	w.Change.State.Given = w.merges
	v := r.Codec.Copy(w.given)
	w.Change.Entity, w.Entity, w.edited = v, v, false
	var before tables.Properties // only a merge needs it; other kinds of change send all properties
	if w.Change.Kind == driver.ChangeMerge {
		var err error
		if before, err = r.Codec.Encode(v); err != nil {
			return err
		}
	}
	for _, p := range completers {
		if err := p.Complete(ctx, &w.Change); err != nil {
			return PatternError(p, err, tables.ErrInvalid)
		}
	}
	if w.Change.Kind != driver.ChangeMerge {
		return nil
	}
	return r.mergeCompleted(w, v, before)
}

// handBack copies the properties that patterns have set, and the written Meta, to the caller's value.
func (r *Engine) handBack(w *Work) {
	if w.given != nil {
		r.Codec.Assign(w.given, w.Entity)
	}
}

// mergeCompleted adds the properties that patterns have changed to the properties that a merge sends.
func (r *Engine) mergeCompleted(w *Work, v any, before tables.Properties) error {
	after, err := r.Codec.Encode(v)
	if err != nil {
		return err
	}
	var changed tables.Properties
	for _, p := range after {
		if before.Get(p.Name) != p.Value {
			changed = append(changed, p)
		}
	}
	for _, p := range before {
		if !after.Has(p.Name) {
			return tables.Invalid("", fmt.Errorf("the merge has to remove property %s, and a merge cannot; use Replace", p.Name))
		}
	}
	w.Change.State.Given = overlay(w.Change.State.Given, changed)
	return nil
}
