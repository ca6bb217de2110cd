package engine

import (
	"context"

	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// RewriteNow reads an entity and writes it again as it is. Its copies are taken for ones that may have been left behind or be
// another's: none is written over before it was looked at.
func (r *Engine) RewriteNow(ctx context.Context, op string, key tables.Key) error {
	value, row, err := r.Look(ctx, op, key)
	if err != nil {
		return err
	}
	if value == nil {
		return &tables.Error{Op: op, Table: r.Table.Name(), Key: key, Kind: tables.ErrNotFound}
	}
	row.Copies = ""
	return r.WriteAgain(ctx, op, value, row, true)
}

// WriteAgain writes an entity again as it was read: what its row lists as copies is written over, all else must be free or the
// entity's own. orphans says that all copies are looked at first, which is quicker where most are there.
func (r *Engine) WriteAgain(ctx context.Context, op string, value any, row *StoredRow, orphans bool) error {
	known, err := r.Remember(value, row.Key, row)
	if err != nil {
		return err
	}
	if !orphans {
		known.Orphans = nil
	}
	old := *r.State(value)
	old.Prior, old.Copies = known, row.Copies
	return r.Run(ctx, &Work{Op: op, Entity: value, Etag: row.ETag,
		Change: Change{Kind: driver.ChangeReplace, Key: row.Key, Entity: value, Stored: row.Properties, Old: &old}})
}

// RunReconcile makes what is outside of an entity's partition agree with it, as every write of the entity does: under an intent.
// change is the id of a change whose reservation is left over, "" for none: only its own intent fills or frees one.
func (r *Engine) RunReconcile(ctx context.Context, change string, key tables.Key, outside map[string][]string) error {
	if change == "" {
		change = rowwriter.NewWriteID()
	}
	intent := driver.Intent{ID: change, Repository: r.Name(), Key: key, Outside: outside}
	var reconciled error
	err := r.Schema.Intents.Run(ctx, intent, func(context.Context) error { return nil }, func(ctx context.Context) error {
		reconciled = r.Converge(ctx, Named{Intent: intent}, nil, nil)
		return reconciled
	})
	if err == nil {
		err = reconciled // the runner has left it to its workers
	}
	return err
}

// Keeps reports whether a row key can be that of an entity of the repository.
func (r *Engine) Keeps(entity tables.Key) bool {
	return r.Schema.RowPrefix == "" || r.Primary.Span.Contains(entity.Row)
}

// DecodePlain is loadStored for an entity of one row as it is, and leaves out what only writes need.
func (r *Engine) DecodePlain(row *StoredRow) (any, tables.Properties, error) {
	value := r.Codec.New()
	if row.Layout != "" {
		return nil, nil, ErrNoLayout
	}
	if err := r.Codec.Decode(row.Properties, value); err != nil {
		return nil, nil, err
	}
	r.Codec.Finish(row.RawRow, row.Key, value)
	tables.SetState(pass, r.Codec.Meta(value),
		&tables.State{Key: row.Key, Row: row.Key.Row, Incarnation: row.Incarnation, WriteID: row.WriteID, Copies: row.Copies, Owner: r})
	return value, row.Properties, nil
}
