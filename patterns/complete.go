package patterns

import (
	"context"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Completer sets properties of an entity that follow from other entities, such as a copy of another one's properties, before the
// entity is stored. What it has set can be outdated by the time the entity is committed, so a Completer is an
// IntentContributor or a CompanionContributor as well:
//
//   - as an IntentContributor it looks again in Reconcile, which comes after that of all other patterns: what finds the
//     entity by an index finds it from then on,
//   - as a CompanionContributor it writes what it has read in the entity's own transaction, under the ETag that it was read
//     with; it completes the entity again whenever the change is planned again.
type Completer interface {
	Rememberer
	// Complete sets properties of change.Entity, also where the caller has set others. It may read. It is not called for a
	// delete. What it learns for the other calls about the change, it keeps with change.Note. Each call gets the entity as the
	// caller gave it, in a value of its own; the caller sees what was set once the change is made.
	Complete(ctx context.Context, change *Change) error
}

// Note keeps something about the change for later calls of the same pattern.
func (c *Change) Note(pattern string, v any) {
	if c.notes == nil {
		c.notes = map[string]any{}
	}
	c.notes[pattern] = v
}

// Noted returns what the pattern noted last about the change, nil for nothing.
func (c *Change) Noted(pattern string) any { return c.notes[pattern] }

// complete has the Completers complete an entity, for the first time.
func (r *engine) complete(ctx context.Context, w *work) error {
	return r.completeBy(ctx, w, r.completers)
}

// completeAgain completes an entity whose change is planned again, since what a Completer has read may be what has changed.
func (r *engine) completeAgain(ctx context.Context, w *work) error {
	beside := slices.DeleteFunc(slices.Clone(r.completers), func(p Completer) bool {
		_, writes := p.(CompanionContributor)
		return !writes
	})
	if len(beside) > 0 {
		w.change.Stored, w.merged = nil, nil
	}
	return r.completeBy(ctx, w, beside)
}

func (r *engine) completeBy(ctx context.Context, w *work, completers []Completer) error {
	if w.change.Kind == ChangeDelete || len(completers) == 0 {
		return nil
	}
	if w.given == nil {
		w.given = w.change.Entity
	}
	v := r.codec.Copy(w.given)
	w.change.Entity, w.entity = v, v
	before, err := r.givenOf(w, v)
	if err != nil {
		return err
	}
	for _, p := range completers {
		if err := p.Complete(ctx, &w.change); err != nil {
			return patternError(p, err, tables.ErrInvalid)
		}
	}
	if w.change.Kind != ChangeMerge {
		return nil
	}
	return r.mergeCompleted(w, v, before)
}

// handBack shows the caller the entity as the Completers have left it, and as it was written.
func (r *engine) handBack(w *work) {
	if w.given != nil {
		r.codec.Assign(w.given, w.entity)
	}
}

// givenOf returns the properties of an entity that is merged, nil for the other kinds of change, which send all properties.
func (r *engine) givenOf(w *work, v any) (tables.Properties, error) {
	if w.change.Kind != ChangeMerge {
		return nil, nil
	}
	return r.codec.Encode(v)
}

// mergeCompleted adds what the Completers have changed to what a merge sends.
func (r *engine) mergeCompleted(w *work, v any, before tables.Properties) error {
	after, err := r.codec.Encode(v)
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
	w.change.given = overlay(w.change.given, changed)
	return nil
}

// isCompleter is 1 for a pattern that completes entities, which are reconciled last.
func isCompleter(p IntentContributor) int {
	if _, is := p.(Completer); is {
		return 1
	}
	return 0
}
