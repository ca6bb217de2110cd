package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// preflight detects an invalid set before anything is stored outside of the partition.
func (s *Set) preflight(ctx context.Context) error {
	d := &draft{set: s}
	for _, w := range s.members {
		if err := d.preflight(ctx, w); err != nil {
			return w.Located(err)
		}
	}
	d.addStale()
	d.addCallers()
	return s.locate(d, d.check())
}

// check returns an error for a plan that the service would reject. It makes no request.
func (d *draft) check() error {
	if len(d.Writes) == 0 {
		return nil
	}
	if e := core.CheckWrites(d.Writes); e != nil {
		return e
	}
	total := 0
	for i := range d.Writes {
		size, e := d.Writes[i].Check()
		if e != nil {
			return e
		}
		total += size
	}
	if total > entity.MaxTransactionSize/4 { // the JSON of a smaller plan fits into a request, so do not encode it only to measure it
		if _, _, e := d.set.table.Measure(d.Writes); e != nil {
			return e
		}
	}
	return nil
}

// preflight plans the rows of one member that depend only on the entity, and checks its copies in other partitions.
func (d *draft) preflight(ctx context.Context, w *Work) error {
	w.Copies() // cache the copies before w is copied, so that the preflight and the change share the cache
	if w.engine.spills {
		trial := *w // Store writes outside, which it must not do before the whole set is checked
		state := *trial.State
		trial.State = &state // a copy, so that what the preflight sets is discarded
		trial.Change.DryRun = true
		w = &trial
	}
	if err := w.engine.store(ctx, w); err != nil || w.Change.Kind == driver.ChangeDelete {
		return err
	}
	if err := w.plan(d); err != nil {
		return err
	}
	return w.checkOutside()
}

// Located adds the operation, the table, the key and the number of the change to err if it is a *tables.Error.
func (w *Work) Located(err error) error {
	return errs.Amend(err, func(e *entity.Error) {
		e.Op, e.Table = w.Op, w.engine.Table.Name()
		if w.number > 0 {
			e.Change = w.number
		}
		if e.Key == (entity.Key{}) {
			e.Key = errs.Loggable(w.Change.Key)
		}
	})
}

// rebase reads the entity's own row if the caller's value does not have enough data to plan the change. For an
// entity that was read through a copy, it compares the copy with the own row: a program without the index may
// have changed the entity without the copy, and the copy's ETag does not show that. rebase also finds orphaned
// copies under the keys of the entity's indexes, which the plan then claims or removes. Requests: 0 for an
// entity that this repository has read by its own key and whose row lists all of the repository's indexes.
func (r *Engine) rebase(ctx context.Context, w *Work) error {
	old := w.Old
	if old == nil {
		return nil
	}
	if old.Owner != any(r) {
		// The Meta's prior state may be from another repository, or a view without patterns.
		v, _, err := r.whole(ctx, w.Op, old, w.Etag, w.Fetched)
		if err != nil {
			return err
		}
		meta := r.Codec.Meta(v)
		old = core.StateOf(meta)
		w.Old, w.Etag = old, meta.ETag
	}
	if err := r.checkKnown(w); err != nil {
		return err
	}
	if isCopy(old) {
		if err := r.rebaseCopy(ctx, w, old); err != nil {
			return err
		}
	}
	var keys []entity.Key
	for _, orphan := range priorOf(old).Orphans {
		key := entity.Key{Partition: old.Key.Partition, Row: orphan.key}
		row, known := w.Fetched[key]
		switch {
		case !known:
			keys = append(keys, key)
		case row != nil && row.IsNearCopy() && row.Own.Primary == old.Key.Row:
			w.claim(row)
		}
	}
	for row, err := range r.Table.GetMany(ctx, keys) {
		if err != nil {
			return err
		}
		if row.IsNearCopy() && row.Own.Primary == old.Key.Row {
			w.claim(row)
		}
	}
	return nil
}

// rebaseCopy reads the own row of an entity that was read through a copy, which must be of the same version.
func (r *Engine) rebaseCopy(ctx context.Context, w *Work, old *core.State) error {
	row, known := w.Fetched[old.Key]
	if !known {
		var err error
		if row, err = readSystem(ctx, r.Table, old.Key); err != nil {
			return err
		}
	}
	if row == nil {
		return &entity.Error{Key: old.Key, Kind: entity.ErrNotFound}
	}
	same := row.WriteID != "" && row.WriteID == old.WriteID
	if old.Version != "" {
		same = row.ETag == old.Version
	}
	if row.Own.IsCopy || !same {
		return &entity.Error{Key: old.Key, Kind: entity.ErrConflict}
	}
	own := *old
	own.Row, own.Version, own.WriteID, own.Carried = old.Key.Row, "", row.WriteID, row.Own.Later
	w.Old, w.Etag = &own, row.ETag
	return nil
}

