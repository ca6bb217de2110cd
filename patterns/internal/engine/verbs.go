package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/fields"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/telemetry"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// Insert implements Repository.Insert.
func (r *Engine) Insert(ctx context.Context, v any) error {
	return r.verb(ctx, "Insert", 1, func(context.Context) (*Work, error) { return r.Inserting("Insert", v) })
}

// Inserting prepares the insert of an entity.
func (r *Engine) Inserting(op string, v any) (*Work, error) {
	key, err := r.wholeKey(op, v)
	if err != nil {
		return nil, err
	}
	return &Work{Op: op, Entity: v, Change: driver.Change{Kind: driver.ChangeInsert, Key: key, Entity: v}}, nil
}

// wholeKey returns the key of an entity that is to be stored completely. It returns an error for an entity
// that was read through a projection.
func (r *Engine) wholeKey(op string, v any) (entity.Key, error) {
	if fields.IsNil(v) {
		return entity.Key{}, r.Invalid(op, entity.Key{}, fmt.Errorf("the entity is nil; give a pointer to a value"))
	}
	key := r.Schema.Key(v)
	if meta := r.Codec.Meta(v); core.StateOf(meta) != nil && core.StateOf(meta).Partial {
		return key, r.Invalid(op, key, core.ErrPartial)
	}
	return key, nil
}

// Replace implements Repository.Replace.
func (r *Engine) Replace(ctx context.Context, v any) error {
	return r.verb(ctx, "Replace", 1, func(context.Context) (*Work, error) { return r.Replacing("Replace", v) })
}

// Replacing prepares the replacement of an entity that was read or written before.
func (r *Engine) Replacing(op string, v any) (*Work, error) {
	key, err := r.wholeKey(op, v)
	if err != nil {
		return nil, err
	}
	meta, err := r.Known(op, v)
	if err != nil {
		return nil, err
	}
	if key != core.StateOf(meta).Key {
		return nil, r.Invalid(op, core.StateOf(meta).Key, errKeyChanged)
	}
	return &Work{Op: op, Entity: v, Etag: meta.ETag, Old: core.StateOf(meta), Change: driver.Change{Kind: driver.ChangeReplace, Key: key, Entity: v}}, nil
}

var errKeyChanged = errors.New("the entity's key has changed; insert it under the new key and delete the old entity")

// Known returns the Meta of an entity that was read or written before.
func (r *Engine) Known(op string, v any) (*entity.Meta, error) {
	if fields.IsNil(v) {
		return nil, r.Invalid(op, entity.Key{}, fmt.Errorf("the entity is nil; give a pointer to a value"))
	}
	meta := r.Codec.Meta(v)
	if core.StateOf(meta) == nil || meta.ETag == "" {
		return nil, r.Invalid(op, r.Schema.Key(v), fmt.Errorf("the entity was not read before; read it, or use Upsert or the unconditional form"))
	}
	return meta, nil
}

// Invalid returns ErrInvalid for an operation on an entity of the repository.
func (r *Engine) Invalid(op string, key entity.Key, err error) error {
	e := errs.Invalid(op, err)
	e.Table, e.Key = r.Table.Name(), errs.Loggable(key)
	return e
}

// ReplaceUnconditional implements Repository.ReplaceUnconditional.
func (r *Engine) ReplaceUnconditional(ctx context.Context, v any) error {
	return r.overwrite(ctx, "ReplaceUnconditional", v, false)
}

// Upsert implements Repository.Upsert.
func (r *Engine) Upsert(ctx context.Context, v any) error {
	return r.overwrite(ctx, "Upsert", v, true)
}

func (r *Engine) overwrite(ctx context.Context, op string, v any, insert bool) error {
	return r.verb(ctx, op, 0, func(ctx context.Context) (*Work, error) {
		key, err := r.wholeKey(op, v)
		if err != nil {
			return nil, err
		}
		if len(r.completers) == 0 { // else v is checked when it is complete
			if _, err := r.Codec.Encode(v); err != nil {
				return nil, r.Invalid(op, key, err)
			}
		}
		row, err := r.fetchOwn(ctx, op, key)
		if err != nil {
			return nil, err
		}
		if insert && row != nil && !r.Owns(row) {
			return nil, r.Invalid(op, key, errors.New("a row with this key exists that, by Schema.Prefix, Rows, Mine and Where, is not an entity of the repository; choose another key, or correct the schema"))
		}
		old, err := r.LoadReplaced(ctx, op, key, row)
		if err != nil {
			return nil, err
		}
		if old == nil && !insert {
			return nil, &entity.Error{Op: op, Table: r.Table.Name(), Key: key, Kind: entity.ErrNotFound}
		}
		return r.Overwriting(op, key, v, old), nil
	})
}

