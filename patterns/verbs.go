package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/driver"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
)

// insert is Repository.Insert.
func (r *engine) insert(ctx context.Context, v any) error {
	w, err := r.inserting("Insert", v)
	if err != nil {
		return err
	}
	return r.run(ctx, w)
}

// inserting prepares the insert of an entity.
func (r *engine) inserting(op string, v any) (*work, error) {
	key, err := r.wholeKey(op, v)
	if err != nil {
		return nil, err
	}
	return &work{op: op, entity: v, change: change{Change: driver.Change{Kind: driver.ChangeInsert, Key: key, Entity: v}}}, nil
}

// wholeKey returns the key of an entity that is to be stored whole, and refuses what a projection left of one.
func (r *engine) wholeKey(op string, v any) (tables.Key, error) {
	if v == nil {
		return tables.Key{}, r.invalid(op, tables.Key{}, fmt.Errorf("the entity is nil"))
	}
	key := r.schema.Key(v)
	if meta := r.codec.Meta(v); stateOf(meta) != nil && stateOf(meta).Partial {
		return key, r.invalid(op, key, tables.ErrPartial)
	}
	return key, nil
}

// replace is Repository.Replace.
func (r *engine) replace(ctx context.Context, v any) error {
	w, err := r.replacing("Replace", v)
	if err != nil {
		return err
	}
	return r.run(ctx, w)
}

// replacing prepares the replacement of an entity that was read or written before.
func (r *engine) replacing(op string, v any) (*work, error) {
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
	return &work{op: op, entity: v, etag: meta.ETag, change: change{Change: driver.Change{Kind: driver.ChangeReplace, Key: key, Entity: v}, old: stateOf(meta)}}, nil
}

var errKeyChanged = errors.New("the entity's key has changed; insert it anew and delete the old one")

// known returns the Meta of an entity that was read or written before.
func (r *engine) known(op string, v any) (*tables.Meta, error) {
	if v == nil {
		return nil, r.invalid(op, tables.Key{}, fmt.Errorf("the entity is nil"))
	}
	meta := r.codec.Meta(v)
	if stateOf(meta) == nil || meta.ETag == "" {
		return nil, r.invalid(op, r.schema.Key(v), fmt.Errorf("the entity was not read before; read it, or use Upsert or the unconditional form"))
	}
	return meta, nil
}

func (r *engine) invalid(op string, key tables.Key, err error) error {
	e := tables.Invalid(op, err)
	e.Table, e.Key = r.table.Name(), tables.Loggable(pass, key)
	return e
}

// replaceUnconditional is Repository.ReplaceUnconditional.
func (r *engine) replaceUnconditional(ctx context.Context, v any) error {
	return r.overwrite(ctx, "ReplaceUnconditional", v, false)
}

// upsert is Repository.Upsert.
func (r *engine) upsert(ctx context.Context, v any) error {
	return r.overwrite(ctx, "Upsert", v, true)
}

func (r *engine) overwrite(ctx context.Context, op string, v any, insert bool) error {
	key, err := r.wholeKey(op, v)
	if err != nil {
		return err
	}
	return r.retry(ctx, func() (*work, error) {
		old, _, err := r.look(ctx, op, key)
		if err != nil {
			return nil, err
		}
		w := &work{op: op, entity: v, change: change{Change: driver.Change{Kind: driver.ChangeInsert, Key: key, Entity: v}}}
		switch {
		case old != nil:
			meta := r.codec.Meta(old)
			w.change.Kind, w.change.old, w.etag = driver.ChangeReplace, stateOf(meta), meta.ETag
		case !insert:
			return nil, &tables.Error{Op: op, Table: r.table.Name(), Key: key, Kind: tables.ErrNotFound}
		}
		return w, nil
	})
}

// retry reads and prepares a change, carries it out, and does so again while rivals come between, with jitter.
func (r *engine) retry(ctx context.Context, prepare func() (*work, error)) error {
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

// update is Repository.Update.
func (r *engine) update(ctx context.Context, key tables.Key, change func(any) error) (any, error) {
	if change == nil {
		return nil, r.invalid("Update", key, errors.New("there is no function that changes the entity"))
	}
	var v any
	err := r.retry(ctx, func() (*work, error) {
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

// delete is Repository.Delete.
func (r *engine) delete(ctx context.Context, v any) error {
	w, err := r.deleting(ctx, "Delete", v)
	if err != nil {
		return err
	}
	return r.run(ctx, w)
}

// deleting prepares the delete of an entity that was read or written before.
func (r *engine) deleting(ctx context.Context, op string, v any) (*work, error) {
	meta, err := r.known(op, v)
	if err != nil {
		return nil, err
	}
	w := &work{op: op, entity: v, etag: meta.ETag, change: change{Change: driver.Change{Kind: driver.ChangeDelete, Key: stateOf(meta).Key, Entity: v}, old: stateOf(meta)}}
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

// deleteUnconditional is Repository.DeleteUnconditional.
func (r *engine) deleteUnconditional(ctx context.Context, key tables.Key) error {
	const op = "DeleteUnconditional"
	return r.retry(ctx, func() (*work, error) {
		old, _, err := r.look(ctx, op, key)
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, &tables.Error{Op: op, Table: r.table.Name(), Key: tables.Loggable(pass, key), Kind: tables.ErrNotFound}
		}
		meta := r.codec.Meta(old)
		return &work{op: op, etag: meta.ETag, change: change{Change: driver.Change{Kind: driver.ChangeDelete, Key: key, Entity: old}, old: stateOf(meta)}}, nil
	})
}

// whole reads all of an entity that was read in part, and is ErrConflict when it has changed since.
func (r *engine) whole(ctx context.Context, op string, old *tables.State, etag azcore.ETag) (any, *storedRow, error) {
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

// merge is Repository.Merge.
func (r *engine) merge(ctx context.Context, v any, properties ...string) error {
	const op = "Merge"
	meta, err := r.known(op, v)
	if err != nil {
		return err
	}
	merged, err := r.merging(v, meta, properties)
	if err != nil {
		return r.invalid(op, stateOf(meta).Key, err)
	}
	w := &work{op: op, etag: meta.ETag, entity: r.codec.New(), change: change{Change: driver.Change{Kind: driver.ChangeMerge, Key: stateOf(meta).Key, Entity: v, Given: v}, old: stateOf(meta)}}
	w.change.shared().Given = merged
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
func (r *engine) mergeIntoWhole(ctx context.Context, w *work, meta *tables.Meta) error {
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
	if err := r.codec.Decode(overlay(plain, w.change.shared().Given), w.entity); err != nil {
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
func (r *engine) merging(v any, meta *tables.Meta, names []string) (tables.Properties, error) {
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
