package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// snapshot is an entity at one moment; both fields are nil if it did not exist.
type snapshot struct {
	entity any
	row    *StoredRow // its own row, with every property as stored
	copies EntityCopies
}

// snapshotAfter is the snapshot after a committed change, nil if its ETag is unknown.
func snapshotAfter(w *Work, d *draft, etag azcore.ETag) *snapshot {
	if w.Change.Kind == driver.ChangeDelete {
		return &snapshot{}
	}
	if etag == "" {
		return nil
	}
	raw := &tables.RawRow{Key: w.Change.Key, ETag: etag, Properties: w.Change.Stored}
	return &snapshot{entity: w.Change.Entity, copies: w.Change.Copies(), row: &StoredRow{RawRow: raw, Incarnation: d.next.Incarnation, Copies: d.next.Copies}}
}

// shows reports whether a row, nil for none, has the version of the snapshot.
func (s *snapshot) shows(row *StoredRow) bool {
	if s.row == nil || row == nil {
		return s.row == row
	}
	return s.row.ETag == row.ETag
}

// Reconcile makes everything that the intent names agree with the entity as it is now. It is for the holder of the intent's message
// only: an eventual.Queue calls it for intents whose writer died.
//
// Three rules make it converge however many holders of messages about one entity are at work, die and begin again:
//
//   - what is sent for a message is sent only while no other holder can have it: its context carries the lease, and the
//     pipeline of every client of Account checks it;
//   - a holder writes only the keys that its message names;
//   - after its writes the holder reads the entity again, and goes round again if it has changed.
//
// Requests: 1 for the entity, 1 to 4 for each key, 1 to read again.
func (r *Engine) Reconcile(ctx context.Context, intent intents.Intent) error {
	const op = "Reconcile"
	for pattern := range intent.Outside {
		if !r.reachesOutBy(pattern) {
			return &tables.Error{Op: op, Table: r.Table.Name(), Key: intent.Key, Pattern: pattern, Kind: driver.ErrUnknownPattern,
				Err: errors.New("the intent names a pattern that this program's repository does not have; run workers of the build that has it")}
		}
	}
	return r.Converge(ctx, Named{intent, true}, nil, nil)
}

// Named is the content of an intent. received means that it was read from a message.
type Named struct {
	intents.Intent
	received bool
}

// Converge reconciles until the entity is the same before and after. seen is the entity's snapshot if known, fresh are
// the keys that only this holder's change can have written.
func (r *Engine) Converge(ctx context.Context, intent Named, seen *snapshot, fresh map[string]bool) error {
	const op = "Reconcile"
	for attempt := range r.Schema.MaxAttempts {
		if seen == nil {
			var err error
			if seen, err = r.snapshot(ctx, op, intent.Key); err != nil {
				return err
			}
		}
		taken := r.reconcileOnce(ctx, intent, seen, fresh)
		if taken != nil && !errors.Is(taken, tables.ErrDuplicate) {
			return labelOutside(op, r.Table, taken)
		}
		again, err := r.refresh(ctx, op, intent.Key, seen)
		if err != nil {
			return err
		}
		if again == seen || !lease.Holds(ctx, lease.Reread) {
			return labelOutside(op, r.Table, taken)
		}
		seen, fresh = again, nil
		if err := backoff.Wait(ctx, attempt); err != nil {
			return err
		}
	}
	return &tables.Error{Op: op, Table: r.Table.Name(), Key: intent.Key, Kind: tables.ErrConflict}
}

// labelOutside adds the failed operation to an error of an effect. It keeps the table of the effect, such as an
// index's, and adds the entities' table t if the error names none.
func labelOutside(op string, t *tables.Table, err error) error {
	return tables.Amend(pass, err, func(e *tables.Error) { e.Op, e.Table = op, cmp.Or(e.Table, t.Name()) })
}

// reconcileOnce reconciles the keys that the intent names with a snapshot of the entity. It continues after a key that
// belongs to another entity, since that entity may wait for a key of this one, and returns ErrDuplicate at the end.
func (r *Engine) reconcileOnce(ctx context.Context, intent Named, seen *snapshot, fresh map[string]bool) error {
	var taken error
	for _, p := range r.Outside {
		keys := intent.Outside[p.Name]
		if len(keys) == 0 {
			continue
		}
		switch err := r.reconcileCopies(ctx, p, intent.Intent, seen, fresh); {
		case errors.Is(err, tables.ErrDuplicate):
			taken = cmp.Or(taken, PatternError(p, err, tables.ErrInvalid))
		case err != nil:
			return PatternError(p, err, tables.ErrInvalid)
		}
	}
	for _, p := range r.intents {
		keys := intent.Outside[p.Name]
		if len(keys) == 0 {
			continue
		}
		rec := &Reconciliation{Key: intent.Key, Keys: keys, Received: intent.received}
		if seen.row != nil {
			rec.Entity, rec.Stored = seen.entity, seen.row.Properties
		}
		if err := p.Reconcile(ctx, rec); err != nil {
			return PatternError(p, err, tables.ErrInvalid)
		}
	}
	return taken
}

// snapshot reads the current version of an entity.
func (r *Engine) snapshot(ctx context.Context, op string, key tables.Key) (*snapshot, error) {
	return r.refresh(ctx, op, key, nil)
}

// refresh reads an entity again. It returns seen itself, without decoding the row, if the entity is unchanged.
func (r *Engine) refresh(ctx context.Context, op string, key tables.Key, seen *snapshot) (*snapshot, error) {
	row, err := r.fetchOwn(ctx, op, key)
	if err != nil {
		return nil, err
	}
	if seen != nil && seen.shows(row) {
		return seen, nil
	}
	v, row, err := r.loadOwn(ctx, op, key, row)
	if err != nil {
		return nil, err
	}
	return &snapshot{v, row, keptCopiesOf(v)}, nil
}

// reachesOutBy reports whether a pattern of this name has effects outside of the partition.
func (r *Engine) reachesOutBy(name string) bool {
	for _, p := range r.Outside {
		if p.Name == name {
			return true
		}
	}
	for _, p := range r.intents {
		if p.Name == name {
			return true
		}
	}
	return false
}

// firstOutside names a pattern with effects outside of the partition, "" for none.
func (r *Engine) firstOutside() (string, bool) {
	if len(r.Outside) > 0 {
		return r.Outside[0].Name, true
	}
	if len(r.intents) > 0 {
		return r.intents[0].Name, true
	}
	return "", false
}

// ReadOwn reads an entity and its own row, with every stored property; both are nil if it does not exist.
func (r *Engine) ReadOwn(ctx context.Context, op string, key tables.Key) (any, *StoredRow, error) {
	row, err := r.fetchOwn(ctx, op, key)
	if err != nil {
		return nil, nil, err
	}
	return r.loadOwn(ctx, op, key, row)
}

// fetchOwn reads an entity's own row, nil if it does not exist. Requests: 1.
func (r *Engine) fetchOwn(ctx context.Context, op string, key tables.Key) (*StoredRow, error) {
	row, err := Fetch(ctx, r.Table, op, key, nil)
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case row.IsCopy:
		return nil, nil
	}
	return row, nil
}

// loadOwn makes an entity of its own row, nil for none.
func (r *Engine) loadOwn(ctx context.Context, op string, key tables.Key, row *StoredRow) (any, *StoredRow, error) {
	if row == nil {
		return nil, nil, nil
	}
	v, row, err := r.LoadStored(ctx, r.Table, row, nil, nil)
	if err != nil {
		return nil, nil, r.Primary.DecodeError(op, key, err)
	}
	return v, row, nil
}