// Overwriting prepares the replacement of the stored entity, which is old, by v. If old is nil, it prepares an
// insert of v.
func (r *Engine) Overwriting(op string, key entity.Key, v, old any) *Work {
	w := &Work{Op: op, Entity: v, Change: driver.Change{Kind: driver.ChangeInsert, Key: key, Entity: v}}
	if old != nil {
		meta := r.Codec.Meta(old)
		w.Change.Kind, w.Old, w.Etag = driver.ChangeReplace, core.StateOf(meta), meta.ETag
	}
	return w
}

// verb runs one operation: it calls prepare, which may read, and makes the change that prepare returns. After a
// conflict it waits, with jitter, and does both again, up to the given number of attempts. Telemetry records
// all attempts as one operation. attempts is 0 for Schema.MaxAttempts.
func (r *Engine) verb(ctx context.Context, op string, attempts int, prepare func(context.Context) (*Work, error)) error {
	if r == nil {
		return ErrNil(op)
	}
	attempts = cmp.Or(attempts, r.Schema.MaxAttempts)
	inner, span := r.Table.Account().Telemetry().Begin(ctx, telemetry.Tables, op, r.Table.Name())
	err := telemetry.ErrPanicked // until a callback of the program has returned
	defer func() { span.End(err) }()
	err = backoff.Retry(inner, attempts, func() (again bool, err error) {
		w, err := prepare(inner)
		if err != nil {
			return false, err
		}
		err = r.Run(inner, w)
		e := AsError(err)
		return e != nil && e.Pattern == "" && Lost(err), err
	})
	return err
}

