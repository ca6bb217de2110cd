package patterns

import (
	"context"
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
)

// work is one change of one entity on its way through the repository.
type work[T any] struct {
	op     string
	change Change
	entity *T          // whose Meta is brought up to date, nil for none
	etag   azcore.ETag // the condition, with change.old
	base   Properties  // of a merge: the entity's properties as they are stored, nil where the caller read them
	merged Properties  // of a merge: given as it is stored

	fresh           map[string]bool // outside keys that the change adds, by pattern and key
	preparedOutside bool            // something was written outside before the transaction
	given           *T              // what the caller gave, where Completers work on a copy of it
	after           *sighting[T]    // what the transaction left, nil when that is not known
}

// run carries a change out: intent, transformers, plan, transaction, outside effects. It is the only way from a
// change to Table.commit.
func (r *Repository[T]) run(ctx context.Context, w *work[T]) error {
	w.change.ID = newWriteID()
	if err := r.ground(ctx, w); err != nil {
		return r.located(w, err)
	}
	if err := r.complete(ctx, w); err != nil {
		return r.located(w, err)
	}
	if !r.reachesOut() {
		return r.located(w, r.commitChange(ctx, w))
	}
	if err := r.rehearse(ctx, w); err != nil {
		return r.located(w, err)
	}
	intent, err := r.intentOf(ctx, w)
	if err != nil {
		return r.located(w, err)
	}
	if len(intent.Outside) == 0 {
		return r.located(w, r.commitChange(ctx, w))
	}
	return r.located(w, r.runIntent(ctx, w, intent))
}

// runIntent carries out a change that the intent describes. Once the transaction is applied the change is made, whatever
// becomes of its effects: the intent is still there then.
func (r *Repository[T]) runIntent(ctx context.Context, w *work[T], intent Intent) error {
	committed := false
	err := r.schema.Intents.Run(ctx, intent, func(ctx context.Context) error {
		ctx, done := r.withinTerm(ctx, w)
		defer done()
		if err := r.reserve(ctx, w, intent); err != nil {
			return err
		}
		err := r.commitChange(ctx, w)
		committed = err == nil
		return err
	}, func(ctx context.Context) error {
		if !committed && !w.preparedOutside {
			return nil
		}
		return r.agree(ctx, intent, w.after, w.fresh)
	})
	if err == nil && !committed {
		return &Error{Kind: ErrUnknownOutcome, Err: errors.New("Schema.Intents returned without making the change")}
	}
	if committed {
		return nil
	}
	return err
}

// spills reports whether something is written outside as properties are stored.
func (r *Repository[T]) spills() bool {
	return slices.ContainsFunc(r.transformers, func(t PropertyTransformer) bool { return t.Stage() == StageSpill })
}

// rehearse finds what is wrong with a change before anything is sent for it.
func (r *Repository[T]) rehearse(ctx context.Context, w *work[T]) error {
	if r.spills() {
		trial := *w // it writes as it stores: not before the intent is there
		trial.change.DryRun = true
		w = &trial
	}
	if err := r.store(ctx, w); err != nil || w.change.Kind == ChangeDelete {
		return err
	}
	d := &draft{etag: w.etag, next: &state{key: w.change.Key, row: w.change.Key.Row, copies: r.copyNames, incarnation: anyWriteID, owner: r}}
	if err := r.planRows(&w.change, d, w.merged); err != nil {
		return err
	}
	if e := checkTransaction(d.operations); e != nil {
		return e
	}
	total := 0
	for i := range d.operations {
		_, size, err := d.operations[i].row()
		if err != nil {
			e := invalid("", err)
			e.Key, e.Pattern = loggable(d.operations[i].key), d.operations[i].pattern
			return e
		}
		total += size
	}
	if total > MaxTransactionSize/4 { // less cannot be too large as it is sent, and need not be encoded twice
		if e := r.table.checkSize(d.operations); e != nil {
			return e
		}
	}
	return r.rehearseOutside(w)
}

// located gives the library's own errors the operation and key of the change.
func (r *Repository[T]) located(w *work[T], err error) error {
	e, ok := err.(*Error) // the outermost only: what a runner or pattern wrapped around one means something
	if !ok {
		return err
	}
	located := *e
	located.Op, located.Table = w.op, r.table.name
	if located.Key == (Key{}) {
		located.Key = loggable(w.change.Key)
	}
	return &located
}

