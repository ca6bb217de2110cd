package engine

import (
	"context"
	"errors"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// loadOwner reads the entity of an unchanged copy that refers to something missing, such as a blob: a newer write may
// have replaced or deleted the entity, and the intent that updates the copy waits for a worker. It returns the entity
// from its own row, projected like the copy; nil if the entity is gone or no longer requires the copy; and missing as
// ErrGarbled if the copy is of the entity's current version. Requests: 1, and those of reading the entity.
func (r *Engine) loadOwner(ctx context.Context, table *tables.Table, row *StoredRow, selected, kept []string, missing error) (any, *StoredRow, error) {
	key := tables.Key{Partition: row.Key.Partition, Row: row.Primary}
	if row.Outside.Is {
		key.Partition = row.Outside.Partition
	}
	for attempt := range r.Schema.MaxAttempts {
		own, err := Fetch(ctx, r.Table, "Get", key, nil)
		switch {
		case errors.Is(err, tables.ErrNotFound):
			return nil, nil, nil
		case err != nil:
			return nil, nil, err
		case !r.Owns(own):
			return nil, nil, nil
		case row.Outside.Is && string(own.ETag) == row.Outside.Version, !row.Outside.Is && own.WriteID == row.WriteID:
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
		own = own.With(own.Properties.Only(kept).Only(selected))
		own.Layout = ""
		if v, own, err = r.loadOnce(ctx, r.Table, own, selected, kept); !errors.Is(err, driver.ErrOutdated) {
			return v, own, err
		}
		if err := backoff.Wait(ctx, attempt); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, errReplaced(r.Table, key)
}

// asksFor reports whether an entity, according to its own row, requires a copy where one was read.
func (r *Engine) asksFor(v any, own *StoredRow, table *tables.Table, copied *StoredRow) (bool, error) {
	if !copied.Outside.Is {
		rows, err := r.rowsOf(CopiesOf(v), own.Key, own.Properties)
		return repeats(rows, copied.Key.Row), err
	}
	for _, p := range r.Outside {
		if t := p.Outside.Table; t == nil || !t.Same(table) {
			continue
		}
		if has, err := CopiesOf(v).has(p, copied.Key); err != nil {
			return false, PatternError(p, err, tables.ErrInvalid)
		} else if has {
			return true, nil
		}
	}
	return false, nil
}
