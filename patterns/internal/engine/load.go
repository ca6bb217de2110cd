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
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// readSystem reads one row for the library's own properties only. Requests: 1.
func readSystem(ctx context.Context, t *core.Table, key entity.Key) (*tablerow.Row, error) {
	return t.Get(ctx, "Get", key, map[string]int{})
}

// AsError returns the first error of the library in err's chain, nil for none.
func AsError(err error) *entity.Error {
	e, _ := errors.AsType[*entity.Error](err)
	return e
}

// load makes an entity from its own row or a copy. selected names the properties that the caller requested, kept those that the row stores;
// nil means all. It returns nil if the row was deleted since it was read.
func (r *Engine) load(ctx context.Context, table *core.Table, row *tablerow.Row, selected, kept []string) (any, error) {
	v, _, err := r.LoadStored(ctx, table, row, selected, kept)
	return v, err
}

// LoadStored makes an entity as load does, and also returns the row from which it was made, with the stored
// properties of all of the entity's rows. If a writer replaces the entity's further rows or blobs during the
// read, LoadStored reads everything again, up to Schema.MaxAttempts attempts.
func (r *Engine) LoadStored(ctx context.Context, table *core.Table, row *tablerow.Row, selected, kept []string) (any, *tablerow.Row, error) {
	if row.Problem != nil {
		return nil, nil, &entity.Error{Kind: entity.ErrGarbled, Err: row.Problem}
	}
	if selected != nil {
		selected = slices.Concat(selected, r.sealed())
	}
	for attempt := range r.Schema.MaxAttempts {
		v, read, err := r.loadOnce(ctx, table, row, selected, kept, r.Codec.Decode)
		if errors.Is(err, driver.ErrSkipped) {
			return nil, nil, nil
		}
		if !errors.Is(err, driver.ErrOutdated) {
			return v, read, err
		}
		again, fetchErr := table.Get(ctx, "Get", row.Key, r.Primary.Known)
		switch {
		case errors.Is(fetchErr, entity.ErrNotFound):
			return nil, nil, nil
		case fetchErr != nil:
			return nil, nil, fetchErr
		case again.Problem != nil:
			return nil, nil, &entity.Error{Kind: entity.ErrGarbled, Err: again.Problem}
		case again.ETag == row.ETag && row.Own.IsCopy, again.Own.Outside.Mark != "":
			return r.loadOwner(ctx, table, row, selected, kept, err)
		case again.ETag == row.ETag:
			return nil, nil, asGarbled(err)
		case again.Own.IsCopy != row.Own.IsCopy || again.Own.IsShared || again.Own.Primary != row.Own.Primary:
			return nil, nil, nil // the row now belongs to another entity
		}
		if selected != nil {
			again = again.With(again.Properties.Only(selected))
		}
		row = again
		if err := backoff.Wait(ctx, attempt); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, errReplaced(table, row.Key)
}

// errReplaced is returned if the entity was replaced during each attempt to read it.
func errReplaced(table *core.Table, key entity.Key) error {
	return &entity.Error{Op: "Get", Table: table.Name(), Key: key, Kind: entity.ErrConflict, Err: errors.New("concurrent writers replaced the entity during each attempt to read it; read it again")}
}

// asGarbled converts ErrOutdated to ErrGarbled if the row has not changed since it was read.
func asGarbled(err error) error {
	garbled := &entity.Error{Kind: entity.ErrGarbled, Err: err}
	if e := AsError(err); e != nil {
		garbled.Pattern, garbled.Err = e.Pattern, e.Err
	}
	garbled.Err = fmt.Errorf("a blob or row to which the entity refers is missing or has changed, although the entity has not: %v", garbled.Err) // %v hides ErrOutdated
	return garbled
}

// ErrNoLayout is the cause if a repository without a Layout reads an entity of several rows.
var ErrNoLayout = errors.New("the entity is spread over several rows, but the repository has no Layout; attach widentities.New")

// LoadReplaced makes the entity that an unconditional verb is about to overwrite or delete from its own row, as LoadOwn does. If the
// row cannot be decoded, it makes the entity of the properties that can be, so that the verb removes the row, and those copies whose
// keys follow from these properties. A copy is then removed only if it names the entity, since the keys may be those of other entities.
//
// It returns the error of a pattern: the row may be readable for a program with another key, or of a newer version.
func (r *Engine) LoadReplaced(ctx context.Context, op string, key entity.Key, row *tablerow.Row) (any, error) {
	v, _, err := r.LoadOwn(ctx, op, key, row)
	if e := AsError(err); e == nil || !e.OfRow || e.Pattern != "" {
		return v, err
	}
	v, _, err = r.loadOnce(ctx, r.Table, row, nil, nil, func(p entity.Properties, v any) error {
		for i := range p {
			_ = r.Codec.Decode(p[i:i+1], v) // leaves the field of this property as it is
		}
		return nil
	})
	if errors.Is(err, driver.ErrOutdated) {
		return nil, errReplaced(r.Table, key)
	}
	if err != nil {
		return nil, r.Primary.DecodeError(op, key, err)
	}
	known := priorOf(r.State(v))
	for _, x := range known.rows {
		if x.pattern != "" {
			known.Orphans = append(known.Orphans, x)
		}
	}
	known.rows = slices.DeleteFunc(known.rows, func(x noted) bool { return x.pattern != "" })
	return v, nil
}

// loadOnce is one attempt of LoadStored.
func (r *Engine) loadOnce(ctx context.Context, table *core.Table, row *tablerow.Row, selected, kept []string, decode func(entity.Properties, any) error) (any, *tablerow.Row, error) {
	key := row.Key
	if row.Own.IsCopy {
		key.Row = row.Own.Primary
	}
	if row.Own.Outside.Is {
		key.Partition = row.Own.Outside.Partition
	}
	read := *row
	if err := r.joinRows(ctx, table, &read, selected); err != nil {
		return nil, nil, err
	}
	partial := selected != nil || kept != nil
	properties, err := r.undoTransforms(ctx, driver.Reading{Key: key, Partial: partial}, read.Properties)
	if err != nil {
		return nil, nil, err
	}
	v, s := r.Codec.NewWithState()
	if err := decode(properties, v); err != nil {
		return nil, nil, err
	}
	r.Codec.Finish(row, key, v)
	*s = core.State{Key: key, Row: row.Key.Row, Incarnation: row.Own.Incarnation, WriteID: row.WriteID, Copies: row.Own.Copies, Carried: slices.Clone(row.Own.Later),
		Partial: partial, Owner: r}
	if version := azcore.ETag(row.Own.Outside.Version); row.Own.Outside.Is {
		r.stateElsewhere(s, version, row.Properties)
		if version != "" {
			r.Codec.Meta(v).ETag = version
		}
	}
	if !partial {
		known, err := r.Remember(v, key, &read)
		if err != nil {
			return nil, nil, err
		}
		s.Prior = known
	}
	s.Kept = s.Copies != "" || isCopy(s) || priorOf(s).several()
	core.SetState(r.Codec.Meta(v), s)
	return v, &read, nil
}

// stateElsewhere completes the state of an entity that was read through a settled copy in another partition. A copy with all properties is the current
// entity, except for the rows of a Layout, of which it says nothing. A projection does not say which version it is of.
func (r *Engine) stateElsewhere(s *core.State, version azcore.ETag, read entity.Properties) {
	switch {
	case version == "":
		s.Seen = slices.Clone(read)
	case r.Layout != nil:
		s.Version = version
	default:
		s.Current = true
	}
}

// undoTransforms converts stored properties into the properties of the entity.
func (r *Engine) undoTransforms(ctx context.Context, of driver.Reading, p entity.Properties) (entity.Properties, error) {
	if len(r.Transformers) == 0 {
		return p, nil
	}
	p = slices.Clone(p)
	for _, t := range slices.Backward(r.Transformers) {
		var err error
		if p, err = t.Transform.Load(ctx, of, p); err != nil {
			return nil, notAbsent(PatternError(t, err, entity.ErrGarbled))
		}
	}
	return p, nil
}

// notAbsent converts a pattern's ErrNotFound while it reads an existing entity into ErrGarbled. The missing object is
// not the entity itself: a caller that saw ErrNotFound would skip the entity, or insert it a second time.
func notAbsent(err error) error {
	if !errors.Is(err, entity.ErrNotFound) {
		return err
	}
	there := *AsError(err)
	there.Kind, there.Err = entity.ErrGarbled, fmt.Errorf("a blob or row to which the entity refers: %w", cmp.Or(there.Err, entity.ErrNotFound))
	return &there
}

// added reports whether a pattern can store a property for which the entities' type has no field.
func (r *Engine) added(property string) bool {
	return slices.ContainsFunc(r.Transformers, func(p *driver.Implementation) bool {
		return p.Transform.Adds != nil && p.Transform.Adds(property)
	})
}

// filterable rejects a condition on a property that rows do not store unchanged.
func (r *Engine) filterable(property string) error {
	for _, t := range r.Transformers {
		if t.Transform.Filterable != nil && !t.Transform.Filterable(property) {
			return fmt.Errorf("pattern %s does not store it unchanged, so the service cannot compare it; compare it in the program", t.Name)
		}
	}
	if r.Layout != nil && !r.Layout.Layout.Filterable(property) {
		return fmt.Errorf("pattern %s may store it in a further row, so the service cannot compare it; compare it in the program", r.Layout.Name)
	}
	return nil
}

// sealed returns the names of the properties that every copy must hold and every projection must read,
// because an authentication needs them.
func (r *Engine) sealed() []string {
	if r.seals == nil {
		return nil
	}
	return r.seals.Transform.Authentication.Properties
}

// keeps returns the properties that copies store if a pattern names these: the named and the sealed ones. Nil
// means all properties.
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

// loadCopy makes an entity from a copy, as load does. If a pattern authenticates copies, loadCopy also checks
// that the entity has a copy under this key. For a partial copy that does not prove this, it reads the current
// entity: if that does not exist, or has no copy under the key, the copy is stale or forged, and loadCopy
// returns nil.
func (r *Engine) loadCopy(ctx context.Context, table *core.Table, row *tablerow.Row, selected, kept []string) (any, error) {
	v, read, err := r.LoadStored(ctx, table, row, selected, kept)
	if v == nil || err != nil || r.seals == nil || !read.Own.IsCopy {
		return v, err // !read.Own.IsCopy: loadOwner has read the entity in place of the copy, and checked that it has the copy's key
	}
	s := r.State(v)
	if !s.Partial {
		if !r.belongsUnder(v, table, read.Key, read.Own.Outside.Is) {
			return nil, PatternError(r.seals, r.seals.Transform.Authentication.NotAuthentic, entity.ErrGarbled)
		}
		return v, nil
	}
	proven, err := r.seals.Transform.Authentication.ProvesCopy(ctx, driver.Reading{Key: s.Key, Partial: true}, (*tables.Table)(table), read.Key, read.Properties)
	switch {
	case err != nil:
		return nil, PatternError(r.seals, err, entity.ErrGarbled)
	case proven:
		return v, nil
	}
	whole, err := r.Get(ctx, "Get", s.Key)
	switch {
	case errors.Is(err, entity.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !r.belongsUnder(whole, table, read.Key, read.Own.Outside.Is):
		return nil, nil
	}
	return v, nil
}

// belongsUnder reports whether an entity has a copy under a key of a table. If the key function rejects the
// entity, the result is false.
func (r *Engine) belongsUnder(v any, table *core.Table, key entity.Key, outside bool) bool {
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
	_, copied, err := r.copyAt(v, table, key)
	return err == nil && copied != nil
}

// loadOwner reads the entity of an unchanged copy that refers to something missing, such as a blob: a newer
// write may have replaced or deleted the entity, and the intent that updates the copy waits for a worker. It
// returns the entity from its own row, projected like the copy; nil if the entity is gone or no longer requires
// the copy; and the error missing as ErrGarbled if the copy is of the entity's current version. Requests: 1,
// and those of reading the entity's further rows and blobs; again if writers replace the entity meanwhile.
func (r *Engine) loadOwner(ctx context.Context, table *core.Table, row *tablerow.Row, selected, kept []string, missing error) (any, *tablerow.Row, error) {
	key := entity.Key{Partition: row.Key.Partition, Row: row.Own.Primary}
	if row.Own.Outside.Is {
		key.Partition = row.Own.Outside.Partition
	}
	for attempt := range r.Schema.MaxAttempts {
		own, err := r.Table.Get(ctx, "Get", key, nil)
		switch {
		case errors.Is(err, entity.ErrNotFound):
			return nil, nil, nil
		case err != nil:
			return nil, nil, err
		case !r.Owns(own):
			return nil, nil, nil
		case row.Own.Outside.Is && row.Own.Outside.Mark == "" && string(own.ETag) == row.Own.Outside.Version, !row.Own.Outside.Is && own.WriteID == row.WriteID:
			return nil, nil, asGarbled(missing)
		}
		v, own, err := r.LoadStored(ctx, r.Table, own, nil, nil)
		if err != nil || v == nil {
			return nil, nil, err
		}
		if asks, err := r.asksFor(v, own, table, row); err != nil || !asks {
			return nil, nil, err
		}
		if selected == nil && kept == nil {
			return v, own, nil
		}
		if v, own, err = r.loadPart(ctx, own, selected, kept); !errors.Is(err, driver.ErrOutdated) {
			return v, own, err
		}
		if err := backoff.Wait(ctx, attempt); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, errReplaced(r.Table, key)
}

// loadPart makes an entity of those properties of its own row, which has all of them, that a copy keeps and the caller has selected.
func (r *Engine) loadPart(ctx context.Context, own *tablerow.Row, selected, kept []string) (any, *tablerow.Row, error) {
	part := own.With(own.Properties.Only(kept).Only(selected))
	part.Own.Layout = "" // own has the properties of the further rows
	return r.loadOnce(ctx, r.Table, part, selected, kept, r.Codec.Decode)
}

// asksFor reports whether an entity requires a copy under the key of copied. own is the entity's own row.
func (r *Engine) asksFor(v any, own *tablerow.Row, table *core.Table, copied *tablerow.Row) (bool, error) {
	if !copied.Own.Outside.Is {
		rows, err := r.rowsOf(CopiesOf(v), own.Key, own.Properties)
		return repeats(rows, copied.Key.Row), err
	}
	_, there, err := r.copyAt(v, table, copied.Key)
	return there != nil, err
}