// Update implements Repository.Update.
func (r *Engine) Update(ctx context.Context, key entity.Key, change func(any) error) (any, error) {
	if change == nil && r != nil {
		return nil, errs.Wiringf("Update", r.Table.Name(), "the change function is nil; give one")
	}
	var v any
	err := r.verb(ctx, "Update", 0, func(ctx context.Context) (*Work, error) {
		var err error
		if v, err = r.Get(ctx, "Update", key); err != nil {
			return nil, err
		}
		if err := change(v); err != nil {
			return nil, err
		}
		return r.Replacing("Update", v)
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Delete implements Repository.Delete.
func (r *Engine) Delete(ctx context.Context, v any) error {
	return r.verb(ctx, "Delete", 1, func(ctx context.Context) (*Work, error) { return r.Deleting(ctx, "Delete", v, nil) })
}

// Deleting prepares the delete of an entity that was read or written before.
func (r *Engine) Deleting(ctx context.Context, op string, v any, fetched Fetched) (*Work, error) {
	meta, err := r.Known(op, v)
	if err != nil {
		return nil, err
	}
	w := &Work{Op: op, Entity: v, Etag: meta.ETag, Old: core.StateOf(meta), Change: driver.Change{Kind: driver.ChangeDelete, Key: core.StateOf(meta).Key, Entity: v}}
	if core.StateOf(meta).Partial {
		whole, _, err := r.whole(ctx, op, core.StateOf(meta), meta.ETag, fetched)
		if err != nil {
			return nil, err
		}
		m := r.Codec.Meta(whole)
		w.Change.Entity, w.Old, w.Etag = whole, core.StateOf(m), m.ETag
	}
	return w, nil
}

// DeleteUnconditional implements Repository.DeleteUnconditional.
func (r *Engine) DeleteUnconditional(ctx context.Context, key entity.Key) error {
	const op = "DeleteUnconditional"
	return r.verb(ctx, op, 0, func(ctx context.Context) (*Work, error) {
		row, err := r.fetchOwn(ctx, op, key)
		if err != nil {
			return nil, err
		}
		old, err := r.LoadReplaced(ctx, op, key, row)
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, &entity.Error{Op: op, Table: r.Table.Name(), Key: errs.Loggable(key), Kind: entity.ErrNotFound}
		}
		meta := r.Codec.Meta(old)
		return &Work{Op: op, Etag: meta.ETag, Old: core.StateOf(meta), Change: driver.Change{Kind: driver.ChangeDelete, Key: key, Entity: old}}, nil
	})
}

// whole reads an entity with all its properties, given the state old in which it was read before. It returns
// ErrConflict if the entity has changed since.
func (r *Engine) whole(ctx context.Context, op string, old *core.State, etag azcore.ETag, fetched Fetched) (any, *tablerow.Row, error) {
	row, known := fetched[old.Key]
	var err error
	if !known {
		row, err = r.fetchOwn(ctx, op, old.Key)
	}
	var v any
	if err == nil {
		v, row, err = r.LoadOwn(ctx, op, old.Key, row)
	}
	if err != nil {
		return nil, nil, err
	}
	same := v != nil && row.ETag == etag
	switch {
	case v == nil:
	case old.Version != "":
		same = row.ETag == old.Version
	case old.Seen != nil:
		same = row.Own.Incarnation == old.Incarnation && holdAll(row.Properties, old.Seen)
	case !old.Current && old.Row != old.Key.Row:
		same = row.WriteID != "" && row.WriteID == old.WriteID // etag is that of a copy, not of the own row, so compare write IDs
	}
	if !same {
		return nil, nil, &entity.Error{Op: op, Table: r.Table.Name(), Key: old.Key, Kind: entity.ErrConflict}
	}
	return v, row, nil
}

// Merge implements Repository.Merge.
func (r *Engine) Merge(ctx context.Context, v any, properties ...string) error {
	return r.verb(ctx, "Merge", 1, func(ctx context.Context) (*Work, error) { return r.Merging(ctx, "Merge", v, properties, nil) })
}

// Merging prepares the merge of properties into an entity that was read or written before.
func (r *Engine) Merging(ctx context.Context, op string, v any, properties []string, fetched Fetched) (*Work, error) {
	meta, merged, err := r.Merged(op, v, properties)
	if err != nil {
		return nil, err
	}
	w := &Work{Op: op, Etag: meta.ETag, Entity: r.Codec.New(), Old: core.StateOf(meta), Change: driver.Change{Kind: driver.ChangeMerge, Key: core.StateOf(meta).Key, Entity: v, Given: v}}
	w.State = &driver.ChangeState{Given: merged}
	if len(r.Patterns) > 0 || core.StateOf(meta).Partial {
		if err := r.mergeIntoWhole(ctx, w, meta, fetched); err != nil {
			return nil, err
		}
	}
	w.written = func() {
		written := r.Codec.Meta(w.Entity)
		next := *core.StateOf(written)
		next.Partial = core.StateOf(meta).Partial // v still lacks the properties that its projection did not read
		meta.ETag = written.ETag
		core.SetState(meta, &next)
		if len(w.completed) > 0 {
			r.Codec.Assign(v, w.Entity, w.completed...)
		}
	}
	return w, nil
}

// mergeIntoWhole sets w.Entity to the entity as the merge will store it, which the patterns get.
func (r *Engine) mergeIntoWhole(ctx context.Context, w *Work, meta *entity.Meta, fetched Fetched) error {
	old, row, err := r.whole(ctx, w.Op, core.StateOf(meta), meta.ETag, fetched)
	if err != nil {
		return err
	}
	m := r.Codec.Meta(old)
	w.Old, w.Etag = core.StateOf(m), m.ETag
	w.base = row.Properties
	plain, err := r.Codec.Encode(old)
	if err != nil {
		return r.Invalid(w.Op, core.StateOf(meta).Key, err)
	}
	if err := r.Codec.Decode(overlay(plain, w.State.Given), w.Entity); err != nil {
		return r.Primary.DecodeError(w.Op, core.StateOf(meta).Key, err)
	}
	r.Codec.SetKey(w.Entity, core.StateOf(meta).Key)
	if r.Schema.Key(w.Entity) != core.StateOf(meta).Key {
		return r.Invalid(w.Op, core.StateOf(meta).Key, errKeyChanged)
	}
	w.Change.Entity = w.Entity
	return nil
}

// Merged returns the Meta of an entity that was read or written before, and the properties that a merge of v sends.
func (r *Engine) Merged(op string, v any, names []string) (*entity.Meta, entity.Properties, error) {
	meta, err := r.Known(op, v)
	if err != nil {
		return nil, nil, err
	}
	given, err := r.merged(v, core.StateOf(meta), names)
	if err != nil {
		return nil, nil, r.Invalid(op, core.StateOf(meta).Key, err)
	}
	return meta, given, nil
}

func (r *Engine) merged(v any, old *core.State, names []string) (entity.Properties, error) {
	for _, t := range r.Transformers {
		if err := t.Transform.RefusesMerge; err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	if old.Partial && len(names) == 0 {
		return nil, fmt.Errorf("the entity was read through a projection; name the properties to merge")
	}
	if !old.Partial && r.Schema.Key(v) != old.Key {
		return nil, errKeyChanged
	}
	given, err := r.Codec.EncodeMerge(v, names)
	if err != nil {
		return nil, err
	}
	return given, core.CheckReserved(given)
}

func overlay(base, top entity.Properties) entity.Properties {
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

// Check implements Repository.Check.
func (r *Engine) Check(ctx context.Context, v any) error {
	if r == nil {
		return ErrNil("Check")
	}
	w, err := r.Inserting("Check", v)
	if err != nil {
		return err
	}
	return r.checkInsert(ctx, w)
}

// CheckUnder implements Host.CheckUnder.
func (r *Engine) CheckUnder(ctx context.Context, key entity.Key, v any) error {
	w, err := r.Inserting("CheckUnder", v)
	if err != nil {
		return err
	}
	w.Change.Key, w.standIn = key, true
	return r.checkInsert(ctx, w)
}

func (r *Engine) checkInsert(ctx context.Context, w *Work) error {
	s := r.NewSet(w)
	if err := r.Table.Usable(); err != nil {
		return w.Located(errs.Invalid("", err))
	}
	w.Begin()
	w.Change.DryRun = true
	if err := s.preflight(ctx); err != nil {
		return err
	}
	_, err := s.Intent(ctx) // patterns return an error here for an entity that they cannot store outside
	return err
}

// Applied is one change of Host.Apply.
type Applied struct {
	Engine      *Engine
	Kind        driver.ChangeKind
	Value       any
	Incarnation string // of an insert; "" makes a new one
}

// Apply makes changes of entities of one partition of a table, with the rows of beside, in one transaction.
func Apply(ctx context.Context, changes []Applied, beside *driver.Beside) error {
	s := &Set{table: changes[0].Engine.Table}
	for i, c := range changes {
		op := "Apply"
		if c.Kind <= driver.ChangeDelete {
			op = c.Kind.String()
		}
		w, err := c.Engine.changing(ctx, op, c.Kind, c.Value)
		if err != nil {
			return err
		}
		w.incarnation, w.engine = c.Incarnation, c.Engine
		if len(changes) > 1 {
			w.number = i + 1
		}
		if err = s.admit(w); err == nil && !c.Engine.Table.Same(s.table) {
			err = fmt.Errorf("the entity is in table %s, and the first one in table %s; all changes of a transaction must be in one table", c.Engine.Table.Name(), s.table.Name())
		}
		if err == nil && i == 0 {
			w.beside = beside
			_, err = besideWrites(beside)
		}
		if err != nil {
			return c.Engine.Invalid(w.Op, w.Change.Key, err)
		}
		s.own = append(s.own, w)
	}
	s.members = s.own
	return s.Run(ctx)
}

// changing prepares a change of the given kind.
func (r *Engine) changing(ctx context.Context, op string, kind driver.ChangeKind, v any) (*Work, error) {
	switch kind {
	case driver.ChangeInsert:
		return r.Inserting(op, v)
	case driver.ChangeReplace:
		return r.Replacing(op, v)
	case driver.ChangeDelete:
		return r.Deleting(ctx, op, v, nil)
	}
	return nil, r.Invalid(op, entity.Key{}, fmt.Errorf("the kind of change is %d; it must be ChangeInsert, ChangeReplace or ChangeDelete", kind))
}
