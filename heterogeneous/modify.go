package heterogeneous

import (
	"context"
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// attempts limits how often a change is retried on conflict.
const attempts = 10

// Modify changes properties of an entity; the program need not know its type. change edits the bag of the
// entity's properties, and Modify merges the properties that change has changed or added, under the entity's
// ETag. After a conflict Modify starts again, at most 10 times in all. It cannot remove properties; only
// Replace does. change may run several times; if it returns an error, Modify returns it and writes nothing.
//
// If the entity's repository has patterns beside the Type, or the entity is of an older version, Modify changes it
// through the repository, which also writes its patterns. Then the bag has the properties of the current version, and
// change cannot add others. Modify changes an entity of an unknown type in its own row. It returns tables.ErrInvalid
// if a repository stores further rows of the entity in its partition. The own row does not show in which lists the
// entity is, or whether it has copies in other partitions: Modify does not update these lists and copies.
//
// Requests: 2; through a repository 4; 2 or 4 more for each conflict.
func (r *Registry) Modify(ctx context.Context, key tables.Key, change func(*tables.Entity) error) error {
	const op = "Modify"
	if change == nil {
		return errs.Wiringf(op, "", "the change function is nil; give one")
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

// mergeBag changes an entity's own row without its repository. Requests: 1.
func mergeBag(ctx context.Context, entities *tables.Rows[tables.Entity], bag *tables.Entity, change func(*tables.Entity) error) error {
	changed, err := edit(bag, change)
	if err != nil || len(changed) == 0 {
		return err
	}
	bag.Properties = changed
	return entities.Merge(ctx, bag)
}

// edit calls change with a copy of a bag, and returns the properties that it has changed or added.
func edit(bag *tables.Entity, change func(*tables.Entity) error) (tables.Properties, error) {
	edited := bag.Clone()
	if err := change(edited); err != nil {
		return nil, err
	}
	if edited.Key != bag.Key {
		return nil, errs.Invalidf("Modify", "the change modified the entity's key, which Modify cannot do; insert it under the new key and delete the old entity")
	}
	for _, p := range bag.Properties {
		if edited.Get(p.Name).IsNull() {
			return nil, errs.Invalidf("Modify", "the change removed property %s, which Modify cannot do; use Replace", p.Name)
		}
	}
	var changed tables.Properties
	for _, p := range edited.Properties {
		if slices.Contains(bag.Properties, p) {
			continue
		}
		if p.Name == EntityType {
			return nil, errs.Invalidf("Modify", "the change modified EntityType, which Modify cannot do; use the type's repository or Upgrade")
		}
		changed = append(changed, p)
	}
	return changed, nil
}

// Delete deletes an entity that was read by the registry or by the repository of its type, under its ETag. The
// repository deletes it with all its rows. An entity of an unknown type is deleted as a single row; Delete returns
// tables.ErrInvalid if a repository stores further rows of that entity. Requests: 2; 1 for an entity that its
// repository has read, or of an unknown type.
func (r *Registry) Delete(ctx context.Context, v any) error {
	if bag, ok := v.(*tables.Entity); ok && bag != nil {
		return r.table.Entities().Delete(ctx, bag)
	}
	t := r.typeOf(v)
	if t == nil {
		return errs.Wiringf("Delete", "", "a %T is not of a type of this registry; give its type to NewRegistry", v)
	}
	return t.remove(ctx, v)
}
