package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// load makes an entity from its own row or a copy. selected names the properties that the caller requested, kept those that the row stores;
// nil means all. It returns nil if the row was deleted since it was read.
func (r *Engine) load(ctx context.Context, table *tables.Table, row *StoredRow, selected, kept []string) (any, error) {
	v, _, err := r.LoadStored(ctx, table, row, selected, kept)
	return v, err
}

// LoadStored does what load does, and also returns the row from which the entity was made, with the stored
// properties of all its rows. If the content of further rows or of blobs is replaced during the read, it
// reads everything again.
func (r *Engine) LoadStored(ctx context.Context, table *tables.Table, row *StoredRow, selected, kept []string) (any, *StoredRow, error) {
	if row.Problem != nil {
		return nil, nil, &tables.Error{Kind: tables.ErrGarbled, Err: row.Problem}
	}
	if selected != nil {
		selected = slices.Concat(selected, r.sealed())
	}
	for attempt := range r.Schema.MaxAttempts {
		v, read, err := r.loadOnce(ctx, table, row, selected, kept)
		if errors.Is(err, driver.ErrSkipped) {
			return nil, nil, nil
		}
		if !errors.Is(err, driver.ErrOutdated) {
			return v, read, err
		}
		again, fetchErr := Fetch(ctx, table, "Get", row.Key, r.Primary.Known)
		switch {
		case errors.Is(fetchErr, tables.ErrNotFound):
			return nil, nil, nil
		case fetchErr != nil:
			return nil, nil, fetchErr
		case again.ETag == row.ETag && row.IsCopy:
			return r.loadOwner(ctx, table, row, selected, kept, err)
		case again.ETag == row.ETag:
			return nil, nil, asGarbled(err)
		case again.IsCopy != row.IsCopy || again.Shared || again.Primary != row.Primary || again.Outside.Reserved != "":
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
func errReplaced(table *tables.Table, key tables.Key) error {
	return &tables.Error{Op: "Get", Table: table.Name(), Key: key, Kind: tables.ErrConflict, Err: errors.New("concurrent writers replaced the entity during each attempt to read it; read it again")}
}

// asGarbled converts ErrOutdated to ErrGarbled if the row has not changed since it was read.
func asGarbled(err error) error {
	garbled := &tables.Error{Kind: tables.ErrGarbled, Err: err}
	if e := AsError(err); e != nil {
		garbled.Pattern, garbled.Err = e.Pattern, e.Err
	}
	garbled.Err = fmt.Errorf("a blob or row to which the entity refers is missing or has changed, although the entity has not: %v", garbled.Err) // %v hides ErrOutdated
	return garbled
}

// ErrNoLayout is the cause if a repository without a Layout reads an entity of several rows.
var ErrNoLayout = errors.New("the entity is spread over several rows, but the repository has no Layout; attach widentities.New")

// loadOnce is one attempt of LoadStored.
func (r *Engine) loadOnce(ctx context.Context, table *tables.Table, row *StoredRow, selected, kept []string) (any, *StoredRow, error) {
	key := row.Key
	if row.IsCopy {
		key.Row = row.Primary
	}
	if row.Outside.Is {
		key.Partition = row.Outside.Partition
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
	if err := r.Codec.Decode(properties, v); err != nil {
		return nil, nil, err
	}
	r.Codec.Finish(row.RawRow, key, v)
	*s = tables.State{Key: key, Row: row.Key.Row, Incarnation: row.Incarnation, WriteID: row.WriteID, Copies: row.Copies, Carried: row.carried,
		Version: azcore.ETag(row.Outside.Version), Partial: partial, Owner: r}
	if !partial {
		known, err := r.Remember(v, key, &read)
		if err != nil {
			return nil, nil, err
		}
		s.Prior = known
	}
	s.Kept = s.Copies != "" || isCopy(s) || priorOf(s).several()
	*tables.StateOf(pass, r.Codec.Meta(v)) = s
	return v, &read, nil
}

// undoTransforms converts stored properties into the properties of the entity.
func (r *Engine) undoTransforms(ctx context.Context, of driver.Reading, p tables.Properties) (tables.Properties, error) {
	if len(r.Transformers) == 0 {
		return p, nil
	}
	p = slices.Clone(p)
	for _, t := range slices.Backward(r.Transformers) {
		var err error
		if p, err = t.Transform.Load(ctx, of, p); err != nil {
			return nil, notAbsent(PatternError(t, err, tables.ErrGarbled))
		}
	}
	return p, nil
}

// notAbsent converts a pattern's ErrNotFound while it reads an existing entity into ErrGarbled. The missing object is
// not the entity itself: a caller that saw ErrNotFound would skip the entity, or insert it a second time.
func notAbsent(err error) error {
	if !errors.Is(err, tables.ErrNotFound) {
		return err
	}
	there := *AsError(err)
	there.Kind, there.Err = tables.ErrGarbled, fmt.Errorf("a blob or row to which the entity refers: %w", cmp.Or(there.Err, tables.ErrNotFound))
	return &there
}

// filterable rejects a condition on a property that rows do not store unchanged.
func (r *Engine) filterable(property string) error {
	for _, t := range r.Transformers {
		if t.Transform.Filterable != nil && !t.Transform.Filterable(property) {
			return fmt.Errorf("property %s cannot be used in a condition, since pattern %s does not store it unchanged", property, t.Name)
		}
	}
	if r.Layout != nil && !r.Layout.Layout.Filterable(property) {
		return fmt.Errorf("property %s cannot be used in a condition, since pattern %s may store it in a further row", property, r.Layout.Name)
	}
	return nil
}
