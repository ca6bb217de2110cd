package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
)

// draft is the plan of a set: the rows of one transaction.
type draft struct {
	Writes []tablerow.Row
	set    *Set
	of     []*Work // for each of Writes: its member; for a row that several members share, the first of them
	rowsAt int     // index in Writes of the first of Set.rows, which have no member
	stale  []stale
}

// stale is a row that a member no longer has. If another member gets a row with the same key, the row is overwritten and not removed.
type stale struct {
	row tablerow.Row
	of  *Work
}

func (d *draft) add(row tablerow.Row, of *Work) {
	d.Writes, d.of = append(d.Writes, row), append(d.of, of)
}

// addCallers adds the rows of the transaction that are no entities.
func (d *draft) addCallers() {
	d.rowsAt = len(d.Writes)
	for i := range d.set.rows {
		d.add(d.set.rows[i], nil)
	}
}

// number returns the number of the caller's change to which a row belongs.
func (d *draft) number(row int) int {
	if w := d.of[row]; w != nil {
		return w.number
	}
	return d.set.numbers[row-d.rowsAt]
}

// accompany marks a row as part of a companion that the named pattern has added. A conflict on the row makes the set retry.
func accompany(row *tablerow.Row, pattern string) {
	row.Pattern = pattern
	if row.Role == tablerow.RoleEntity {
		row.Role = tablerow.RoleShared
	}
}

// Draft computes the stored properties of the set's entities, and plans the rows of the transaction.
func (s *Set) Draft(ctx context.Context) (*draft, error) {
	d := &draft{set: s}
	for _, w := range s.members {
		err := w.engine.store(ctx, w)
		if err == nil {
			err = w.plan(d)
		}
		if err != nil {
			return nil, w.Located(err)
		}
	}
	d.addStale()
	for _, row := range s.companionRows {
		row.write.Key.Partition = s.own[0].Change.Key.Partition
		d.add(row.write, row.of)
	}
	for i, w := range s.members {
		if len(w.engine.rows) > 0 && !slices.ContainsFunc(s.members[:i], func(o *Work) bool { return o.engine == w.engine }) {
			if err := d.addRows(ctx, w, s.members[i:]); err != nil {
				return nil, w.Located(err)
			}
		}
	}
	d.addCallers()
	if w := s.own[0]; w.beside != nil {
		writes, err := besideWrites(w.beside)
		if err != nil {
			return nil, w.Located(err)
		}
		for _, write := range writes {
			d.addShared(write, tablerow.RoleBeside, w)
		}
	}
	return d, nil
}

// refused returns the index of the row that the service refused with e, -1 if e does not name one.
func (d *draft) refused(e *entity.Error) int {
	switch {
	case len(d.Writes) == 1:
		return 0
	case e.Change > len(d.Writes):
		return -1
	}
	return e.Change - 1
}

// plan turns a change into the rows of its entity.
func (w *Work) plan(d *draft) error {
	c, fromStale := &w.Change, len(d.stale)
	w.first = len(d.Writes)
	w.next = &core.State{Key: c.Key, Row: c.Key.Row, Copies: string(w.engine.copyNames), Owner: w.engine, Incarnation: w.incarnation}
	if w.Old != nil {
		w.next.Incarnation, w.next.Carried = cmp.Or(w.incarnation, w.Old.Incarnation), w.Old.Carried
	}
	if w.next.Incarnation == "" {
		w.next.Incarnation = tablerow.NewWriteID() // an insert, or the entity was not written by a repository
	}
	var rows []tablerow.Row
	if c.Kind == driver.ChangeDelete {
		d.add(tablerow.Row{Verb: wire.VerbDelete, Key: c.Key, IfMatch: w.Etag}, w)
	} else {
		var err error
		if rows, err = w.planRows(d); err != nil {
			return err
		}
	}
	for _, old := range priorOf(w.Old).rows {
		if etag, gone := d.set.gone[old.key]; repeats(rows, old.key) || gone && etag == w.Etag {
			continue // the latter was found not to exist
		}
		d.stale = append(d.stale, stale{tablerow.Row{Verb: wire.VerbDelete, Key: entity.Key{Partition: c.Key.Partition, Row: old.key}, IfMatch: azcore.ETagAny,
			Pattern: old.pattern, Role: tablerow.RoleStale, Lists: w.Etag}, w})
	}
	for _, rowKey := range slices.Sorted(maps.Keys(w.claimed)) {
		if !repeats(rows, rowKey) { // an orphaned copy under a key that the entity will not have
			d.stale = append(d.stale, stale{tablerow.Row{Verb: wire.VerbDelete, Key: entity.Key{Partition: c.Key.Partition, Row: rowKey}, IfMatch: w.claimed[rowKey],
				Role: tablerow.RoleClaimed}, w})
		}
	}
	if w.companionOf != "" {
		for i := w.first; i < len(d.Writes); i++ {
			accompany(&d.Writes[i], w.companionOf)
		}
		for i := fromStale; i < len(d.stale); i++ {
			accompany(&d.stale[i].row, w.companionOf)
		}
	}
	return nil
}