// claimOrphan reads the row that is stored under an index key which the change needs, and lets the change claim
// the row if it is an orphaned copy: of the entity itself, of a deleted entity, or of an entity that no longer
// has this key. A program without the index leaves such copies when it writes an entity. If the owner writes
// the row again after claimOrphan has read it, the row's ETag changes and the claim fails. again reports
// whether a new plan can succeed, learned whether the change now claims the row.
func (r *Engine) claimOrphan(ctx context.Context, w *Work, key entity.Key) (again, learned bool) {
	row, err := readSystem(ctx, r.Table, key)
	if errors.Is(err, entity.ErrNotFound) {
		return true, false // the key was released since
	}
	if err != nil || !row.IsNearCopy() {
		return false, false
	}
	if row.Own.Primary != w.Change.Key.Row {
		op, of := w.Change.Kind.String(), entity.Key{Partition: key.Partition, Row: row.Own.Primary}
		own, err := r.Table.Get(ctx, op, of, nil)
		if errors.Is(err, entity.ErrNotFound) || err == nil && own.Own.IsCopy {
			own, err = nil, nil
		}
		if err != nil || own != nil && (own.WriteID == row.WriteID || !r.Owns(own)) {
			return false, false // a copy of an entity of another type must not be claimed
		}
		owner, own, err := r.LoadOwn(ctx, op, of, own)
		if err != nil {
			return false, false
		}
		if owner != nil {
			rows, err := r.rowsOf(CopiesOf(owner), own.Key, own.Properties)
			if err != nil || repeats(rows, key.Row) {
				return false, false
			}
		}
	}
	w.claim(row)
	return true, true
}

// claim makes the next plan of the change claim an orphaned copy.
func (w *Work) claim(row *tablerow.Row) {
	if w.claimed == nil {
		w.claimed = map[string]azcore.ETag{}
	}
	w.claimed[row.Key.Row] = row.ETag
}

// store computes the properties to store, once for all attempts.
func (r *Engine) store(ctx context.Context, w *Work) error {
	if w.Change.Kind == driver.ChangeDelete {
		return nil
	}
	if err := r.Codec.CheckWhole(w.Change.Entity); err != nil {
		return err
	}
	if w.Change.Stored != nil {
		return nil
	}
	if w.Change.Kind == driver.ChangeMerge {
		w.State.Base = w.base
		p, err := r.transform(ctx, w, w.State.Given)
		switch {
		case err != nil:
			return err
		case w.State.Whole:
			w.Change.Stored = p
		default:
			w.merged, w.Change.Stored = p, overlay(w.base, p)
		}
		return nil
	}
	p, err := r.Codec.Encode(w.Change.Entity)
	if err != nil {
		return err
	}
	if err := core.CheckReserved(p); err != nil {
		return errs.Invalid("", err)
	}
	if err := r.checkMirror(w, p); err != nil {
		return err
	}
	w.Change.Stored, err = r.transform(ctx, w, p)
	return err
}

// transform converts properties into the properties to store.
func (r *Engine) transform(ctx context.Context, w *Work, p entity.Properties) (entity.Properties, error) {
	for _, t := range r.Transformers {
		var err error
		if p, err = t.Transform.Store(ctx, w.seenBy(t), p); err != nil {
			return nil, PatternError(t, err, entity.ErrInvalid)
		}
	}
	return p, nil
}

// checkMirror computes the entity's keys a second time, from the properties that a later read will return, and
// returns an error if they differ. A key that depends on anything else, such as a time zone or a field that is
// not stored, would differ after the next read, and the row under the old key would never be removed.
func (r *Engine) checkMirror(w *Work, p entity.Properties) error {
	v, mirror := w.Change.Entity, r.Codec.New()
	if err := r.Codec.Decode(p, mirror); err != nil {
		return err
	}
	r.Codec.SetKey(mirror, w.Change.Key)
	if !w.standIn && r.Schema.Key(mirror) != w.Change.Key {
		return errs.Invalidf("", "Schema.Key returns another key for the entity as it will be read back; compute the key from stored properties only")
	}
	for _, x := range r.Copies {
		given, err := w.Copies().Near(x)
		if err != nil {
			return PatternError(x, err, entity.ErrInvalid)
		}
		read, err := x.Copies(mirror)
		if err != nil || !slices.EqualFunc(given, read, func(a, b driver.Copy) bool { return a.RowKey == b.RowKey }) {
			return PatternError(x, errUnstoredKeys, entity.ErrInvalid)
		}
	}
	for _, x := range r.rememberers {
		given, err := x.Prior(v, p)
		if err != nil {
			return PatternError(x, err, entity.ErrInvalid)
		}
		if read, err := x.Prior(mirror, p); err != nil || !slices.Equal(given, read) {
			return PatternError(x, errUnstoredKeys, entity.ErrInvalid)
		}
	}
	mirrored := CopiesOf(mirror)
	for _, x := range r.Outside {
		given, err := w.Copies().Outside(x)
		if err != nil {
			return PatternError(x, err, entity.ErrInvalid)
		}
		read, err := mirrored.Outside(x)
		if err != nil || !slices.EqualFunc(given, read, func(a, b driver.OutsideCopy) bool { return a.Key == b.Key }) {
			return PatternError(x, errUnstoredKeys, entity.ErrInvalid)
		}
	}
	return nil
}

var errUnstoredKeys = errors.New("the pattern returns other keys for the entity as it will be read back; compute keys from stored properties only")

// memberOf returns the intent's member for a change. The member names every key outside of the partition that
// the change can touch.
func (r *Engine) memberOf(ctx context.Context, w *Work) (intents.Member, error) {
	m := intents.Member{Repository: r.Name(), Key: w.Change.Key, Outside: map[string][]string{}}
	for _, p := range r.intents {
		keys, err := p.Effect.OutsideKeys(ctx, w.seenBy(p))
		if err != nil {
			return m, PatternError(p, err, entity.ErrInvalid)
		}
		if len(keys) > 0 {
			m.Outside[p.Name] = keys
		}
	}
	return m, nil
}
