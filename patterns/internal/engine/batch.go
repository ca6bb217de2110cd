package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/division"
	"github.com/tablepatterns/tablepatterns/internal/keyrange"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/sets"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The members of a set often have copies in the same partition, such as the partition of a global index. The
// engine writes the copies of several members in one transaction, and reads their entities again together. If
// the service refuses a transaction, its copies are written one by one.

// batchRow is one copy of a member, as it is written with others.
type batchRow struct {
	target     *target // of a copy to write
	member     *Work   // of a key to reserve
	name       string  // HeldName of the copy: its pattern and key
	key        tables.Key
	operations []Operation
	other      []Operation // the operations to try if the first ones are refused; nil if there are none
}

// placeTogether writes the copies of several targets, with one transaction for each partition. It records
// each copy that it has written in the target; reconcileCopies writes the other copies. After an error, the
// caller must not send anything more.
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
			return PatternError(p, err, tables.ErrInvalid)
		}
	}
	return nil
}

// copiesOf returns the copies of a target that its message names.
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
		row := r.copyOperation(p, t.Key, &copies[i], t.seen.row.Properties, t.seen.row.Incarnation, string(t.seen.row.ETag))
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
// done for the rows that were written. It returns no error for a refused row: the caller writes that row
// alone and gets the reason. It returns an error only if the outcome is unknown: ErrUnknownOutcome.
func commitTogether(ctx context.Context, table *tables.Table, all []batchRow, done func(batchRow)) error {
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
			return e != nil && e.Change > 0 && e.Change <= at && sets.Lost(err)
		})
	}
	write := func(rows []batchRow) error {
		var operations []Operation
		for _, row := range rows {
			operations = append(operations, row.operations...)
		}
		if _, err := Commit(ctx, table, "Reconcile", operations...); err != nil {
			tables.TelemetryOf(pass, table.Account()).Refused(ctx, table.Name(), len(rows), sets.Code(err))
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
			return ctx.Err() != nil || sets.Ends(err) || errors.Is(err, tables.ErrUnknownOutcome)
		},
	}
	for _, partition := range order {
		rows := partitions[partition]
		for len(rows) > 1 {
			n, size := 0, 0
			for ; n < len(rows) && size+len(rows[n].operations) <= tables.MaxTransactionOperations; n++ {
				size += len(rows[n].operations)
			}
			if _, err := divided.Run(rows[:n:n]); errors.Is(err, tables.ErrUnknownOutcome) {
				return err
			}
			rows = rows[n:]
		}
	}
	return nil
}

// reserveTogether reserves the new keys of several members, with one transaction for each partition.
func (s *Set) reserveTogether(ctx context.Context, change string) error {
	if len(s.members) < 2 {
		return nil
	}
	rows := map[*tables.Table][]batchRow{}
	var order []*tables.Table // sorted, so that the requests of a change are in the same order each time
	for _, w := range s.members {
		for _, p := range w.engine.Outside {
			if !Reserves(p) || w.Change.Kind == driver.ChangeDelete {
				continue
			}
			copies, err := w.Change.Copies().Outside(p)
			if err != nil {
				return w.located(PatternError(p, err, tables.ErrInvalid))
			}
			o := &OutsideWriter{Table: p.Outside.Table, Entity: w.Change.Key, change: change}
			for i := range copies {
				name := HeldName(p, driver.JoinKey(copies[i].Key))
				if w.Fresh[name] {
					if rows[p.Outside.Table] == nil {
						order = append(order, p.Outside.Table)
					}
					rows[p.Outside.Table] = append(rows[p.Outside.Table], batchRow{member: w, name: name, key: copies[i].Key, operations: o.reservation(p, copies[i].Key)})
				}
			}
		}
	}
	for _, table := range order {
		all := rows[table]
		if len(all) < 2 {
			continue
		}
		s.prepared = true
		err := commitTogether(ctx, table, all, func(row batchRow) { s.noteReserved(row.member, row.name) })
		if err != nil {
			return s.located(err)
		}
	}
	return nil
}

