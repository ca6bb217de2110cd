package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// sighting is an entity as it was at one moment; both are nil when it was not there.
type sighting struct {
	entity any
	row    *StoredRow // its own row, with every property as stored
}

// sightingAfter is what a committed change left, nil when its ETag is not known.
func sightingAfter(w *Work, d *draft, etag azcore.ETag) *sighting {
	if w.Change.Kind == driver.ChangeDelete {
		return &sighting{}
	}
	if etag == "" {
		return nil
	}
	raw := &tables.RawRow{Key: w.Change.Key, ETag: etag, Properties: w.Change.Stored}
	return &sighting{entity: w.Change.Entity, row: &StoredRow{RawRow: raw, Incarnation: d.next.Incarnation, Copies: d.next.Copies}}
}

func (s *sighting) same(other *sighting) bool {
	if s.row == nil || other.row == nil {
		return s.row == other.row
	}
	return s.row.ETag == other.row.ETag
}

// Reconcile is Repository.Reconcile.
func (r *Engine) Reconcile(ctx context.Context, intent driver.Intent) error {
	const op = "Reconcile"
	for pattern := range intent.Outside {
		if !r.reachesOutBy(pattern) {
			return &tables.Error{Op: op, Table: r.Table.Name(), Key: intent.Key, Pattern: pattern, Kind: driver.ErrUnknownPattern,
				Err: errors.New("the intent names a pattern that this program's repository does not have; run workers of the build that has it")}
		}
	}
	return r.Agree(ctx, Named{intent, true}, nil, nil)
}

// Named is what an intent names. received says that it was read from a message.
type Named struct {
	driver.Intent
	received bool
}

// Agree goes round until the entity is the same before and after. seen is the entity if it is known already, fresh the
// keys that nobody but this holder's change can have written.
func (r *Engine) Agree(ctx context.Context, intent Named, seen *sighting, fresh map[string]bool) error {
	const op = "Reconcile"
	for attempt := range r.Schema.MaxAttempts {
		if seen == nil {
			var err error
			if seen, err = r.sight(ctx, op, intent.Key); err != nil {
				return err
			}
		}
		taken := r.agreeOnce(ctx, intent, seen, fresh)
		if taken != nil && !errors.Is(taken, tables.ErrDuplicate) {
			return labelOutside(op, r.Table, taken)
		}
		again, err := r.sight(ctx, op, intent.Key)
		if err != nil {
			return err
		}
		if again.same(seen) || !lease.Holds(ctx, lease.Reread) {
			return labelOutside(op, r.Table, taken)
		}
		seen, fresh = again, nil
		if err := backoff.Wait(ctx, attempt); err != nil {
			return err
		}
	}
	return &tables.Error{Op: op, Table: r.Table.Name(), Key: intent.Key, Kind: tables.ErrConflict}
}

// labelOutside gives an error of an effect the operation that failed. It keeps the table of the effect, such as an index's,
// and names the entities' table t where the error names none.
func labelOutside(op string, t *tables.Table, err error) error {
	e, ok := err.(*tables.Error)
	if !ok {
		return err
	}
	labelled := *e
	labelled.Op, labelled.Table = op, cmp.Or(e.Table, t.Name())
	return &labelled
}

// agreeOnce makes what the intent names agree with the entity as it was seen. A key that is another entity's holds up nothing
// else, since that one may wait for a key of this: then ErrDuplicate comes once the rest is done.
func (r *Engine) agreeOnce(ctx context.Context, intent Named, seen *sighting, fresh map[string]bool) error {
	var taken error
	for _, p := range r.Outside {
		keys := intent.Outside[p.PatternName()]
		if len(keys) == 0 {
			continue
		}
		switch err := r.agreeCopies(ctx, p, intent.Intent, seen, fresh); {
		case errors.Is(err, tables.ErrDuplicate):
			taken = cmp.Or(taken, PatternError(p, err, tables.ErrInvalid))
		case err != nil:
			return PatternError(p, err, tables.ErrInvalid)
		}
	}
	for _, p := range r.intents {
		keys := intent.Outside[p.PatternName()]
		if len(keys) == 0 {
			continue
		}
		rec := driver.NewReceived(pass, p.PatternName(), intent.Key, keys, intent.received)
		if seen.row != nil {
			rec.Entity, rec.Stored = seen.entity, seen.row.Properties
		}
		if err := p.Reconcile(ctx, rec); err != nil {
			return PatternError(p, err, tables.ErrInvalid)
		}
	}
	return taken
}

// sight is look as a sighting.
func (r *Engine) sight(ctx context.Context, op string, key tables.Key) (*sighting, error) {
	v, row, err := r.Look(ctx, op, key)
	if err != nil {
		return nil, err
	}
	return &sighting{v, row}, nil
}

// reachesOutBy reports whether a pattern of this name has effects outside of the partition.
func (r *Engine) reachesOutBy(name string) bool {
	for _, p := range r.Outside {
		if p.PatternName() == name {
			return true
		}
	}
	for _, p := range r.intents {
		if p.PatternName() == name {
			return true
		}
	}
	return false
}

// firstOutside names a pattern with effects outside of the partition, if there is one.
func (r *Engine) firstOutside() (string, bool) {
	if len(r.Outside) > 0 {
		return r.Outside[0].PatternName(), true
	}
	if len(r.intents) > 0 {
		return r.intents[0].PatternName(), true
	}
	return "", false
}

// Look reads an entity and its own row, with every property as stored; both are nil when it is not there.
func (r *Engine) Look(ctx context.Context, op string, key tables.Key) (any, *StoredRow, error) {
	row, err := Fetch(ctx, r.Table, op, key, nil)
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if row.IsCopy {
		return nil, nil, nil
	}
	v, row, err := r.LoadStored(ctx, r.Table, row, nil, nil)
	if err != nil {
		return nil, nil, r.Primary.DecodeError(op, key, err)
	}
	return v, row, nil
}