// addRows adds the rows that entities of w's repository share: each of its patterns sees all changes of the repository at once.
func (d *draft) addRows(ctx context.Context, w *Work, members []*Work) error {
	for _, p := range w.engine.rows {
		var changes []*driver.Change
		for _, o := range members {
			if o.engine == w.engine {
				changes = append(changes, o.seenBy(p))
			}
		}
		rows, err := p.Rows(ctx, changes)
		if err != nil {
			return PatternError(p, err, entity.ErrInvalid)
		}
		for i := range rows {
			write, err := core.SharedWrite(core.SharedVerb(rows[i].Verb), rows[i].Row, p.Name)
			if err != nil {
				return PatternError(p, err, entity.ErrInvalid)
			}
			write.Pattern = p.Name
			d.addShared(write, tablerow.RoleShared, w)
		}
	}
	return nil
}

// besideWrites returns the writes of rows that belong to no pattern of the repository.
func besideWrites(b *driver.Beside) ([]tablerow.Row, error) {
	return core.Beside(b.Owner, b.Rows, func(r driver.RowOperation) (core.SharedVerb, *entity.Entity) {
		return core.SharedVerb(r.Verb), r.Row
	})
}

// addShared adds a row that belongs to several entities, or to none.
func (d *draft) addShared(write tablerow.Row, role tablerow.Role, w *Work) {
	write.Key.Partition, write.Role = w.Change.Key.Partition, role
	d.add(write, w)
}

// addStale adds the removals of all members. If one member gives up a row and another gets it, as when two
// entities swap an index key, the row is overwritten and not removed. The transaction also writes the own row
// of the entity that gives up the row, under its ETag, so no concurrent change of that entity is lost.
func (d *draft) addStale() {
	for _, x := range d.stale {
		at := slices.IndexFunc(d.Writes, func(w tablerow.Row) bool { return w.Key == x.row.Key })
		if at >= 0 {
			if w := &d.Writes[at]; x.row.Role == tablerow.RoleStale && w.Role == tablerow.RoleUnique && w.Pattern == x.row.Pattern {
				w.Verb, w.Role = wire.VerbReplace, tablerow.RoleEntity
				continue
			}
		}
		d.add(x.row, x.of) // for a key that is there, CheckWrites returns an error that names the two changes
	}
}

// planRows plans the rows that depend only on the entity, and returns all that it will have.
func (w *Work) planRows(d *draft) ([]tablerow.Row, error) {
	r, c := w.engine, &w.Change
	v, stored, merged := w.Copies(), c.Stored, w.merged
	if own := &r.Schema.Own; c.Kind == driver.ChangeMerge && len(own.Properties()) > 0 {
		whole, err := r.Codec.Encode(c.Entity) // for a merge, Stored may hold only the merged properties
		if err != nil {
			return nil, err
		}
		stored = overlay(whole, stored)
	}
	if err := r.Schema.Own.Check(c.Key, stored); err != nil {
		return nil, err
	}
	rows, err := r.rowsOf(v, c.Key, c.Stored)
	if err != nil {
		return nil, err
	}
	known := &prior{rows: note(nil, rows[1:]), outside: r.rememberOutside(v, c.Stored)} // none of these rows can be an orphaned copy
	if err := r.rememberPatterns(known, v.entity, c.Stored); err != nil {
		return nil, err
	}
	w.next.Prior, w.next.Kept = known, w.next.Copies != "" || known.several()
	if r.Layout != nil {
		merged = nil // replace the first row, since it holds little beside the layout's directory
	}
	old := priorOf(w.Old).rows
	for i := range rows {
		if c.Kind != driver.ChangeMerge || !unchanged(&rows[i], old) {
			d.add(w.planRow(rows[i], i == 0, old, merged), w)
		}
	}
	return rows, nil
}

// planRow plans one row that the entity will have.
func (w *Work) planRow(row tablerow.Row, first bool, old []noted, merged entity.Properties) tablerow.Row {
	row.Own.Incarnation, row.Own.Copies = w.next.Incarnation, w.next.Copies
	if first {
		row.Own.Later = w.next.Carried
	} else {
		row.Own.IsCopy, row.Own.Primary = true, w.Change.Key.Row
	}
	known := first && w.Change.Kind != driver.ChangeInsert || lists(old, row.Key.Row)
	switch {
	case known && merged != nil && first:
		row.Verb, row.IfMatch, row.Properties = wire.VerbMerge, w.Etag, merged
	case known && first:
		row.Verb, row.IfMatch = wire.VerbReplace, w.Etag
	case known || row.Pattern == "" && !first:
		// The entity's row lists the copy, so it is the entity's own; writing it whole also restores a missing row.
		row.Verb = wire.VerbReplace
	case first:
		row.Verb = wire.VerbInsert
	default:
		row.Verb, row.Role = wire.VerbInsert, tablerow.RoleUnique
		if etag, ok := w.claimed[row.Key.Row]; ok {
			row.Verb, row.IfMatch, row.Role = wire.VerbReplace, etag, tablerow.RoleClaimed
		}
	}
	return row
}

