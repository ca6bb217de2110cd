package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
func (r *Repository[T]) wholeKey(op string, v *T) (Key, error) {
	if v == nil {
		return Key{}, r.invalid(op, Key{}, fmt.Errorf("the entity is nil"))
	}
	key := r.schema.Key(v)
	if meta := r.primary.codec.meta(v); meta.state != nil && meta.state.partial {
		return key, r.invalid(op, key, errPartial())
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
	if key != meta.state.key {
		return nil, r.invalid(op, meta.state.key, errKeyChanged)
	}
	return &work[T]{op: op, entity: v, etag: meta.ETag, change: Change{Kind: ChangeReplace, Key: key, Entity: v, old: meta.state}}, nil
}

var errKeyChanged = errors.New("the entity's key has changed; insert it anew and delete the old one")

// known returns the Meta of an entity that was read or written before.
func (r *Repository[T]) known(op string, v *T) (*Meta, error) {
	if v == nil {
		return nil, r.invalid(op, Key{}, fmt.Errorf("the entity is nil"))
	}
	meta := r.primary.codec.meta(v)
	if meta.state == nil || meta.ETag == "" {
		return nil, r.invalid(op, r.schema.Key(v), fmt.Errorf("the entity was not read before; read it, or use Upsert or the unconditional form"))
	}
	return meta, nil
}

func (r *Repository[T]) invalid(op string, key Key, err error) error {
	e := invalid(op, err)
	e.Table, e.Key = r.table.name, loggable(key)
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
			meta := r.primary.codec.meta(old)
			w.change.Kind, w.change.old, w.etag = ChangeReplace, meta.state, meta.ETag
		case !insert:
			return nil, &Error{Op: op, Table: r.table.name, Key: key, Kind: ErrNotFound}
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
		if err == nil || n+1 >= r.schema.MaxAttempts || !LostRace(err) {
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
func (r *Repository[T]) Update(ctx context.Context, key Key, change func(*T) error) (*T, error) {
	if change == nil {
		return nil, r.invalid("Update", key, errors.New("there is no function that changes the entity"))
	}
	var v *T
	err := r.retry(ctx, func() (*work[T], error) {
		var err error
		if v, err = r.primary.get(ctx, "Update", key); err != nil {
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
	w := &work[T]{op: op, entity: v, etag: meta.ETag, change: Change{Kind: ChangeDelete, Key: meta.state.key, Entity: v, old: meta.state}}
	if meta.state.partial {
		whole, _, err := r.whole(ctx, op, meta)
		if err != nil {
			return nil, err
		}
		m := r.primary.codec.meta(whole)
		w.change.Entity, w.change.old, w.etag = whole, m.state, m.ETag
	}
	return w, nil
}

// DeleteUnconditional removes the entity whatever it is now. It is ErrNotFound when there is none. Requests: 2, more
// under rivals.
func (r *Repository[T]) DeleteUnconditional(ctx context.Context, key Key) error {
	const op = "DeleteUnconditional"
	return r.retry(ctx, func() (*work[T], error) {
		old, _, err := r.look(ctx, op, key)
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, &Error{Op: op, Table: r.table.name, Key: loggable(key), Kind: ErrNotFound}
		}
		meta := r.primary.codec.meta(old)
		return &work[T]{op: op, etag: meta.ETag, change: Change{Kind: ChangeDelete, Key: key, Entity: old, old: meta.state}}, nil
	})
}

// whole reads all of an entity that was read in part, and is ErrConflict when it has changed since.
func (r *Repository[T]) whole(ctx context.Context, op string, meta *Meta) (*T, *storedRow, error) {
	v, row, err := r.look(ctx, op, meta.state.key)
	if err != nil {
		return nil, nil, err
	}
	same := v != nil && row.etag == meta.ETag
	switch {
	case v == nil:
	case meta.state.version != "":
		same = row.etag == meta.state.version
	case meta.state.row != meta.state.key.Row:
		same = row.writeID != "" && row.writeID == meta.state.writeID // every write marks the entity's own row and its copies
	}
	if !same {
		return nil, nil, &Error{Op: op, Table: r.table.name, Key: meta.state.key, Kind: ErrConflict}
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
		return r.invalid(op, meta.state.key, err)
	}
	w := &work[T]{op: op, etag: meta.ETag, entity: new(T), change: Change{Kind: ChangeMerge, Key: meta.state.key, Entity: v, Given: v, old: meta.state, given: merged}}
	if len(r.patterns) > 0 || meta.state.partial {
		if err := r.mergeIntoWhole(ctx, w, meta); err != nil {
			return err
		}
	}
	if err := r.run(ctx, w); err != nil {
		return err
	}
	written := r.primary.codec.meta(w.entity)
	next := *written.state
	next.partial = meta.state.partial // v still lacks what it was not read with
	meta.ETag, meta.state = written.ETag, &next
	return nil
}

// mergeIntoWhole makes the entity as the merge will leave it, for the patterns to follow.
func (r *Repository[T]) mergeIntoWhole(ctx context.Context, w *work[T], meta *Meta) error {
	old, row, err := r.whole(ctx, w.op, meta)
	if err != nil {
		return err
	}
	m := r.primary.codec.meta(old)
	w.change.old, w.etag = m.state, m.ETag
	w.base = row.properties
	plain, err := r.primary.codec.Encode(old)
	if err != nil {
		return r.invalid(w.op, meta.state.key, err)
	}
	if err := r.primary.codec.Decode(overlay(plain, w.change.given), w.entity); err != nil {
		return r.primary.decodeError(w.op, meta.state.key, err)
	}
	r.primary.codec.setKey(w.entity, meta.state.key)
	if r.schema.Key(w.entity) != meta.state.key {
		return r.invalid(w.op, meta.state.key, errKeyChanged)
	}
	w.change.Entity = w.entity
	return nil
}

// merging returns the properties to merge.
func (r *Repository[T]) merging(v *T, meta *Meta, names []string) (Properties, error) {
	for _, t := range r.transformers {
		if err := t.RefusesMerge(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.PatternName(), err)
		}
	}
	if meta.state.partial && len(names) == 0 {
		return nil, fmt.Errorf("it was read through a projection; name the properties to merge")
	}
	if !meta.state.partial && r.schema.Key(v) != meta.state.key {
		return nil, errKeyChanged
	}
	all, err := r.primary.codec.Encode(v)
	if err != nil {
		return nil, err
	}
	if err := checkReserved(all); err != nil {
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
	return slices.DeleteFunc(all, func(p Property) bool { return !slices.Contains(names, p.Name) }), nil
}

func overlay(base, top Properties) Properties {
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