// FetchMany reads rows of a table by their keys. Requests: 1 for each partition if the keys lie close together.
func FetchMany(ctx context.Context, table *tables.Table, op string, keys []tables.Key) (map[tables.Key]*StoredRow, error) {
	found := make(map[tables.Key]*StoredRow, len(keys))
	wanted := make(map[tables.Key]bool, len(keys))
	all := make([]keyrange.Key, len(keys))
	for i, key := range keys {
		wanted[key], all[i] = true, keyrange.Key(key)
	}
	var mu sync.Mutex
	note := func(row *StoredRow) {
		mu.Lock()
		defer mu.Unlock()
		if wanted[row.Key] {
			found[row.Key] = row
		}
	}
	err := keyrange.Reader{
		Page: func(ctx context.Context, partition string, span compoundkey.Span, size int) (last string, more bool, err error) {
			src := Raw(table).Source(span)
			src.Problems, src.Load = true, func(_ context.Context, row *tables.RawRow, _ []string) (any, error) { return row.Clone(), nil }
			page, err := tables.QueryOf[tables.RawRow](pass, src).Partition(partition).PageSize(size).Page(ctx, "")
			if err != nil {
				return "", false, tables.Amend(pass, err, func(e *tables.Error) { e.Op = op })
			}
			for _, raw := range page.Items {
				note(RowOf(raw))
				last = raw.Key.Row
			}
			return last, page.Next != "", nil
		},
		One: func(ctx context.Context, key keyrange.Key) error {
			row, err := Fetch(ctx, table, op, tables.Key(key), nil)
			if errors.Is(err, tables.ErrNotFound) {
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

// FetchOwnAll reads the own rows of entities, nil for one that does not exist. A returned row may be an
// entity of another repository; then rows that name it as their entity may belong to that repository, too.
// Requests: 1 if the keys lie close together.
func (r *Engine) FetchOwnAll(ctx context.Context, op string, keys []tables.Key) ([]*StoredRow, error) {
	rows := make([]*StoredRow, len(keys))
	found, err := FetchMany(ctx, r.Table, op, keys)
	for i, key := range keys {
		if row := found[key]; row != nil && !row.IsCopy {
			rows[i] = row
		}
	}
	return rows, err
}

// readTargets reads the entities of targets again. For each target it sets target.now, or target.err after a
// failure. If the entity is unchanged, target.now is the same pointer as target.seen.
func (r *Engine) readTargets(ctx context.Context, op string, targets []*target) {
	keys := make([]tables.Key, len(targets))
	for i, t := range targets {
		keys[i] = t.Key
	}
	rows, err := r.FetchOwnAll(ctx, op, keys)
	for i, t := range targets {
		if err != nil {
			t.err = err
			continue
		}
		row := rows[i]
		if t.seen != nil && t.seen.shows(row) {
			t.now = t.seen
			continue
		}
		if t.err = r.refuseUnowned(op, t.Key, row); t.err != nil {
			continue
		}
		v, row, err := r.LoadOwn(ctx, op, t.Key, row)
		t.now, t.err = &snapshot{v, row, keptCopiesOf(v)}, err
	}
}

// expectation says what the holder of an intent expects to find stored under the key of a copy, before it
// writes the copy.
type expectation uint8

const (
	expectOwn      expectation = iota // the entity's copy
	expectReserved                    // the reservation of its own change
	expectFree                        // nothing

	placeAttempts = 8 // maximum number of attempts of place if concurrent writers change the row
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
func (o *OutsideWriter) first(row Operation, e expectation) []Operation {
	switch e {
	case expectFree:
		row.Verb, row.role = wire.VerbInsert, roleUnique
		return []Operation{row, o.Claim(wire.VerbInsert, row.Key, "")}
	case expectReserved:
		return []Operation{row, o.Claim(wire.VerbDelete, row.Key, o.change), o.Claim(wire.VerbInsert, row.Key, "")}
	}
	return []Operation{row, o.Claim(wire.VerbMerge, row.Key, "")}
}

// reservation returns the operations that reserve a key for the change whose message the writer holds.
func (o *OutsideWriter) reservation(p *Pattern, key tables.Key) []Operation {
	row := Operation{Verb: wire.VerbInsert, Key: key, primary: &o.Entity.Row, Meaning: Meaning{Pattern: p.Name, role: roleUnique},
		outside: outsideFacts{Is: true, Partition: o.Entity.Partition, Reserved: o.change, Term: p.Outside.ReservationTerm}}
	return []Operation{row, o.Claim(wire.VerbInsert, key, o.change)}
}
