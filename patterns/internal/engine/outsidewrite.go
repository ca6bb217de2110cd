package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/keyrange"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// OutsideWriter writes one pattern's copies of one entity, for one message. It writes each copy in one
// transaction with the claim that names the copy's owner. So the service rejects a delayed write if the copy
// belongs to another entity when the write arrives.
type OutsideWriter struct {
	Table  *core.Table
	Entity entity.Key
	change string   // ID of the message's change
	own    []string // the keys that the message names
}

// commit writes a copy and its claim in one transaction. It refuses a key that the holder's message does not
// name.
func (o *OutsideWriter) commit(ctx context.Context, key entity.Key, operations ...tablerow.Row) error {
	if !slices.Contains(o.own, driver.JoinKey(key)) && lease.Holds(ctx, lease.OwnKeys) {
		return fmt.Errorf("the intent's message does not name this key, so no row may be written under it")
	}
	_, _, err := o.Table.Commit(ctx, opReconcile, operations...)
	return err
}

// Claim returns the operation on the claim of a copy.
func (o *OutsideWriter) Claim(verb wire.Verb, key entity.Key, reserved string) tablerow.Row {
	op := tablerow.Row{Verb: verb, Key: ClaimKey(key, o.Entity, reserved), Own: tablerow.Own{IsCopy: true, Primary: o.Entity.Row,
		Outside: tablerow.Outside{Is: true, Partition: o.Entity.Partition, Reserved: reserved, IsClaim: true, Claim: key.Row}}}
	if verb != wire.VerbInsert {
		op.IfMatch = azcore.ETagAny
	}
	return op
}

// copyOperation returns the row of a copy, to overwrite any existing row.
func (r *Engine) copyOperation(p *Pattern, entity entity.Key, copied *driver.OutsideCopy, stored entity.Properties, incarnation, version string) tablerow.Row {
	return tablerow.Row{Verb: wire.VerbReplace, Key: copied.Key, Pattern: p.Name, Properties: stored.Only(copied.Keep), Own: tablerow.Own{Incarnation: incarnation,
		IsCopy: true, Primary: entity.Row, Outside: tablerow.Outside{Is: true, Partition: entity.Partition, Version: version}}}
}

// reconcileCopies makes one pattern's copies of an entity match a snapshot of the entity. It touches only keys
// that the intent names. It writes the required copies before it removes the others, so that readers can always
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
			continue // the message does not name the key, so this holder must not write it
		}
		if slices.Contains(t.placed, HeldName(p, driver.JoinKey(copies[i].Key))) {
			continue
		}
		row := r.copyOperation(p, t.Key, &copies[i], seen.row.Properties, seen.row.Own.Incarnation, string(seen.row.ETag))
		switch err := o.place(ctx, row, Reserves(p), t.expects(p, HeldName(p, driver.JoinKey(copies[i].Key)))); {
		case errors.Is(err, entity.ErrDuplicate):
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
			err = o.removeReserved(ctx, key, func(ctx context.Context) (bool, error) {
				now, err := r.refresh(ctx, opReconcile, t.Key, seen)
				if err != nil {
					return false, err
				}
				return now.copies.has(p, key)
			})
		}
		if err != nil {
			return err
		}
	}
	return taken
}