// commitChange stores, plans and commits, and starts over where patterns and not the entity were in the way.
func (r *Repository[T]) commitChange(ctx context.Context, w *work[T]) error {
	w.preparedOutside = w.preparedOutside || r.spills()
	for attempt := 0; ; {
		d, err := r.draft(ctx, w)
		if err != nil {
			return err
		}
		d.next.writeID = newWriteID()
		etags, err := r.table.commitAs(ctx, w.op, d.operations, d.next.writeID)
		if err == nil {
			r.settle(w.entity, w.change.Kind, d.next, etags[0])
			for _, staged := range d.staged {
				staged.x.settle(etags[staged.at:])
			}
			w.handBack()
			if w.change.beside != nil {
				w.change.beside.settle(etags[d.besideAt:])
			}
			w.after = sightingAfter(w, d, etags[0])
			return nil
		}
		again, learned := r.startsOver(ctx, &w.change, d, err)
		if learned {
			continue // each thing is learned once, so this ends by itself
		}
		if attempt++; !again || attempt >= r.schema.MaxAttempts {
			return err
		}
		if err := backoff.Wait(ctx, attempt-1); err != nil {
			return err
		}
		if err := r.completeAgain(ctx, w); err != nil {
			return err
		}
	}
}

// ground puts a change on the entity's own row, as far as what was read does not say enough. An entity that was read
// through a copy is compared with its own row: a program without the index may have changed it and left the copy
// behind, so the copy's ETag would guard nothing. Copies that such a program left behind where the entity's indexes
// would have them are found, to be taken over or removed. Requests: none, for an entity that was read by its own key
// and lists all indexes.
func (r *Repository[T]) ground(ctx context.Context, w *work[T]) error {
	old := w.change.old
	if old == nil {
		return nil
	}
	if old.owner != any(r) {
		// Another repository, or a view without patterns, remembers other things of it.
		v, _, err := r.whole(ctx, w.op, &Meta{ETag: w.etag, state: old})
		if err != nil {
			return err
		}
		meta := r.primary.codec.meta(v)
		old, w.change.old, w.etag = meta.state, meta.state, meta.ETag
	}
	if old.isCopy() {
		row, err := r.table.readRow(ctx, old.key)
		if err != nil {
			return err
		}
		same := row.writeID != "" && row.writeID == old.writeID
		if old.version != "" {
			same = row.etag == old.version
		}
		if row.isCopy || !same {
			return &Error{Key: old.key, Kind: ErrConflict}
		}
		own := *old
		own.row, own.version = old.key.Row, ""
		w.change.old, w.etag = &own, row.etag
	}
	strays := old.rows(strayMemory)
	keys := make([]Key, len(strays))
	for i := range strays {
		keys[i] = Key{old.key.Partition, strays[i].rowKey}
	}
	for row, err := range r.table.rawRows().getMany(ctx, keys, nil) {
		if err != nil {
			return err
		}
		if row.isNearCopy() && row.primary == old.key.Row {
			w.change.adopt(row)
		}
	}
	return nil
}

// startsOver reports whether planning anew can help, and whether the next plan knows more than this one, d, did.
func (r *Repository[T]) startsOver(ctx context.Context, c *Change, d *draft, err error) (again, learned bool) {
	e, ok := err.(*Error)
	if !ok || errors.Is(err, ErrUnknownOutcome) {
		return false, false
	}
	moved := errors.Is(e.Kind, ErrConflict) || errors.Is(e.Kind, ErrExists) || errors.Is(e.Kind, ErrNotFound)
	switch e.role {
	case roleShared:
		return moved, false
	case roleAdopted:
		delete(c.adopted, e.Key.Row)
		return moved, false
	case roleStale:
		if !errors.Is(e.Kind, ErrNotFound) {
			return false, false
		}
		if c.gone == nil {
			c.gone = map[string]azcore.ETag{}
		}
		_, known := c.gone[e.Key.Row] // of a companion that has changed since
		c.gone[e.Key.Row] = d.operations[max(e.Change, 1)-1].owner
		return true, !known
	case roleUnique:
		if errors.Is(e.Kind, ErrDuplicate) && !d.isStaged(e.Change-1) {
			return r.takeOver(ctx, c, e.Key)
		}
	}
	return false, false
}

