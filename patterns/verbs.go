package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
)

// Insert adds an entity with all its rows. It is ErrExists when there is one with this key, and ErrDuplicate, naming
// the index in Error.Pattern, when another entity has one of its index keys; nothing is written then. Requests: 1.
func (r *Repository[T]) Insert(ctx context.Context, v *T) error {
	w, err := r.inserting("Insert", v)
	if err != nil {
		return err
	}
	return r.run(ctx, w)
}

// inserting prepares the insert of an entity.
func (r *Repository[T]) inserting(op string, v *T) (*work[T], error) {
	key, err := r.wholeKey(op, v)
	if err != nil {
		return nil, err
	}
	return &work[T]{op: op, entity: v, change: Change{Kind: ChangeInsert, Key: key, Entity: v}}, nil
}

// wholeKey returns the key of an entity that is to be stored whole, and refuses what a projection left of one.
func (r *Repository[T]) wholeKey(op string, v *T) (tables.Key, error) {
	if v == nil {
		return tables.Key{}, r.invalid(op, tables.Key{}, fmt.Errorf("the entity is nil"))
	}
	key := r.schema.Key(v)
	if meta := r.codec.Meta(v); stateOf(meta) != nil && stateOf(meta).Partial {
		return key, r.invalid(op, key, tables.ErrPartial)
	}
	return key, nil
}

// Replace writes the entity in the place of what it was read as. It is ErrConflict when the entity has changed since.
// Its key cannot change; index keys can. Requests: 1, and 1 more for an entity that was read through an index.
func (r *Repository[T]) Replace(ctx context.Context, v *T) error {
	w, err := r.replacing("Replace", v)
	if err != nil {
		return err
	}
	return r.run(ctx, w)
}

// replacing prepares the replacement of an entity that was read or written before.
func (r *Repository[T]) replacing(op string, v *T) (*work[T], error) {
	key, err := r.wholeKey(op, v)
	if err != nil {
		return nil, err
	}
	meta, err := r.known(op, v)
	if err != nil {
		return nil, err
	}
	if key != stateOf(meta).Key {
		return nil, r.invalid(op, stateOf(meta).Key, errKeyChanged)
	}
	return &work[T]{op: op, entity: v, etag: meta.ETag, change: Change{Kind: ChangeReplace, Key: key, Entity: v, old: stateOf(meta)}}, nil
}

var errKeyChanged = errors.New("the entity's key has changed; insert it anew and delete the old one")

// known returns the Meta of an entity that was read or written before.
func (r *Repository[T]) known(op string, v *T) (*tables.Meta, error) {
	if v == nil {
		return nil, r.invalid(op, tables.Key{}, fmt.Errorf("the entity is nil"))
	}
	meta := r.codec.Meta(v)
	if stateOf(meta) == nil || meta.ETag == "" {
		return nil, r.invalid(op, r.schema.Key(v), fmt.Errorf("the entity was not read before; read it, or use Upsert or the unconditional form"))
	}
	return meta, nil
}

func (r *Repository[T]) invalid(op string, key tables.Key, err error) error {
	e := tables.Invalid(op, err)
	e.Table, e.Key = r.table.Name(), tables.Loggable(pass, key)
	return e
}

// ReplaceUnconditional writes the entity in the place of whatever is there; changes of other writers are lost. It is
// ErrNotFound when there is none. Requests: 2, more under rivals.
func (r *Repository[T]) ReplaceUnconditional(ctx context.Context, v *T) error {
	return r.overwrite(ctx, "ReplaceUnconditional", v, false)
}

// Upsert inserts the entity or writes it in the place of whatever is there; changes of other writers are lost.
// Requests: 2, more under rivals. It reads first, since the old index rows must be known to be removed.
func (r *Repository[T]) Upsert(ctx context.Context, v *T) error {
	return r.overwrite(ctx, "Upsert", v, true)
}