// rowsOf returns all rows that depend only on the entity: its own row first, then the further rows of its
// layout, then its copies.
func (r *Engine) rowsOf(v EntityCopies, key entity.Key, stored entity.Properties) ([]tablerow.Row, error) {
	s := r.Spreading(stored)
	rows, err := s.Spread(nil, "", key, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range r.Copies {
		if rows, err = AppendCopies(rows, c, v, key, s); err != nil {
			return nil, PatternError(c, err, entity.ErrInvalid)
		}
	}
	return rows, nil
}

// AppendCopies appends the rows of the copies that pattern c makes of v.
func AppendCopies(rows []tablerow.Row, c *driver.Implementation, v EntityCopies, key entity.Key, s *spreading) ([]tablerow.Row, error) {
	made, err := v.Near(c)
	if err != nil {
		return nil, err
	}
	for _, copied := range made {
		if copied.RowKey == key.Row {
			return nil, fmt.Errorf("a copy has the entity's own row key; give it another")
		}
		before := len(rows)
		rows, err = s.Spread(rows, c.Name, entity.Key{Partition: key.Partition, Row: copied.RowKey}, copied.Keep)
		if err != nil {
			return nil, err
		}
		if repeats(rows[:before], rows[before].Key.Row) {
			return nil, fmt.Errorf("two rows of the entity have the same row key; give each its own")
		}
	}
	return rows, nil
}

// checkKnown refuses the write of an entity whose row names an index over partitions that this build does not know: the write would not mark the
// index's copies, and readers would go on believing them.
func (r *Engine) checkKnown(w *Work) error {
	for pattern := range tablerow.CopyList(w.Old.Copies).Elsewhere() {
		if r.Schema.OtherBuilds || slices.Contains(w.forgets, pattern) || slices.ContainsFunc(r.Outside, func(p *driver.Implementation) bool { return p.Name == pattern }) {
			continue
		}
		return &entity.Error{Key: w.Change.Key, Pattern: pattern, Kind: entity.ErrWiring,
			Err: errors.New("the entity's row names this index over partitions, which this build does not have, so the write would leave the index wrong; deploy the build that has the index, " +
				"call RemoveUnattached if no program has it any more, or set Schema.OtherBuilds while a deployment is under way")}
	}
	return nil
}

func repeats(rows []tablerow.Row, rowKey string) bool {
	return slices.ContainsFunc(rows, func(row tablerow.Row) bool { return row.Key.Row == rowKey })
}

// Remember returns the prior state that the next change of a stored entity needs: the keys of all rows of the
// entity except the first, and the results of the patterns' Prior. row must have all stored properties. Copies
// of patterns that row does not list may be orphaned. A pattern whose key function rejects the entity has no
// copies of that entity.
func (r *Engine) Remember(v any, key entity.Key, row *tablerow.Row) (*prior, error) {
	if len(r.Patterns) == 0 {
		return &prior{}, nil
	}
	copiesOf := CopiesOf(v)
	p := &prior{outside: r.rememberOutside(copiesOf, row.Properties)}
	s, err := r.spreadAsRead(row)
	if err != nil {
		return nil, err
	}
	rows, err := s.Spread(nil, "", key, nil)
	if err != nil {
		return nil, err
	}
	p.rows = note(p.rows, rows[1:])
	for _, c := range r.Copies {
		copies, err := AppendCopies(nil, c, copiesOf, key, s)
		switch {
		case err != nil:
		case tablerow.CopyList(row.Own.Copies).Names(c.Name):
			p.rows = note(p.rows, copies)
		default:
			p.Orphans = note(p.Orphans, copies)
		}
	}
	return p, r.rememberPatterns(p, v, row.Properties)
}

// rememberPatterns adds the results of the patterns' Prior to p.
func (r *Engine) rememberPatterns(p *prior, v any, stored entity.Properties) error {
	for _, x := range r.rememberers {
		items, err := x.Prior(v, stored)
		if err != nil {
			return PatternError(x, err, entity.ErrInvalid)
		}
		if p.patterns == nil {
			p.patterns = map[string][]string{}
		}
		p.patterns[x.Name] = items
	}
	return nil
}
