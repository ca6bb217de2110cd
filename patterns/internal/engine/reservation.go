package engine

import (
	"context"
	"errors"
	"time"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// A unique key outside of the partition is reserved before the entity that takes it is written:
//
//  1. the intent is put, hidden. It names the key;
//  2. one transaction inserts the row of the key and its claim. Both contain the ID of the change; the row
//    also contains the term of the reservation;
//  3. the entity is written, under the ETag that it was read with. The writer measures the term by its own
//    clock from before the first attempt of step 2, and sends no attempt later than a margin before its end;
//    renewals of the message do not extend the term;
//  4. the row is filled under the claim of 2, and the intent is deleted.
//
// If the writer crashes before 3, or reaches 3 too late, the reservation and the intent remain. The next
// holder of the intent frees the key. A holder frees only the reservations of the change that its own message
// names. If the intent was lost, Repair reads the reservation. Until the term and a grace period have passed
// since its Timestamp, Repair leaves the reservation alone. Then it reads the entity, after the reservation,
// so that the entity shows the outcome of the change. If the entity does not require the key, Repair frees it
// under the ETag of the reservation. If the entity requires it, the change was committed, and Repair fills
// the key, whatever its age, under an intent with the ID of that change.

// Reserves reports whether a pattern reserves its keys.
func Reserves(p *Pattern) bool { return p.Outside.ReservationTerm > 0 }

const errReservedTooLong = "the term of the reserved keys ended before the answer to the write of the entity. Where a value takes that long to be uploaded, " +
	"insert the entity without it, and replace it then: a key that stays is not reserved"

// newKey is a key outside of the partition that the change of a member adds, and that the pattern reserves
// first.
type newKey struct {
	member  *Work
	pattern *Pattern
	key     entity.Key
	id      string // the key's name in Set.reserved, which stays the same if the set is planned again
}

// KeysToReserve returns the new keys that the present plan has to reserve, in the order of the requests. Call
// it after Intent, which records in Work.Fresh which keys are new.
func (s *Set) KeysToReserve() ([]newKey, error) {
	var all []newKey
	for _, w := range s.members {
		for _, p := range w.engine.Outside {
			if !Reserves(p) || w.Change.Kind == driver.ChangeDelete {
				continue
			}
			copies, err := w.Change.Copies().Outside(p)
			if err != nil {
				return nil, w.Located(PatternError(p, err, entity.ErrInvalid))
			}
			for i := range copies {
				name := HeldName(p, driver.JoinKey(copies[i].Key))
				if w.Fresh[name] {
					all = append(all, newKey{w, p, copies[i].Key, w.engine.Name() + "\t" + w.Change.Key.Row + "\t" + name})
				}
			}
		}
	}
	return all, nil
}

// withinTerm ends the lease of a set a margin before the shortest term of the keys that the set reserves. Call
// done once the transaction was sent: the term does not limit later requests.
func withinTerm(ctx context.Context, keys []newKey) (_ context.Context, done func()) {
	if len(keys) == 0 {
		return ctx, func() {}
	}
	term := keys[0].pattern.Outside.ReservationTerm
	for _, k := range keys {
		term = min(term, k.pattern.Outside.ReservationTerm)
	}
	since := time.Now()
	if l := lease.From(ctx); l != nil {
		return ctx, l.Bound(since, term, errReservedTooLong).Lift
	}
	return lease.Within(ctx, since, term, errReservedTooLong) // the runner is not an eventual.Queue, so the context has no lease
}

// reserve reserves new keys before the entities are written: the keys of several members together, the others one by
// one. It returns ErrDuplicate for a key that another entity owns.
func (s *Set) reserve(ctx context.Context, change string, keys []newKey) error {
	s.reserved = map[string]bool{}
	if len(s.members) > 1 {
		if err := s.reserveTogether(ctx, change, keys); err != nil {
			return err
		}
	}
	for _, k := range keys {
		if s.reserved[k.id] {
			continue
		}
		w, p := k.member, k.pattern
		o := &OutsideWriter{Table: p.Outside.Table, Entity: w.Change.Key, change: change, own: []string{driver.JoinKey(k.key)}} // memberOf has put the key into the intent
		err := o.reserve(ctx, p, k.key)
		if errors.Is(err, errOwnCopy) {
			return w.Located(w.engine.ownKeyTaken(ctx, w, p, k.key))
		}
		s.prepared = true
		if err != nil {
			return w.Located(PatternError(p, err, entity.ErrInvalid))
		}
		s.reserved[k.id] = true
	}
	return nil
}

// errOwnCopy reports that the entity itself already has a copy under the key to reserve.
var errOwnCopy = errors.New("the entity already has the key, or an unfinished change of the entity is releasing it; read the entity again and repeat the change")

// ownKeyTaken decides what to do about a new key under which the entity already has a copy. Usually the change
// is based on an outdated version of the entity. Otherwise an earlier change of the entity is releasing the
// key, and its intent may still remove the copy at any moment. A reservation must not replace the copy, since
// readers could then no longer find the entity by this key.
func (r *Engine) ownKeyTaken(ctx context.Context, w *Work, p *Pattern, key entity.Key) error {
	now, err := r.refresh(ctx, w.Op, w.Change.Key, nil)
	if err != nil {
		return err
	}
	switch {
	case w.Change.Kind == driver.ChangeInsert && now.row != nil:
		return &entity.Error{Key: w.Change.Key, Kind: entity.ErrExists}
	case w.Change.Kind != driver.ChangeInsert && (now.row == nil || now.row.ETag != w.Etag):
		return &entity.Error{Key: w.Change.Key, Kind: entity.ErrConflict}
	}
	return &entity.Error{Key: key, Kind: entity.ErrDuplicate, Pattern: p.Name, Err: errOwnCopy}
}

// reserve inserts a row that reserves the key for the message's change.
func (o *OutsideWriter) reserve(ctx context.Context, p *Pattern, key entity.Key) error {
	claim := o.reservation(p, key)
	row, try := claim[0], claim
	for range placeAttempts {
		err := o.commit(ctx, key, try...)
		switch {
		case errors.Is(err, entity.ErrUnknownOutcome):
			return err
		case errors.Is(err, entity.ErrDuplicate):
			if try, err = o.claimOwn(ctx, row, o.change, false); err != nil {
				return err
			}
			if try == nil {
				try = claim
			}
		case errors.Is(err, entity.ErrConflict), errors.Is(err, entity.ErrNotFound), errors.Is(err, entity.ErrExists): // a concurrent writer has taken the key meanwhile
			try = claim
		default:
			return err
		}
	}
	return &entity.Error{Key: key, Kind: entity.ErrConflict}
}