func (r *Repository[T]) overwrite(ctx context.Context, op string, v *T, insert bool) error {
	key, err := r.wholeKey(op, v)
	if err != nil {
		return err
	}
	return r.retry(ctx, func() (*work[T], error) {
		old, _, err := r.look(ctx, op, key)
		if err != nil {
			return nil, err
		}
		w := &work[T]{op: op, entity: v, change: Change{Kind: ChangeInsert, Key: key, Entity: v}}
		switch {
		case old != nil:
			meta := r.codec.Meta(old)
			w.change.Kind, w.change.old, w.etag = ChangeReplace, stateOf(meta), meta.ETag
		case !insert:
			return nil, &tables.Error{Op: op, Table: r.table.Name(), Key: key, Kind: tables.ErrNotFound}
		}
		return w, nil
	})
}

// retry reads and prepares a change, carries it out, and does so again while rivals come between, with jitter.
func (r *Repository[T]) retry(ctx context.Context, prepare func() (*work[T], error)) error {
	for n := 0; ; n++ {
		w, err := prepare()
		if err != nil {
			return err
		}
		err = r.run(ctx, w)
		if err == nil || n+1 >= r.schema.MaxAttempts || !tables.LostRace(err) {
			return err
		}
		if err := backoff.Wait(ctx, n); err != nil {
			return err
		}
	}
}

