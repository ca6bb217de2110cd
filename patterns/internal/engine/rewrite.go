package engine

import (
	"context"

	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// RewriteNow reads an entity and writes it again unchanged. It treats all copies as possibly orphaned or another
// entity's, and overwrites none before it has read it.
func (r *Engine) RewriteNow(ctx context.Context, op string, key tables.Key) error {
	value, row, err := r.ReadOwn(ctx, op, key)
	if err != nil {
		return err
	}
	if value == nil {
		return &tables.Error{Op: op, Table: r.Table.Name(), Key: key, Kind: tables.ErrNotFound}
	}
	row.Copies = ""
	return r.WriteAgain(ctx, op, value, row, true)
}

// WriteAgain writes an entity again as it was read. It overwrites copies that the entity's row lists; any other key
// must be free or the entity's own. orphans reads all copies first, which is faster if most exist.
func (r *Engine) WriteAgain(ctx context.Context, op string, value any, row *StoredRow, orphans bool) error {
	w, err := r.rewriting(op, value, row, orphans)
	if err != nil {
		return err
	}
	return r.Run(ctx, w)
}

// WriteAgainTogether is WriteAgain for several entities of one partition, in one change set. If it fails, none is written, and
// Error.Change is the place of the refused entity in values, from 1.
func (r *Engine) WriteAgainTogether(ctx context.Context, op string, values []any, rows []*StoredRow) error {
	changes := make([]*Work, len(values))
	for i := range values {
		var err error
		if changes[i], err = r.rewriting(op, values[i], rows[i], false); err != nil {
			return err
		}
	}
	return r.NewSet(changes...).Run(ctx)
}

// rewriting prepares the change that writes an entity again.
func (r *Engine) rewriting(op string, value any, row *StoredRow, orphans bool) (*Work, error) {
	known, err := r.Remember(value, row.Key, row)
	if err != nil {
		return nil, err
	}
	if !orphans {
		known.Orphans = nil
	}
	old := *r.State(value)
	old.Prior, old.Copies = known, row.Copies
	return &Work{Op: op, Entity: value, Etag: row.ETag, asStored: true,
		Change: Change{Kind: driver.ChangeReplace, Key: row.Key, Entity: value, Stored: row.Properties, Old: &old}}, nil
}

// RunReconcile reconciles everything outside of an entity's partition under an intent, as every write of the entity
// does. change is the ID of a change whose orphaned reservation is to be filled or freed, "" for none: only an intent
// with its ID may do so.
func (r *Engine) RunReconcile(ctx context.Context, change string, key tables.Key, outside map[string][]string) error {
	if change == "" {
		change = rowwriter.NewWriteID()
	}
	intent := intents.Intent{ID: change, Members: []intents.Member{{Repository: r.Name(), Key: key, Outside: outside}}}
	var reconciled error
	err := r.runner().Run(ctx, intent, func(context.Context) error { return nil }, func(ctx context.Context) error {
		reconciled = r.converge(ctx, &intent, false, []*target{{Member: intent.Members[0]}})
		return reconciled
	})
	if err == nil {
		err = reconciled // the runner has left it to its workers
	}
	return err
}

// Keeps reports whether an entity of the repository can have a row key.
func (r *Engine) Keeps(entity tables.Key) bool {
	return r.Schema.RowPrefix == "" || r.Primary.Span.Contains(entity.Row)
}

// DecodePlain is LoadStored for an unchanged entity of one row, without the prior state, which only writes need.
func (r *Engine) DecodePlain(row *StoredRow) (any, tables.Properties, error) {
	value := r.Codec.New()
	if row.Layout != "" {
		return nil, nil, ErrNoLayout
	}
	if err := r.Codec.Decode(row.Properties, value); err != nil {
		return nil, nil, err
	}
	r.Codec.Finish(row.RawRow, row.Key, value)
	*tables.StateOf(pass, r.Codec.Meta(value)) =
		&tables.State{Key: row.Key, Row: row.Key.Row, Incarnation: row.Incarnation, WriteID: row.WriteID, Copies: row.Copies, Owner: r}
	return value, row.Properties, nil
}
