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

// OutsideWriter writes one pattern's copies of one entity, for one message. Each write is one transaction of the copy and
// of the claim that says whose it is: the service refuses it where the copy has become another entity's, however late
// the write comes.
type OutsideWriter struct {
	Table  *tables.Table
	Entity tables.Key
	change string   // id of the message's change
	own    []string // the keys that the message names
}

// commit writes a copy and its claim. It is the one way to write a row outside of the entity's partition.
func (o *OutsideWriter) commit(ctx context.Context, key tables.Key, operations ...Operation) error {
	if !slices.Contains(o.own, OutsideName(key)) && lease.Holds(ctx, lease.OwnKeys) {
		return fmt.Errorf("the message does not name the key")
	}
	_, err := Commit(ctx, o.Table, "Reconcile", operations...)
	return err
}

// Claim is the operation on the claim of a copy.
func (o *OutsideWriter) Claim(verb wire.Verb, key tables.Key, reserved string) Operation {
	op := Operation{Verb: verb, Key: ClaimKey(key, o.Entity, reserved), primary: &o.Entity.Row,
		outside: outsideFacts{Is: true, Partition: o.Entity.Partition, Reserved: reserved, IsClaim: true, Claim: key.Row}}
	if verb != wire.VerbInsert {
		op.IfMatch = azcore.ETagAny
	}
	return op
}

// copyOperation makes the row of a copy, to be put over whatever is there.
func (r *Engine) copyOperation(p *Pattern, entity tables.Key, copied *driver.OutsideCopy, stored tables.Properties, incarnation, version string) Operation {
	return Operation{Verb: wire.VerbReplace, Key: copied.Key, properties: stored.Only(copied.Keep), incarnation: incarnation,
		primary: &entity.Row, Meaning: Meaning{Pattern: p.Name}, outside: outsideFacts{Is: true, Partition: entity.Partition, Version: version}}
}