// Update reads an entity, lets change edit it and replaces it, again from the start while rivals come between, at
// most Schema.MaxAttempts times. change may run several times and must not have effects of its own; its error ends
// the update, and nothing is written. The entity as written is returned. Requests: 2, more under rivals.
func (r *Repository[T]) Update(ctx context.Context, key tables.Key, change func(*T) error) (*T, error) {
	if change == nil {
		return nil, r.invalid("Update", key, errors.New("there is no function that changes the entity"))
	}
	var v *T
	err := r.retry(ctx, func() (*work[T], error) {
		var err error
		if v, err = r.get(ctx, "Update", key); err != nil {
			return nil, err
		}
		if err := change(v); err != nil {
			return nil, err
		}
		return r.replacing("Update", v)
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Delete removes the entity with all its rows. It is ErrConflict when the entity has changed since it was read.
// Requests: 1, and 1 more for an entity that was read through an index or a projection.
func (r *Repository[T]) Delete(ctx context.Context, v *T) error {
	w, err := r.deleting(ctx, "Delete", v)
	if err != nil {
		return err
	}
	return r.run(ctx, w)
}

// deleting prepares the delete of an entity that was read or written before.
func (r *Repository[T]) deleting(ctx context.Context, op string, v *T) (*work[T], error) {
	meta, err := r.known(op, v)
	if err != nil {
		return nil, err
	}
	w := &work[T]{op: op, entity: v, etag: meta.ETag, change: Change{Kind: ChangeDelete, Key: stateOf(meta).Key, Entity: v, old: stateOf(meta)}}
	if stateOf(meta).Partial {
		whole, _, err := r.whole(ctx, op, stateOf(meta), meta.ETag)
		if err != nil {
			return nil, err
		}
		m := r.codec.Meta(whole)
		w.change.Entity, w.change.old, w.etag = whole, stateOf(m), m.ETag
	}
	return w, nil
}

// DeleteUnconditional removes the entity whatever it is now. It is ErrNotFound when there is none. Requests: 2, more
// under rivals.
func (r *Repository[T]) DeleteUnconditional(ctx context.Context, key tables.Key) error {
	const op = "DeleteUnconditional"
	return r.retry(ctx, func() (*work[T], error) {
		old, _, err := r.look(ctx, op, key)
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, &tables.Error{Op: op, Table: r.table.Name(), Key: tables.Loggable(pass, key), Kind: tables.ErrNotFound}
		}
		meta := r.codec.Meta(old)
		return &work[T]{op: op, etag: meta.ETag, change: Change{Kind: ChangeDelete, Key: key, Entity: old, old: stateOf(meta)}}, nil
	})
}

// whole reads all of an entity that was read in part, and is ErrConflict when it has changed since.
func (r *Repository[T]) whole(ctx context.Context, op string, old *tables.State, etag azcore.ETag) (*T, *storedRow, error) {
	v, row, err := r.look(ctx, op, old.Key)
	if err != nil {
		return nil, nil, err
	}
	same := v != nil && row.ETag == etag
	switch {
	case v == nil:
	case old.Version != "":
		same = row.ETag == old.Version
	case old.Row != old.Key.Row:
		same = row.WriteID != "" && row.WriteID == old.WriteID // every write marks the entity's own row and its copies
	}
	if !same {
		return nil, nil, &tables.Error{Op: op, Table: r.table.Name(), Key: old.Key, Kind: tables.ErrConflict}
	}
	return v, row, nil
}

// Merge writes the named properties, all of v's when none are named, and leaves the entity's others as they are
// stored. It is ErrConflict when the entity has changed since it was read. An entity that was read through a
// projection must name them. Where a pattern cannot store some properties without the others, as encryption cannot, Merge
// is ErrInvalid. Requests: 2; 1 for an entity that was read whole in a repository without patterns. What an index holds
// follows from the whole entity.
func (r *Repository[T]) Merge(ctx context.Context, v *T, properties ...string) error {
	const op = "Merge"
	meta, err := r.known(op, v)
	if err != nil {
		return err
	}
	merged, err := r.merging(v, meta, properties)
	if err != nil {
		return r.invalid(op, stateOf(meta).Key, err)
	}
	w := &work[T]{op: op, etag: meta.ETag, entity: new(T), change: Change{Kind: ChangeMerge, Key: stateOf(meta).Key, Entity: v, Given: v, old: stateOf(meta), given: merged}}
	if len(r.patterns) > 0 || stateOf(meta).Partial {
		if err := r.mergeIntoWhole(ctx, w, meta); err != nil {
			return err
		}
	}
	if err := r.run(ctx, w); err != nil {
		return err
	}
	written := r.codec.Meta(w.entity)
	next := *stateOf(written)
	next.Partial = stateOf(meta).Partial // v still lacks what it was not read with
	meta.ETag = written.ETag
	tables.SetState(pass, meta, &next)
	return nil
}

// mergeIntoWhole makes the entity as the merge will leave it, for the patterns to follow.
func (r *Repository[T]) mergeIntoWhole(ctx context.Context, w *work[T], meta *tables.Meta) error {
	old, row, err := r.whole(ctx, w.op, stateOf(meta), meta.ETag)
	if err != nil {
		return err
	}
	m := r.codec.Meta(old)
	w.change.old, w.etag = stateOf(m), m.ETag
	w.base = row.Properties
	plain, err := r.codec.Encode(old)
	if err != nil {
		return r.invalid(w.op, stateOf(meta).Key, err)
	}
	if err := r.codec.Decode(overlay(plain, w.change.given), w.entity); err != nil {
		return r.primary.DecodeError(w.op, stateOf(meta).Key, err)
	}
	r.codec.SetKey(w.entity, stateOf(meta).Key)
	if r.schema.Key(w.entity) != stateOf(meta).Key {
		return r.invalid(w.op, stateOf(meta).Key, errKeyChanged)
	}
	w.change.Entity = w.entity
	return nil
}

// merging returns the properties to merge.
func (r *Repository[T]) merging(v *T, meta *tables.Meta, names []string) (tables.Properties, error) {
	for _, t := range r.transformers {
		if err := t.RefusesMerge(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.PatternName(), err)
		}
	}
	if stateOf(meta).Partial && len(names) == 0 {
		return nil, fmt.Errorf("it was read through a projection; name the properties to merge")
	}
	if !stateOf(meta).Partial && r.schema.Key(v) != stateOf(meta).Key {
		return nil, errKeyChanged
	}
	all, err := r.codec.Encode(v)
	if err != nil {
		return nil, err
	}
	if err := tables.CheckReserved(pass, all); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if !all.Has(name) {
			return nil, fmt.Errorf("property %s has no value to merge; only Replace removes a property", name)
		}
	}
	return slices.DeleteFunc(all, func(p tables.Property) bool { return !slices.Contains(names, p.Name) }), nil
}

func overlay(base, top tables.Properties) tables.Properties {
	out := slices.Clone(base)
	at := make(map[string]int, len(base))
	for i := range base {
		at[base[i].Name] = i
	}
	for _, p := range top {
		if i, ok := at[p.Name]; ok {
			out[i].Value = p.Value
		} else {
			out = append(out, p)
		}
	}
	return out
}

// stateOf returns what a repository remembers in a Meta, nil for nothing.
func stateOf(meta *tables.Meta) *tables.State { return tables.StateOf(pass, meta) }
