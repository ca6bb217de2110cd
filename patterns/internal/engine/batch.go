package engine

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The members of a set often have copies in one partition, such as that of a global index. New copies of several members are
// written together, and their entities are read again together. What the service refuses together is written one by one.

// batchRow is one new copy of a member, as it is written with others.
type batchRow struct {
	target     *target // of a copy to write
	member     *Work   // of a key to reserve
	name       string  // of the copy among those of all patterns
	key        tables.Key
	operations []Operation
}

// placeTogether writes the copies that only this change can have written, those of one partition in one transaction. A copy that it
// has written is noted in its target; the others are left to reconcileCopies. An error is one after which nothing may be sent.
func (r *Engine) placeTogether(ctx context.Context, change string, targets []*target) error {
	if len(targets) < 2 {
		return nil
	}
	for _, p := range r.Outside {
		var all []batchRow
		for _, t := range targets {
			rows, err := r.newCopies(p, change, t)
			if err != nil {
				return nil // reconcileCopies reports it for its member
			}
			all = append(all, rows...)
		}
		if err := commitTogether(ctx, p.Outside.Table, all, func(row batchRow) { row.target.placed = append(row.target.placed, row.name) }); err != nil {
			return PatternError(p, err, tables.ErrInvalid)
		}
	}
	return nil
}

// newCopies returns the copies of a target whose keys its change has added.
func (r *Engine) newCopies(p *Pattern, change string, t *target) (all []batchRow, err error) {
	copies, err := t.seen.copies.Outside(p)
	if err != nil || t.seen.row == nil {
		return nil, err
	}
	o := &OutsideWriter{Table: p.Outside.Table, Entity: t.Key, change: change, own: t.Outside[p.Name]}
	for i := range copies {
		name := HeldName(p, driver.JoinKey(copies[i].Key))
		if !t.fresh[name] || !slices.Contains(o.own, driver.JoinKey(copies[i].Key)) {
			continue
		}
		row := r.copyOperation(p, t.Key, &copies[i], t.seen.row.Properties, t.seen.row.Incarnation, string(t.seen.row.ETag))
		operations := o.insertion(row)
		if Reserves(p) {
			operations = o.filling(row)
		}
		all = append(all, batchRow{target: t, name: name, key: row.Key, operations: operations})
	}
	return all, nil
}

// commitTogether writes rows of one table, those of a partition in as few transactions as possible, and calls done for those that are
// written. What is refused is not an error: whoever writes it alone learns why. The error is ErrUnknownOutcome.
func commitTogether(ctx context.Context, table *tables.Table, all []batchRow, done func(batchRow)) error {
	partitions := map[string][]batchRow{}
	var order []string
	for _, row := range all {
		if partitions[row.key.Partition] == nil {
			order = append(order, row.key.Partition)
		}
		partitions[row.key.Partition] = append(partitions[row.key.Partition], row)
	}
	for _, partition := range order {
		rows := partitions[partition]
		if len(rows) < 2 {
			continue
		}
		for chunk := range slices.Chunk(rows, tables.MaxTransactionOperations/len(rows[0].operations)) {
			var operations []Operation
			for _, row := range chunk {
				operations = append(operations, row.operations...)
			}
			_, err := Commit(ctx, table, "Reconcile", operations...)
			switch {
			case err == nil:
				for _, row := range chunk {
					done(row)
				}
			case errors.Is(err, tables.ErrUnknownOutcome):
				return err
			}
		}
	}
	return nil
}