// place writes a copy under its key. Depending on the row that is stored there, it overwrites the entity's own
// copy, fills the change's reservation, or inserts the copy under a free key. It first tries the write that
// fits what is expected there.
func (o *OutsideWriter) place(ctx context.Context, row tablerow.Row, reserves bool, expected expectation) error {
	update, claim, fill := o.first(row, expectOwn), o.first(row, expectFree), o.first(row, expectReserved)

	unclaimed := false // the claim of the change's reservation does not exist
	try, mayFill := o.first(row, expected), reserves && expected != expectReserved
	for range placeAttempts {
		err := o.commit(ctx, row.Key, try...)
		switch {
		case err == nil || errors.Is(err, entity.ErrUnknownOutcome):
			return err
		case errors.Is(err, entity.ErrDuplicate): // claim returned it: the key is taken
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
		case errors.Is(err, entity.ErrNotFound) && mayFill: // update returned it: the claim does not exist, or it is still the claim of the reservation
			try, mayFill = fill, false
		case errors.Is(err, entity.ErrNotFound): // update and fill returned it: the claim does not exist
			unclaimed = unclaimed || len(try) == len(fill)
			try = claim
		case errors.Is(err, entity.ErrExists), errors.Is(err, entity.ErrConflict): // the claim exists, or the copy changed
			try = update
		default:
			return err
		}
	}
	return &entity.Error{Key: row.Key, Kind: entity.ErrConflict}
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
func (o *OutsideWriter) claimOwn(ctx context.Context, row tablerow.Row, reserve string, unclaimed bool) ([]tablerow.Row, error) {
	there, err := readSystem(ctx, o.Table, row.Key)
	if errors.Is(err, entity.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !o.owns(there) {
		return nil, &entity.Error{Key: row.Key, Kind: entity.ErrDuplicate, Pattern: row.Pattern, Err: OwnerOf(there)}
	}
	if there.Own.Outside.Reserved != "" && there.Own.Outside.Reserved != o.change {
		return nil, &entity.Error{Key: row.Key, Kind: entity.ErrDuplicate, Pattern: row.Pattern, Err: errOthersReservation}
	}
	if reserve != "" && there.Own.Outside.Reserved == "" {
		return nil, errOwnCopy
	}
	own := row
	own.Verb, own.IfMatch = wire.VerbReplace, there.ETag
	operations := []tablerow.Row{own, o.Claim(wire.VerbInsert, row.Key, reserve)}
	if there.Own.Outside.Reserved != reserve && !(unclaimed && there.Own.Outside.Reserved == o.change) {
		operations = append(operations, o.Claim(wire.VerbDelete, row.Key, there.Own.Outside.Reserved))
	}
	return operations, nil
}

// OwnerOf describes the owner of a row, for an error.
func OwnerOf(row *tablerow.Row) error {
	switch {
	case !row.Own.Outside.Is:
		return errors.New("a row that is not a copy of an entity has this key; delete it, or use another table or index name")
	case row.Own.Outside.Reserved != "":
		return fmt.Errorf("(%q, %q) has reserved the key in a change that is under way or was given up; its intent frees it", row.Own.Outside.Partition, row.Own.Primary)
	}
	return fmt.Errorf("entity (%q, %q) owns this key", row.Own.Outside.Partition, row.Own.Primary)
}

// remove deletes the copy under a key, with its claim, if it belongs to the entity.
func (o *OutsideWriter) remove(ctx context.Context, key entity.Key) error {
	claim := o.Claim(wire.VerbDelete, key, "")
	err := o.commit(ctx, key, claim, tablerow.Row{Verb: wire.VerbDelete, Key: key, IfMatch: azcore.ETagAny})
	if e := AsError(err); e != nil && errors.Is(e.Kind, entity.ErrNotFound) && e.Change == 2 {
		err = o.commit(ctx, key, claim) // another process removed only the copy
	}
	if errors.Is(err, entity.ErrNotFound) {
		return nil // the claim does not exist: the copy does not, or no longer, belong to the entity
	}
	return err
}

// removeReserved does what remove does, for patterns that reserve keys. An entity may release a key and take it
// again later; a delayed removal must not delete the later copy, or another entity could take the key. So
// removeReserved reads the copy's ETag, then calls has, which reads the entity and reports whether it has the
// key, and deletes the copy under that ETag only if it does not. A later change that takes the key again waits
// until the old copy is deleted, so its copy has another ETag. Requests: 1 if there is nothing to remove, else
// 2, and those of has unless the row is a reservation; again after each conflict.
func (o *OutsideWriter) removeReserved(ctx context.Context, key entity.Key, has func(context.Context) (bool, error)) error {
	for range placeAttempts {
		there, err := readSystem(ctx, o.Table, key)
		if errors.Is(err, entity.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		reserved := there.Own.Outside.Reserved
		if !o.owns(there) || reserved != "" && reserved != o.change {
			return nil
		}
		if reserved == "" {
			if again, err := has(ctx); err != nil || again {
				return err
			}
		}
		err = o.commit(ctx, key, tablerow.Row{Verb: wire.VerbDelete, Key: key, IfMatch: there.ETag}, o.Claim(wire.VerbDelete, key, reserved))
		if e := AsError(err); e != nil && errors.Is(e.Kind, entity.ErrNotFound) && e.Change == 2 { // another process removed the claim
			err = o.commit(ctx, key, tablerow.Row{Verb: wire.VerbDelete, Key: key, IfMatch: there.ETag})
		}
		if e := AsError(err); e != nil && (errors.Is(err, entity.ErrNotFound) || errors.Is(err, entity.ErrConflict)) {
			continue // a concurrent writer changed it first
		}
		return err
	}
	return &entity.Error{Key: key, Kind: entity.ErrConflict}
}

// owns reports whether a row is a copy of the entity, or a reservation for such a copy.
func (o *OutsideWriter) owns(row *tablerow.Row) bool {
	return row.Own.Outside.Is && !row.Own.Outside.IsClaim && row.Own.Primary == o.Entity.Row && row.Own.Outside.Partition == o.Entity.Partition
}

// The members of a set often have copies in the same partition, such as the partition of a global index. The
// engine writes the copies of several members in one transaction, and reads their entities again together. If
// the service refuses a transaction, its copies are written one by one.

// batchRow is one copy of a member, or one key that a member reserves, to be written with those of other
// members.
type batchRow struct {
	target     *target // of a copy to write; nil for a key to reserve
	name       string  // the HeldName of a copy to write, or the newKey.id of a key to reserve
	key        entity.Key
	operations []tablerow.Row
	other      []tablerow.Row // the operations to try if the first ones are refused; nil if there are none
}

// placeTogether writes the copies of several targets, in as few transactions for each partition as possible. It
// records each copy that it has written in target.placed; reconcileCopies writes the other copies. After an
// error, the caller must not send anything more.
func (r *Engine) placeTogether(ctx context.Context, change string, targets []*target) error {
	if len(targets) < 2 {
		return nil
	}
	for _, p := range r.Outside {
		var all []batchRow
		for _, t := range targets {
			rows, err := r.copiesOf(p, change, t)
			if err != nil {
				return nil // reconcileCopies reports the error for the member
			}
			all = append(all, rows...)
		}
		if err := commitTogether(ctx, p.Outside.Table, all, func(row batchRow) { row.target.placed = append(row.target.placed, row.name) }); err != nil {
			return PatternError(p, err, entity.ErrInvalid)
		}
	}
	return nil
}

// copiesOf returns those copies of a target that the target's message names.
func (r *Engine) copiesOf(p *Pattern, change string, t *target) (all []batchRow, err error) {
	copies, err := t.seen.copies.Outside(p)
	if err != nil || t.seen.row == nil {
		return nil, err
	}
	o := &OutsideWriter{Table: p.Outside.Table, Entity: t.Key, change: change, own: t.Outside[p.Name]}
	for i := range copies {
		if !slices.Contains(o.own, driver.JoinKey(copies[i].Key)) {
			continue
		}
		row := r.copyOperation(p, t.Key, &copies[i], t.seen.row.Properties, t.seen.row.Own.Incarnation, string(t.seen.row.ETag))
		name := HeldName(p, driver.JoinKey(copies[i].Key))
		x := batchRow{target: t, name: name, key: row.Key, operations: o.first(row, t.expects(p, name))}
		switch unknown := t.fresh == nil && t.free == nil; { // true in a worker, whose message does not say which keys are new
		case unknown && Reserves(p):
			x.other = o.first(row, expectReserved)
		case unknown:
			x.other = o.first(row, expectFree)
		}
		all = append(all, x)
	}
	return all, nil
}

// commitTogether writes rows of one table, in as few transactions for each partition as possible, and calls
// done for each row that was written. It does not write a row that is the only one of its partition or of the
// last transaction. It returns no error for a refused row: the caller writes that row alone and gets the
// reason. It returns an error only if the outcome is unknown: ErrUnknownOutcome.
func commitTogether(ctx context.Context, table *core.Table, all []batchRow, done func(batchRow)) error {
	partitions := map[string][]batchRow{}
	var order []string
	for _, row := range all {
		if partitions[row.key.Partition] == nil {
			order = append(order, row.key.Partition)
		}
		if !slices.ContainsFunc(partitions[row.key.Partition], func(o batchRow) bool { return o.key == row.key }) {
			partitions[row.key.Partition] = append(partitions[row.key.Partition], row)
		}
	}
	refused := func(err error, rows []batchRow) int {
		e, at := AsError(err), 0
		return slices.IndexFunc(rows, func(row batchRow) bool {
			at += len(row.operations)
			return e != nil && e.Change > 0 && e.Change <= at && Lost(err)
		})
	}
	write := func(rows []batchRow) error {
		var operations []tablerow.Row
		for _, row := range rows {
			operations = append(operations, row.operations...)
		}
		if _, _, err := table.Commit(ctx, opReconcile, operations...); err != nil {
			table.Account().Telemetry().Refused(ctx, table.Name(), len(rows), codeOf(err))
			return err
		}
		for _, row := range rows {
			done(row)
		}
		return nil
	}
	swap := func(row *batchRow) bool {
		if row.other != nil {
			row.operations, row.other = row.other, row.operations
		}
		return row.other != nil
	}
	divided := division.Divided[batchRow]{
		Refused: refused,
		Write:   func(rows []batchRow) error { return division.Alternately(rows, write, refused, swap) },
		Ends: func(err error) bool {
			return ctx.Err() != nil || Ends(err) || errors.Is(err, entity.ErrUnknownOutcome)
		},
	}
	for _, partition := range order {
		rows := partitions[partition]
		for len(rows) > 1 {
			n, size := 0, 0
			for ; n < len(rows) && size+len(rows[n].operations) <= entity.MaxTransactionOperations; n++ {
				size += len(rows[n].operations)
			}
			if _, err := divided.Run(rows[:n:n]); errors.Is(err, entity.ErrUnknownOutcome) {
				return err
			}
			rows = rows[n:]
		}
	}
	return nil
}

// reserveTogether reserves the new keys of several members, in as few transactions for each partition as
// possible.
func (s *Set) reserveTogether(ctx context.Context, change string, keys []newKey) error {
	rows := map[*core.Table][]batchRow{}
	var order []*core.Table // so that the requests of a change are in the same order each time
	for _, k := range keys {
		o := &OutsideWriter{Table: k.pattern.Outside.Table, Entity: k.member.Change.Key, change: change}
		if rows[o.Table] == nil {
			order = append(order, o.Table)
		}
		rows[o.Table] = append(rows[o.Table], batchRow{name: k.id, key: k.key, operations: o.reservation(k.pattern, k.key)})
	}
	for _, table := range order {
		all := rows[table]
		if len(all) < 2 {
			continue
		}
		s.prepared = true
		err := commitTogether(ctx, table, all, func(row batchRow) { s.reserved[row.name] = true })
		if err != nil {
			return s.located(err)
		}
	}
	return nil
}

// FetchMany reads rows of a table by their keys. Requests: see keyrange.Reader.Read.
func FetchMany(ctx context.Context, table *core.Table, op string, keys []entity.Key) (map[entity.Key]*tablerow.Row, error) {
	found := make(map[entity.Key]*tablerow.Row, len(keys))
	wanted := make(map[entity.Key]bool, len(keys))
	all := make([]keyrange.Key, len(keys))
	for i, key := range keys {
		wanted[key], all[i] = true, keyrange.Key(key)
	}
	var mu sync.Mutex
	note := func(row *tablerow.Row) {
		mu.Lock()
		defer mu.Unlock()
		if wanted[row.Key] {
			found[row.Key] = row
		}
	}
	err := keyrange.Reader{
		Page: func(ctx context.Context, partition string, span compoundkey.Span, size int) (last string, more bool, err error) {
			src := table.Source(span)
			src.Problems, src.Load = true, func(_ context.Context, row *tablerow.Row, _ []string) (any, error) { return row.Clone(), nil }
			page, next, err := core.NewQuery(src).Partition(partition).PageSize(size).Page(ctx, "")
			if err != nil {
				return "", false, errs.Amend(err, func(e *entity.Error) { e.Op = op })
			}
			for _, v := range page.Values {
				row := v.(*tablerow.Row)
				note(row)
				last = row.Key.Row
			}
			return last, next != "", nil
		},
		One: func(ctx context.Context, key keyrange.Key) error {
			row, err := table.Get(ctx, op, entity.Key(key), nil)
			if errors.Is(err, entity.ErrNotFound) {
				return nil
			}
			if err == nil {
				note(row)
			}
			return err
		},
		Unordered: table.Account().IsCosmos(),
	}.Read(ctx, all)
	return found, err
}

// FetchOwnAll reads the own rows of entities, nil for one that does not exist. A returned row may be an entity
// of another repository; then rows that name this entity as their owner may belong to that repository, too.
// Requests: as FetchMany.
func (r *Engine) FetchOwnAll(ctx context.Context, op string, keys []entity.Key) ([]*tablerow.Row, error) {
	rows := make([]*tablerow.Row, len(keys))
	found, err := FetchMany(ctx, r.Table, op, keys)
	for i, key := range keys {
		if row := found[key]; row != nil && !row.Own.IsCopy {
			rows[i] = row
		}
	}
	return rows, err
}

// readTargets reads the entities of targets again. For each target it sets target.now, or target.err after a
// failure. If the entity is unchanged, target.now is the same pointer as target.seen.
func (r *Engine) readTargets(ctx context.Context, targets []*target) {
	keys := make([]entity.Key, len(targets))
	for i, t := range targets {
		keys[i] = t.Key
	}
	rows, err := r.FetchOwnAll(ctx, opReconcile, keys)
	for i, t := range targets {
		if t.err = err; err == nil {
			t.now, t.err = r.snapshotOf(ctx, opReconcile, t.Key, rows[i], t.seen)
		}
	}
}

// expectation is what the holder of an intent expects under the key of a copy, before it writes the copy.
type expectation uint8

const (
	expectOwn      expectation = iota // the entity's copy
	expectReserved                    // the reservation that the holder's own change made
	expectFree                        // nothing

	placeAttempts = 8 // maximum number of attempts of place, reserve and removeReserved while concurrent writers change the row
)

// expects returns what is probably stored under the key of a copy. If the expectation is wrong, the service refuses the write.
func (t *target) expects(p *Pattern, name string) expectation {
	switch {
	case t.free[name], t.fresh[name] && !Reserves(p):
		return expectFree
	case t.fresh[name]:
		return expectReserved
	}
	return expectOwn
}

// first returns the operations that succeed if the expectation is right: they overwrite the entity's own
// copy, fill the change's own reservation, or insert the copy under a free key.
func (o *OutsideWriter) first(row tablerow.Row, e expectation) []tablerow.Row {
	switch e {
	case expectFree:
		row.Verb, row.Role = wire.VerbInsert, tablerow.RoleUnique
		return []tablerow.Row{row, o.Claim(wire.VerbInsert, row.Key, "")}
	case expectReserved:
		return []tablerow.Row{row, o.Claim(wire.VerbDelete, row.Key, o.change), o.Claim(wire.VerbInsert, row.Key, "")}
	}
	return []tablerow.Row{row, o.Claim(wire.VerbMerge, row.Key, "")}
}

// reservation returns the operations that reserve a key for the change whose message the writer holds.
func (o *OutsideWriter) reservation(p *Pattern, key entity.Key) []tablerow.Row {
	row := tablerow.Row{Verb: wire.VerbInsert, Key: key, Pattern: p.Name, Role: tablerow.RoleUnique, Own: tablerow.Own{IsCopy: true, Primary: o.Entity.Row,
		Outside: tablerow.Outside{Is: true, Partition: o.Entity.Partition, Reserved: o.change, Term: p.Outside.ReservationTerm}}}
	return []tablerow.Row{row, o.Claim(wire.VerbInsert, key, o.change)}
}
