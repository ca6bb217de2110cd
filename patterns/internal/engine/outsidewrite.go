package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// OutsideWriter writes one pattern's copies of one entity, for one message. It writes each copy in one
// transaction with the claim that names the copy's owner. If the copy belongs to another entity when a
// delayed write arrives, the service rejects the write.
type OutsideWriter struct {
	Table  *tables.Table
	Entity tables.Key
	change string   // ID of the message's change
	own    []string // the keys that the message names
}

// commit writes a copy and its claim. All writes of rows outside of the entity's partition go through it.
func (o *OutsideWriter) commit(ctx context.Context, key tables.Key, operations ...Operation) error {
	if !slices.Contains(o.own, driver.JoinKey(key)) && lease.Holds(ctx, lease.OwnKeys) {
		return fmt.Errorf("the intent's message does not name this key, so no row may be written under it")
	}
	_, err := Commit(ctx, o.Table, "Reconcile", operations...)
	return err
}

// Claim returns the operation on the claim of a copy.
func (o *OutsideWriter) Claim(verb wire.Verb, key tables.Key, reserved string) Operation {
	op := Operation{Verb: verb, Key: ClaimKey(key, o.Entity, reserved), primary: &o.Entity.Row,
		outside: outsideFacts{Is: true, Partition: o.Entity.Partition, Reserved: reserved, IsClaim: true, Claim: key.Row}}
	if verb != wire.VerbInsert {
		op.IfMatch = azcore.ETagAny
	}
	return op
}

// copyOperation returns the row of a copy, to overwrite any existing row.
func (r *Engine) copyOperation(p *Pattern, entity tables.Key, copied *driver.OutsideCopy, stored tables.Properties, incarnation, version string) Operation {
	return Operation{Verb: wire.VerbReplace, Key: copied.Key, properties: stored.Only(copied.Keep), incarnation: incarnation,
		primary: &entity.Row, Meaning: Meaning{Pattern: p.Name}, outside: outsideFacts{Is: true, Partition: entity.Partition, Version: version}}
}

