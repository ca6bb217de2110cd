package heterogeneous

import (
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/tables"
)

// attempts limits how often a change is retried on conflict.
const attempts = 10

// Modify changes properties of an entity whose type need not be known: change edits the bag of its properties, and what it
// has changed or added is merged under the ETag, again from the start after each conflict with another writer. Only Replace removes
// properties. change may run several times; its error ends Modify, and nothing is written.
//
// The change of an entity whose repository has patterns, or that is of an older version, goes through the repository, which
// keeps all in step: then the bag has the properties of the current version, and can get no others. An entity of a type that
// nobody here knows is changed as it is stored, unless a repository keeps its row in step with others, which is
// tables.ErrInvalid; what indexes of lists or other partitions hold of it cannot be told from the row, and is not followed.
//
// Requests: 2; through a repository 4; 2 or 4 more for each rival.
func (r *Registry) Modify(ctx context.Context, key tables.Key, change func(*tables.Entity) error) error {
	const op = "Modify"
	if change == nil {
		return tables.Invalidf(op, "the change function is nil")
	}
	entities := r.table.Entities()
	return backoff.Retry(ctx, attempts, func() (again bool, err error) {
		bag, err := entities.Get(ctx, key)
		if err != nil {
			return false, err
		}
		if t := r.resolve(key, bag.Properties); t != nil && !(t.alone() && t.current(bag.Properties)) {
			err = t.merge(ctx, key, change)
		} else {
			err = mergeBag(ctx, entities, bag, change)
		}
		return errors.Is(err, tables.ErrConflict) && !errors.Is(err, tables.ErrUnknownOutcome), err
	})
}

// mergeBag changes a row by itself. Requests: 1.
func mergeBag(ctx context.Context, entities *tables.Rows[tables.Entity], bag *tables.Entity, change func(*tables.Entity) error) error {
	changed, err := edit(bag, change)
	if err != nil || len(changed) == 0 {
		return err
	}
	bag.Properties = changed
	return entities.Merge(ctx, bag)
}

// edit lets change edit a copy of a bag, and returns what it has changed or added.
func edit(bag *tables.Entity, change func(*tables.Entity) error) (tables.Properties, error) {
	edited := bag.Clone()
	if err := change(edited); err != nil {
		return nil, err
	}
	if edited.Key != bag.Key {
		return nil, tables.Invalidf("Modify", "the entity's key has changed; insert it under the new key and delete the old entity")
	}
	for _, p := range bag.Properties {
		if edited.Get(p.Name).IsNull() {
			return nil, tables.Invalidf("Modify", "the change removed property %s, which Modify cannot do; use Replace", p.Name)
		}
	}
	var changed tables.Properties
	for _, p := range edited.Properties {
		if slices.Contains(bag.Properties, p) {
			continue
		}
		if p.Name == EntityType {
			return nil, tables.Invalidf("Modify", "the change modified EntityType, which Modify cannot do; use the type's repository or Upgrade")
		}
		changed = append(changed, p)
	}
	return changed, nil
}

// Delete removes an entity that was read by the registry, or by the repository of its type, under its ETag: through the
// repository, or, where the type is not known, the row by itself, which is tables.ErrInvalid where a repository keeps it in
// step with others. Requests: 1, and 1 more through a repository with patterns for what was read by the registry.
func (r *Registry) Delete(ctx context.Context, v any) error {
	if bag, ok := v.(*tables.Entity); ok && bag != nil {
		return r.table.Entities().Delete(ctx, bag)
	}
	t := r.typeOf(v)
	if t == nil {
		return tables.Invalidf("Delete", "a %T is not of a type of this registry; give its type to NewRegistry", v)
	}
	return t.remove(ctx, v)
}