// takeOver looks at the row that has an index key which the change wants. A copy that was left behind, by a program that
// writes the entities without this index, is in nobody's way: it is the entity's own, or its owner is gone, or was
// written since without it and has other keys now. The row's ETag guards against an owner who comes back meanwhile.
func (r *Repository[T]) takeOver(ctx context.Context, c *Change, key Key) (again, learned bool) {
	row, err := r.table.readRow(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return true, false // given up since
	}
	if err != nil || !row.isNearCopy() {
		return false, false
	}
	if row.primary != c.Key.Row {
		owner, own, err := r.look(ctx, c.Kind.String(), Key{key.Partition, row.primary})
		if err != nil || own != nil && own.writeID == row.writeID {
			return false, false
		}
		if owner != nil {
			rows, err := r.rowsOf(owner, own.key, own.properties)
			if err != nil || repeats(rows, key.Row) {
				return false, false
			}
		}
	}
	c.adopt(row)
	return true, true
}

// adopt makes the plan take over a copy that was left behind.
func (c *Change) adopt(row *storedRow) {
	if c.adopted == nil {
		c.adopted = map[string]azcore.ETag{}
	}
	c.adopted[row.key.Row] = row.etag
}

// store makes the properties to store of the entity, once for all attempts.
func (r *Repository[T]) store(ctx context.Context, w *work[T]) error {
	if w.change.Kind == ChangeDelete || w.change.Stored != nil {
		return nil
	}
	if w.change.Kind == ChangeMerge {
		w.change.base = w.base
		p, err := r.transform(ctx, &w.change, w.change.given)
		switch {
		case err != nil:
			return err
		case w.change.whole:
			w.change.Stored = p
		default:
			w.merged, w.change.Stored = p, overlay(w.base, p)
		}
		return nil
	}
	p, err := r.primary.codec.Encode(w.change.Entity.(*T))
	if err != nil {
		return err
	}
	if err := checkReserved(p); err != nil {
		return invalid("", err)
	}
	if err := r.checkMirror(&w.change, p); err != nil {
		return err
	}
	w.change.Stored, err = r.transform(ctx, &w.change, p)
	return err
}

// transform turns properties into those to store.
func (r *Repository[T]) transform(ctx context.Context, c *Change, p Properties) (Properties, error) {
	for _, t := range r.transformers {
		var err error
		if p, err = t.Store(ctx, c, p); err != nil {
			return nil, patternError(t, err, ErrInvalid)
		}
	}
	return p, nil
}

// checkMirror compares the entity with what will be read of it. Keys that depend on anything else, such as a time's zone
// or a field that is not stored, would be others after the next read, and rows would be left behind for good.
func (r *Repository[T]) checkMirror(c *Change, p Properties) error {
	v, mirror := c.Entity.(*T), new(T)
	if err := r.primary.codec.Decode(p, mirror); err != nil {
		return err
	}
	r.primary.codec.setKey(mirror, c.Key)
	if !c.standIn && r.schema.Key(mirror) != c.Key {
		return invalidf("", "its key depends on something that is not stored: it would be another after the next read")
	}
	for _, x := range r.copies {
		given, err := x.Copies(v)
		if err != nil {
			return patternError(x, err, ErrInvalid)
		}
		read, err := x.Copies(mirror)
		if err != nil || !slices.EqualFunc(given, read, func(a, b Copy) bool { return a.RowKey == b.RowKey }) {
			return patternError(x, errUnstoredKeys, ErrInvalid)
		}
	}
	for _, x := range r.rememberers {
		given, err := x.Remember(v, p)
		if err != nil {
			return patternError(x, err, ErrInvalid)
		}
		if read, err := x.Remember(mirror, p); err != nil || !slices.Equal(given, read) {
			return patternError(x, errUnstoredKeys, ErrInvalid)
		}
	}
	return r.checkOutsideMirror(v, mirror)
}

var errUnstoredKeys = errors.New("its keys depend on something that is not stored: they would be others after the next read")

// settle brings the written value's Meta up to date.
func (r *Repository[T]) settle(v *T, kind ChangeKind, next *state, etag azcore.ETag) {
	if v == nil {
		return
	}
	meta := r.primary.codec.meta(v)
	if kind == ChangeDelete {
		meta.ETag, meta.state = "", nil
		return
	}
	meta.ETag, meta.state = etag, next
}

// intentOf names everything outside that a change can touch.
func (r *Repository[T]) intentOf(ctx context.Context, w *work[T]) (Intent, error) {
	intent := Intent{ID: w.change.ID, Repository: r.name(), Key: w.change.Key, Outside: map[string][]string{}}
	if err := r.nameOutside(w, &intent); err != nil {
		return intent, err
	}
	for _, p := range r.intents {
		keys, err := p.OutsideKeys(ctx, &w.change)
		if err != nil {
			return intent, patternError(p, err, ErrInvalid)
		}
		if len(keys) > 0 {
			intent.Outside[p.PatternName()] = keys
		}
	}
	return intent, nil
}