// reconcileCopies makes one pattern's copies of an entity match a snapshot of the entity, under the keys that
// the intent names. It writes the required copies before it removes the others, so that readers can always
// find the entity. If some keys belong to another entity, it first reconciles all others, then returns
// ErrDuplicate.
func (r *Engine) reconcileCopies(ctx context.Context, p *Pattern, change string, t *target) error {
	seen := t.seen
	o := &OutsideWriter{Table: p.Outside.Table, Entity: t.Key, change: change, own: t.Outside[p.Name]}
	copies, err := seen.copies.Outside(p)
	if err != nil {
		return err
	}
	var taken error
	for i := range copies {
		if !slices.Contains(o.own, driver.JoinKey(copies[i].Key)) && lease.Holds(ctx, lease.OwnKeys) {
			continue // this message does not name the key
		}
		if slices.Contains(t.placed, HeldName(p, driver.JoinKey(copies[i].Key))) {
			continue
		}
		row := r.copyOperation(p, t.Key, &copies[i], seen.row.Properties, seen.row.Incarnation, string(seen.row.ETag))
		switch err := o.place(ctx, row, Reserves(p), t.expects(p, HeldName(p, driver.JoinKey(copies[i].Key)))); {
		case errors.Is(err, tables.ErrDuplicate):
			taken = cmp.Or(taken, err)
		case err != nil:
			return err
		}
	}
	for _, name := range o.own {
		key, err := driver.SplitKey(name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(copies, func(c driver.OutsideCopy) bool { return c.Key == key }) {
			continue
		}
		if !Reserves(p) {
			err = o.remove(ctx, key)
		} else {
			err = o.removeReserved(ctx, key, func(ctx context.Context) (bool, error) { return r.hasCopy(ctx, p, t.Key, key, seen) })
		}
		if err != nil {
			return err
		}
	}
	return taken
}

// hasCopy reads the entity again and reports whether it requires an outside copy under a key. seen is the
// entity's last snapshot.
func (r *Engine) hasCopy(ctx context.Context, p *Pattern, entity, key tables.Key, seen *snapshot) (bool, error) {
	now, err := r.refresh(ctx, "Reconcile", entity, seen)
	if err != nil {
		return false, err
	}
	return now.copies.has(p, key)
}

// place writes a copy under its key. Depending on the present row it overwrites the entity's own copy, fills a reservation, or claims a
// free key. It first tries the write that fits the expected row.
func (o *OutsideWriter) place(ctx context.Context, row Operation, reserves bool, expected expectation) error {
	update, claim, fill := o.first(row, expectOwn), o.first(row, expectFree), o.first(row, expectReserved)

	unclaimed := false // the claim of the change's reservation does not exist
	try, mayFill := o.first(row, expected), reserves && expected != expectReserved
	for range placeAttempts {
		err := o.commit(ctx, row.Key, try...)
		switch {
		case err == nil || errors.Is(err, tables.ErrUnknownOutcome):
			return err
		case errors.Is(err, tables.ErrDuplicate): // claim returned it: the key is taken
			try, err = o.claimOwn(ctx, row, "", unclaimed)
			if errors.Is(err, errOthersReservation) {
				return nil
			}
			if err != nil {
				return err
			}
			if try == nil {
				try = claim
			}
		case errors.Is(err, tables.ErrNotFound) && mayFill: // update returned it: the claim does not exist, or it is still the claim of the reservation
			try, mayFill = fill, false
		case errors.Is(err, tables.ErrNotFound): // update and fill returned it: the claim does not exist
			unclaimed = unclaimed || len(try) == len(fill)
			try = claim
		case errors.Is(err, tables.ErrExists), errors.Is(err, tables.ErrConflict): // the claim exists, or the copy changed
			try = update
		default:
			return err
		}
	}
	return &tables.Error{Key: row.Key, Kind: tables.ErrConflict}
}

// errOthersReservation reports that another change of the entity has reserved the key. That change may be in
// progress, or its writer may have died; the holder of its message fills or frees the key. If this change
// took over the reservation and freed the key, another entity could take the key before the other change
// sends its transaction.
var errOthersReservation = errors.New("reserved by another change of the entity, which is under way or was given up; its intent fills or frees it")

// claimOwn plans how to replace a copy that belongs to the entity although its claim does not match: the
// change itself reserved it, or its claim was lost. It returns nil if no row exists any more. unclaimed means
// that the claim of the change's own reservation was lost. claimOwn then fills the reserved row in place: if
// it deleted the row first, another entity could take the key.
func (o *OutsideWriter) claimOwn(ctx context.Context, row Operation, reserve string, unclaimed bool) ([]Operation, error) {
	there, err := readSystem(ctx, o.Table, row.Key)
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !o.owns(there) {
		return nil, &tables.Error{Key: row.Key, Kind: tables.ErrDuplicate, Pattern: row.Pattern, Err: OwnerOf(there)}
	}
	if there.Outside.Reserved != "" && there.Outside.Reserved != o.change {
		return nil, &tables.Error{Key: row.Key, Kind: tables.ErrDuplicate, Pattern: row.Pattern, Err: errOthersReservation}
	}
	if reserve != "" && there.Outside.Reserved == "" {
		return nil, errOwnCopy
	}
	own := row
	own.Verb, own.IfMatch = wire.VerbReplace, there.ETag
	operations := []Operation{own, o.Claim(wire.VerbInsert, row.Key, reserve)}
	if there.Outside.Reserved != reserve && !(unclaimed && there.Outside.Reserved == o.change) {
		operations = append(operations, o.Claim(wire.VerbDelete, row.Key, there.Outside.Reserved))
	}
	return operations, nil
}

// OwnerOf describes the owner of a row, for an error.
func OwnerOf(row *StoredRow) error {
	switch {
	case !row.Outside.Is:
		return errors.New("a row that is not a copy of an entity has this key; delete it, or use another table or index name")
	case row.Outside.Reserved != "":
		return fmt.Errorf("(%q, %q) has reserved the key in a change that is under way or was given up; its intent frees it", row.Outside.Partition, row.Primary)
	}
	return fmt.Errorf("entity (%q, %q) owns this key", row.Outside.Partition, row.Primary)
}

// remove deletes the copy under a key if it belongs to the entity.
func (o *OutsideWriter) remove(ctx context.Context, key tables.Key) error {
	err := o.removeClaimed(ctx, key, "")
	if errors.Is(err, tables.ErrNotFound) {
		return nil // the copy does not, or no longer, belong to the entity
	}
	return err
}

// removeReserved does what remove does, for patterns that reserve keys. An entity may release a key and take
// it again later; a delayed removal must not delete the later copy, or another entity could take the key. So
// removeReserved reads the copy's ETag, then the entity, and deletes the copy under that ETag only if the
// entity does not have the key. A later change that takes the key again waits until the old copy is deleted,
// so its copy has another ETag. Requests: 1 if there is nothing to remove, else 3, or 2 for a reservation.
func (o *OutsideWriter) removeReserved(ctx context.Context, key tables.Key, has func(context.Context) (bool, error)) error {
	for range placeAttempts {
		there, err := readSystem(ctx, o.Table, key)
		if errors.Is(err, tables.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		reserved := there.Outside.Reserved
		if !o.owns(there) || reserved != "" && reserved != o.change {
			return nil
		}
		if reserved == "" {
			if again, err := has(ctx); err != nil || again {
				return err
			}
		}
		err = o.commit(ctx, key, Operation{Verb: wire.VerbDelete, Key: key, IfMatch: there.ETag}, o.Claim(wire.VerbDelete, key, reserved))
		if e := AsError(err); e != nil && errors.Is(e.Kind, tables.ErrNotFound) && e.Change == 2 { // another process removed the claim
			err = o.commit(ctx, key, Operation{Verb: wire.VerbDelete, Key: key, IfMatch: there.ETag})
		}
		if e := AsError(err); e != nil && (errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrConflict)) {
			continue // a concurrent writer changed it first
		}
		return err
	}
	return &tables.Error{Key: key, Kind: tables.ErrConflict}
}

// owns reports whether a row is a copy of the entity, or a reservation for such a copy.
func (o *OutsideWriter) owns(row *StoredRow) bool {
	return row.Outside.Is && !row.Outside.IsClaim && row.Primary == o.Entity.Row && row.Outside.Partition == o.Entity.Partition
}

// removeClaimed deletes a copy together with one of its claims. It returns ErrNotFound if the claim does not
// exist.
func (o *OutsideWriter) removeClaimed(ctx context.Context, key tables.Key, reserved string) error {
	claim := o.Claim(wire.VerbDelete, key, reserved)
	err := o.commit(ctx, key, claim, Operation{Verb: wire.VerbDelete, Key: key, IfMatch: azcore.ETagAny})
	if e := AsError(err); e != nil && errors.Is(e.Kind, tables.ErrNotFound) && e.Change == 2 {
		return o.commit(ctx, key, claim) // another process removed only the copy
	}
	return err
}