// reserveTogether reserves the new keys of several members, those of one partition in one transaction.
func (s *Set) reserveTogether(ctx context.Context, change string) error {
	if len(s.members) < 2 {
		return nil
	}
	rows := map[*tables.Table][]batchRow{}
	var order []*tables.Table // so that the requests of a change are in the same order each time
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

// readTogether is the least number of entities that one query reads in place of one request for each.
const readTogether = 3

// readsAtOnce is how many entities are read at the same time where a query cannot read them together.
const readsAtOnce = 8

// FetchOwnAll reads the own rows of entities, nil for one that does not exist. Requests: 1 if the keys lie close together.
func (r *Engine) FetchOwnAll(ctx context.Context, op string, keys []tables.Key) ([]*StoredRow, error) {
	rows := make([]*StoredRow, len(keys))
	if len(keys) == 1 {
		row, err := r.fetchOwn(ctx, op, keys[0])
		rows[0] = row
		return rows, err
	}
	known, err := r.fetchRange(ctx, op, keys, rows)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for i, key := range keys {
		if known != nil && known(key) {
			continue
		}
		group.Go(func() (err error) {
			rows[i], err = r.fetchOwn(ctx, op, key)
			return err
		})
	}
	return rows, group.Wait()
}

// fetchRange reads the rows of several entities by one query of the range of their keys: one page, with room for as many rows of
// others. known reports of which keys the page tells; nil is none.
func (r *Engine) fetchRange(ctx context.Context, op string, keys []tables.Key, rows []*StoredRow) (known func(tables.Key) bool, err error) {
	if len(keys) < readTogether || r.Table.Account().IsCosmos() { // Cosmos DB answers in no order
		return nil, nil
	}
	at := make(map[string]int, len(keys))
	first, last := keys[0].Row, keys[0].Row
	for i, key := range keys {
		if _, twice := at[key.Row]; twice {
			return nil, nil // a message that somebody has forged
		}
		at[key.Row] = i
		if compoundkey.Compare(key.Row, first) < 0 {
			first = key.Row
		}
		if compoundkey.Compare(key.Row, last) > 0 {
			last = key.Row
		}
		if key.Partition != keys[0].Partition {
			return nil, nil // a message that somebody has forged
		}
	}
	span := compoundkey.Range(first, last+" ") // a range excludes its end, and no character of a key sorts below a space
	if span.Err() != nil {
		return nil, nil
	}
	page, err := Raw(r.Table).Query().Partition(keys[0].Partition).Rows(span).PageSize(min(maxPage, 2*len(keys))).Page(ctx, "")
	if err != nil {
		return nil, tables.Amend(pass, err, func(e *tables.Error) { e.Op = op })
	}
	seen := ""
	for _, raw := range page.Items {
		row := RowOf(raw)
		if i, is := at[row.Key.Row]; is && !row.IsCopy {
			rows[i] = row
		}
		seen = row.Key.Row
	}
	return func(key tables.Key) bool { return page.Next == "" || compoundkey.Compare(key.Row, seen) <= 0 }, nil
}

// maxPage is the service's limit on the rows of a page.
const maxPage = 1000

// readTargets reads the entities of targets again. It sets target.now, which is target.seen itself if the entity is unchanged, or
// target.err.
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
		if t.seen != nil && t.seen.shows(rows[i]) {
			t.now = t.seen
			continue
		}
		v, row, err := r.LoadOwn(ctx, op, t.Key, rows[i])
		t.now, t.err = &snapshot{v, row, keptCopiesOf(v)}, err
	}
}

// insertion returns the operations that write a copy under a key that must be free.
func (o *OutsideWriter) insertion(row Operation) []Operation {
	row.Verb, row.role = wire.VerbInsert, roleUnique
	return []Operation{row, o.Claim(wire.VerbInsert, row.Key, "")}
}

// filling returns the operations that write a copy over the change's own reservation.
func (o *OutsideWriter) filling(row Operation) []Operation {
	return []Operation{row, o.Claim(wire.VerbDelete, row.Key, o.change), o.Claim(wire.VerbInsert, row.Key, "")}
}

// reservation returns the operations that reserve a key for the message's change.
func (o *OutsideWriter) reservation(p *Pattern, key tables.Key) []Operation {
	row := Operation{Verb: wire.VerbInsert, Key: key, primary: &o.Entity.Row, Meaning: Meaning{Pattern: p.Name, role: roleUnique},
		outside: outsideFacts{Is: true, Partition: o.Entity.Partition, Reserved: o.change, Term: p.Outside.ReservationTerm}}
	return []Operation{row, o.Claim(wire.VerbInsert, key, o.change)}
}
