package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// sealed returns the names of the properties that every copy must hold and every projection must read,
// because an authentication needs them.
func (r *Engine) sealed() []string {
	if r.seals == nil {
		return nil
	}
	return r.seals.Transform.Authentication.Properties
}

// keeps returns the properties that copies store if a pattern asks for the named ones: these and the sealed
// ones. Nil means all properties.
func (r *Engine) keeps(names []string) []string {
	if names == nil || r.seals == nil {
		return names
	}
	return slices.Concat(names, r.sealed())
}

// sealCopies adds the sealed properties to all copies.
func (r *Engine) sealCopies() {
	if r.seals == nil {
		return
	}
	for _, p := range r.Copies {
		p.Copies = edited(p.Copies, func(c *driver.Copy) { c.Keep = r.keeps(c.Keep) })
	}
	for _, p := range r.Outside {
		p.Outside.Copies = edited(p.Outside.Copies, func(c *driver.OutsideCopy) { c.Keep = r.keeps(c.Keep) })
	}
}

// edited returns a function that calls copiesOf and applies edit to each copy.
func edited[C any](copiesOf func(any) ([]C, error), edit func(*C)) func(any) ([]C, error) {
	return func(v any) ([]C, error) {
		copies, err := copiesOf(v)
		copies = slices.Clone(copies) // the pattern may return the same slice again
		for i := range copies {
			edit(&copies[i])
		}
		return copies, err
	}
}

// loadCopy does for a copy what load does for the entity's own row. If a pattern authenticates copies, it
// also checks that the entity belongs under the copy's key. A partial copy without proof is compared with the
// current entity: if the entity is gone, or has no copy under the key, the copy is stale or forged, and
// loadCopy skips it.
func (r *Engine) loadCopy(ctx context.Context, table *tables.Table, row *StoredRow, selected, kept []string) (any, error) {
	v, read, err := r.LoadStored(ctx, table, row, selected, kept)
	if v == nil || err != nil || r.seals == nil {
		return v, err
	}
	s := r.State(v)
	if !s.Partial {
		if !r.belongsUnder(v, table, read.Key, read.Outside.Is) {
			return nil, PatternError(r.seals, r.seals.Transform.Authentication.NotAuthentic, tables.ErrGarbled)
		}
		return v, nil
	}
	proven, err := r.seals.Transform.Authentication.ProvesCopy(ctx, driver.Reading{Key: s.Key, Partial: true}, table, read.Key, read.Properties)
	switch {
	case err != nil:
		return nil, PatternError(r.seals, err, tables.ErrGarbled)
	case proven:
		return v, nil
	}
	entity, err := r.Get(ctx, "Get", s.Key)
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !r.belongsUnder(entity, table, read.Key, read.Outside.Is):
		return nil, nil
	}
	return v, nil
}

// belongsUnder reports whether an entity has a copy under a key of a table. If the key function rejects the
// entity, the result is false.
func (r *Engine) belongsUnder(v any, table *tables.Table, key tables.Key, outside bool) bool {
	if !outside {
		for _, p := range r.Copies {
			copies, err := p.Copies(v)
			for i := range copies {
				if err == nil && copies[i].RowKey == key.Row {
					return true
				}
			}
		}
		return false
	}
	for _, p := range r.Outside {
		if !p.Outside.Table.Same(table) {
			continue
		}
		if has, err := CopiesOf(v).has(p, key); err == nil && has {
			return true
		}
	}
	return false
}