// reconcileCopies makes the copies that the intent names of one pattern agree with the entity as it was seen: first those
// that it has, so that it is found all the time, then those that it has no longer. ErrDuplicate, for keys that are another
// entity's, comes once all others are done.
func (r *Engine) reconcileCopies(ctx context.Context, p *Pattern, intent driver.Intent, seen *snapshot, fresh map[string]bool) error {
	o := &OutsideWriter{Table: p.Outside.Table, Entity: intent.Key, change: intent.ID, own: intent.Outside[p.Name]}
	copies, err := seen.copies.Outside(p)
	if err != nil {
		return err
	}
	var taken error
	for i := range copies {
		if !slices.Contains(o.own, OutsideName(copies[i].Key)) && lease.Holds(ctx, lease.OwnKeys) {
			continue // another message names it
		}
		row := r.copyOperation(p, intent.Key, &copies[i], seen.row.Properties, seen.row.Incarnation, string(seen.row.ETag))
		switch err := o.place(ctx, row, Reserves(p), fresh[FreshName(p, copies[i].Key)]); {
		case errors.Is(err, tables.ErrDuplicate):
			taken = cmp.Or(taken, err)
		case err != nil:
			return err
		}
	}
	for _, name := range o.own {
		key, err := ParseOutsideName(name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(copies, func(c driver.OutsideCopy) bool { return c.Key == key }) {
			continue
		}
		if !Reserves(p) {
			err = o.remove(ctx, key)
		} else {
			err = o.removeReserved(ctx, key, func(ctx context.Context) (bool, error) { return r.hasCopy(ctx, p, intent.Key, key, seen) })
		}
		if err != nil {
			return err
		}
	}
	return taken
}

// hasCopy reads whether an entity has an outside copy under a key now. seen is the entity as it was read last.
func (r *Engine) hasCopy(ctx context.Context, p *Pattern, entity, key tables.Key, seen *snapshot) (bool, error) {
	now, err := r.refresh(ctx, "Reconcile", entity, seen)
	if err != nil {
		return false, err
	}
	return now.copies.has(p, key)
}

// placeAttempts bounds the ways that place tries, while rivals change what is there.
const placeAttempts = 8

// place puts a copy where it belongs. What is there decides how: the entity's own copy is written over, a reservation is
// filled, a free key is claimed. fresh says that the change has just added the key, so that it is expected to be reserved,
// or free.
func (o *OutsideWriter) place(ctx context.Context, row Operation, reserves, fresh bool) error {
	update := []Operation{row, o.Claim(wire.VerbMerge, row.Key, "")}
	insert := row
	insert.Verb, insert.role = wire.VerbInsert, roleUnique
	claim := []Operation{insert, o.Claim(wire.VerbInsert, row.Key, "")}
	fill := []Operation{row, o.Claim(wire.VerbDelete, row.Key, o.change), o.Claim(wire.VerbInsert, row.Key, "")}

	unclaimed := false // the claim of the change's reservation is not there
	try, mayFill := update, reserves
	switch {
	case fresh && reserves:
		try, mayFill = fill, false
	case fresh:
		try = claim
	}
	for range placeAttempts {
		err := o.commit(ctx, row.Key, try...)
		switch {
		case err == nil || errors.Is(err, tables.ErrUnknownOutcome):
			return err
		case errors.Is(err, tables.ErrDuplicate): // of claim: the key is taken
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
		case errors.Is(err, tables.ErrNotFound) && mayFill: // of update: the claim is not there, and may be that of the reservation still
			try, mayFill = fill, false
		case errors.Is(err, tables.ErrNotFound): // of update and fill: the claim is not there
			unclaimed = unclaimed || len(try) == len(fill)
			try = claim
		case errors.Is(err, tables.ErrExists), errors.Is(err, tables.ErrConflict): // the claim is there, or the copy changed
			try = update
		default:
			return err
		}
	}
	return &tables.Error{Key: row.Key, Kind: tables.ErrConflict}
}

// errOthersReservation: another change of the entity has reserved the key. It is on its way, or has died: its own message
// fills the key or frees it. Were it taken over and freed by this one, the other could come to its transaction after a
// third party has taken the key.
var errOthersReservation = errors.New("reserved by another change of the entity, which is under way or was given up; its intent fills or frees it")

// claimOwn plans how to put a row in the place of a copy that should be the entity's own, though its claim says otherwise:
// one that the change itself reserved, or one whose claim was lost. It returns nil when nothing is there any more. unclaimed says
// that the claim of the change's own reservation was lost: a row that is still reserved is filled where it stands, since another
// entity could take a key that is free for a moment.
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

// OwnerOf tells whose a row is, for an error.
func OwnerOf(row *StoredRow) error {
	switch {
	case !row.Outside.Is:
		return errors.New("a row that is no copy has the key")
	case row.Outside.Reserved != "":
		return fmt.Errorf("(%q, %q) has reserved the key in a change that is under way or was given up; its intent frees it", row.Outside.Partition, row.Primary)
	}
	return fmt.Errorf("(%q, %q) has the key", row.Outside.Partition, row.Primary)
}

// remove deletes the entity's copy of a key, and nobody else's.
func (o *OutsideWriter) remove(ctx context.Context, key tables.Key) error {
	err := o.removeClaimed(ctx, key, "")
	if errors.Is(err, tables.ErrNotFound) {
		return nil // it is not, or no longer, the entity's
	}
	return err
}

// removeReserved is remove for patterns that reserve keys. A key that the entity has given up and taken again meanwhile must
// not be free for a moment, or another entity could take it. So the copy is removed as it was before the entity was seen
// without the key: who takes a key again waits for the old copy to go, and then it is another. Requests: 1 where there is
// nothing to remove, else 3, or 2 for a reservation.
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
		if e := AsError(err); e != nil && errors.Is(e.Kind, tables.ErrNotFound) && e.Change == 2 { // somebody else removed the claim
			err = o.commit(ctx, key, Operation{Verb: wire.VerbDelete, Key: key, IfMatch: there.ETag})
		}
		if e := AsError(err); e != nil && (errors.Is(e.Kind, tables.ErrNotFound) || errors.Is(e.Kind, tables.ErrConflict)) && !errors.Is(err, tables.ErrUnknownOutcome) {
			continue // a rival was there first
		}
		return err
	}
	return &tables.Error{Key: key, Kind: tables.ErrConflict}
}

// owns reports whether a row is a copy of the entity, or reserved for one.
func (o *OutsideWriter) owns(row *StoredRow) bool {
	return row.Outside.Is && !row.Outside.IsClaim && row.Primary == o.Entity.Row && row.Outside.Partition == o.Entity.Partition
}

// removeClaimed deletes a copy with one of its claims. It is ErrNotFound when the claim is not there.
func (o *OutsideWriter) removeClaimed(ctx context.Context, key tables.Key, reserved string) error {
	claim := o.Claim(wire.VerbDelete, key, reserved)
	err := o.commit(ctx, key, claim, Operation{Verb: wire.VerbDelete, Key: key, IfMatch: azcore.ETagAny})
	if e := AsError(err); e != nil && errors.Is(e.Kind, tables.ErrNotFound) && e.Change == 2 {
		return o.commit(ctx, key, claim) // somebody else removed the copy alone
	}
	return err
}
