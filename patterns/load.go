package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/patterns/driver"

	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
)

// load makes an entity of one of its rows: its own, or a copy. selected are the properties that the caller asked for, kept
// those that the row holds, nil for all. It is nil when the row has gone since it was read.
func (r *engine) load(ctx context.Context, table *tables.Table, row *storedRow, selected, kept []string) (any, error) {
	v, _, err := r.loadStored(ctx, table, row, selected, kept)
	return v, err
}

// loadStored is load that also returns the row that the entity was made of, with the properties of all its rows as stored.
// What lies in further rows or outside may be replaced while it is read: then everything is read again.
func (r *engine) loadStored(ctx context.Context, table *tables.Table, row *storedRow, selected, kept []string) (any, *storedRow, error) {
	if selected != nil {
		selected = slices.Concat(selected, r.sealed())
	}
	for attempt := range r.schema.MaxAttempts {
		v, read, err := r.loadOnce(ctx, table, row, selected, kept)
		if errors.Is(err, driver.ErrSkipped) {
			return nil, nil, nil
		}
		if !errors.Is(err, driver.ErrOutdated) {
			return v, read, err
		}
		again, fetchErr := fetch(ctx, table, "Get", row.Key, r.primary.Known)
		switch {
		case errors.Is(fetchErr, tables.ErrNotFound):
			return nil, nil, nil
		case fetchErr != nil:
			return nil, nil, fetchErr
		case again.ETag == row.ETag && row.isCopy:
			return r.loadOwner(ctx, table, row, selected, kept, err)
		case again.ETag == row.ETag:
			return nil, nil, asGarbled(err)
		case again.isCopy != row.isCopy || again.shared || again.primary != row.primary || again.outside.reserved != "":
			return nil, nil, nil // the row is another entity's now
		}
		if selected != nil {
			again = again.with(again.Properties.Only(selected))
		}
		row = again
		if err := backoff.Wait(ctx, attempt); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, errReplaced(table, row.Key)
}

// errReplaced is the error of a read that met another version of the entity at each attempt.
func errReplaced(table *tables.Table, key tables.Key) error {
	return &tables.Error{Op: "Get", Table: table.Name(), Key: key, Kind: tables.ErrConflict, Err: errors.New("the entity was replaced during each attempt to read it")}
}

// asGarbled turns an ErrOutdated whose row is the same as before into what it is then.
func asGarbled(err error) error {
	garbled := &tables.Error{Kind: tables.ErrGarbled, Err: err}
	if e := asError(err); e != nil {
		garbled.Pattern, garbled.Err = e.Pattern, e.Err
	}
	garbled.Err = fmt.Errorf("what it refers to is missing or another, and the row is the same as before: %v", garbled.Err) // no ErrOutdated any more
	return garbled
}

var errNoLayout = errors.New("the entity is spread over several rows, and the repository has no layout")

// loadOnce is one attempt of loadStored.
func (r *engine) loadOnce(ctx context.Context, table *tables.Table, row *storedRow, selected, kept []string) (any, *storedRow, error) {
	key := row.Key
	if row.isCopy {
		key.Row = row.primary
	}
	if row.outside.is {
		key.Partition = row.outside.partition
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
	v, s := r.codec.NewWithState()
	if err := r.codec.Decode(properties, v); err != nil {
		return nil, nil, err
	}
	r.codec.Finish(row.RawRow, key, v)
	*s = tables.State{Key: key, Row: row.Key.Row, Incarnation: row.incarnation, WriteID: row.WriteID, Copies: row.copies, Carried: row.carried,
		Version: azcore.ETag(row.outside.version), Partial: partial, Owner: r}
	if !partial {
		known, err := r.remember(v, key, &read)
		if err != nil {
			return nil, nil, err
		}
		s.Prior = known
	}
	s.Kept = s.Copies != "" || isCopy(s) || priorOf(s).several()
	tables.SetState(pass, r.codec.Meta(v), s)
	return v, &read, nil
}

// undoTransforms turns stored properties into the entity's.
func (r *engine) undoTransforms(ctx context.Context, of driver.Reading, p tables.Properties) (tables.Properties, error) {
	if len(r.transformers) == 0 {
		return p, nil
	}
	p = slices.Clone(p)
	for _, t := range slices.Backward(r.transformers) {
		var err error
		if p, err = t.Load(ctx, of, p); err != nil {
			return nil, notAbsent(patternError(t, err, tables.ErrGarbled))
		}
	}
	return p, nil
}

// notAbsent is for what a pattern says while it reads an entity that is there: what it does not find is not the entity, and
// whoever reads ErrNotFound would pass the entity over, or insert it anew.
func notAbsent(err error) error {
	if !errors.Is(err, tables.ErrNotFound) {
		return err
	}
	there := *asError(err)
	there.Kind = tables.ErrGarbled
	if there.Err == nil || errors.Is(there.Err, tables.ErrNotFound) {
		there.Err = fmt.Errorf("something that the entity refers to: %v", cmp.Or(there.Err, tables.ErrNotFound)) // no ErrNotFound any more
	}
	return &there
}

// filterable refuses a condition on a property that rows do not hold as it is.
func (r *engine) filterable(property string) error {
	for _, t := range r.transformers {
		if !t.Filterable(property) {
			return fmt.Errorf("a condition on property %s, which %s stores in another form", property, t.PatternName())
		}
	}
	if r.layout != nil && !r.layout.Filterable(property) {
		return fmt.Errorf("a condition on property %s, which %s may keep in a further row", property, r.layout.PatternName())
	}
	return nil
}
