package engine

import (
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

// draft is the plan of a set: the rows of one transaction, and the new Meta of each entity.
type draft struct {
	Writes []tablerow.Row
	set    *Set
	of     []rowOf // for each of Writes: the member to which the row belongs
	parts  []part  // one for each member
	rowsAt int     // index in Writes of the first of Set.rows

	removals []removal
}

// rowOf says to which member a row of a draft belongs.
type rowOf struct {
	member *Work // nil for a row that belongs to several members, or to none
	number int   // number of the caller's change
}

// part is the plan of one member.
type part struct {
	draft  *draft
	member *Work
	first  int         // index of the entity's own row
	etag   azcore.ETag // ETag under which the entity's own row is written; it guards all rows of the entity
	next   *core.State // prior state of the entity after the commit
}

// removal is a row that an entity no longer has. If another member gets a row with the same key, the row is
// overwritten and not removed.
type removal struct {
	of  rowOf
	row tablerow.Row
}

// begin returns an empty plan for a member.
func (d *draft) begin(w *Work, next *core.State) *part {
	return &part{draft: d, member: w, first: len(d.Writes), etag: w.Etag, next: next}
}

// end adds the finished plan of a member to the draft. For a companion, it marks the rows as rows of the
// pattern that has added the companion, and a conflict on one of them makes the set retry.
func (d *draft) end(p *part) {
	d.parts = append(d.parts, *p)
	pattern := p.member.companionOf
	if pattern == "" {
		return
	}
	for i := p.first; i < len(d.Writes); i++ {
		accompany(&d.Writes[i], pattern)
	}
}

// accompany marks a row as part of a companion that the named pattern has added.
func accompany(row *tablerow.Row, pattern string) {
	row.Pattern = pattern
	if row.Role == tablerow.RoleEntity {
		row.Role = tablerow.RoleShared
	}
}

func (d *draft) add(write tablerow.Row, of rowOf) {
	d.Writes, d.of = append(d.Writes, write), append(d.of, of)
}

// Draft computes the stored properties of the set's entities, and plans the rows of the transaction.
func (s *Set) Draft(ctx context.Context) (*draft, error) {
	d := &draft{set: s}
	for _, w := range s.members {
		if err := w.engine.store(ctx, w); err != nil {
			return nil, w.Located(err)
		}
		if err := w.engine.plan(w, d); err != nil {
			return nil, w.Located(err)
		}
	}
	d.addRemovals()
	for _, row := range s.companionRows {
		row.write.Key.Partition = s.own[0].Change.Key.Partition
		d.add(row.write, rowOf{number: row.number})
	}
	if err := s.addRows(ctx, d); err != nil {
		return nil, err
	}
	d.rowsAt = len(d.Writes)
	for i := range s.rows {
		d.add(s.rows[i], rowOf{number: s.numbers[i]})
	}
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
func (r *Engine) plan(w *Work, d *draft) error {
	c := &w.Change
	p := d.begin(w, &core.State{Key: c.Key, Row: c.Key.Row, Copies: string(r.copyNames), Owner: r})
	if w.Old != nil {
		p.next.Incarnation, p.next.Carried = w.Old.Incarnation, w.Old.Carried
	}
	if w.incarnation != "" {
		p.next.Incarnation = w.incarnation
	}
	if p.next.Incarnation == "" {
		p.next.Incarnation = tablerow.NewWriteID() // an insert, or the entity was not written by a repository
	}
	if c.Kind != driver.ChangeDelete {
		if err := r.planRows(p); err != nil {
			return err
		}
		d.end(p)
		return nil
	}
	p.add(tablerow.Row{Verb: wire.VerbDelete, Key: c.Key, IfMatch: w.Etag})
	for _, old := range priorOf(w.Old).rows {
		p.remove(old)
	}
	p.removeClaimed(nil)
	d.end(p)
	return nil
}

// addRows plans the rows that several entities share: each pattern of each repository sees all changes of its repository at once.
func (s *Set) addRows(ctx context.Context, d *draft) error {
	for i, w := range s.members {
		r := w.engine
		if len(r.rows) == 0 || slices.ContainsFunc(s.members[:i], func(o *Work) bool { return o.engine == r }) {
			continue
		}
		for _, p := range r.rows {
			var changes []*driver.Change
			for _, o := range s.members[i:] {
				if o.engine == r {
					changes = append(changes, o.seenBy(p))
				}
			}
			rows, err := p.Rows(ctx, changes)
			if err != nil {
				return w.Located(PatternError(p, err, entity.ErrInvalid))
			}
			for i := range rows {
				write, err := core.SharedWrite(core.SharedVerb(rows[i].Verb), rows[i].Row, p.Name)
				if err != nil {
					return w.Located(PatternError(p, err, entity.ErrInvalid))
				}
				write.Pattern = p.Name
				d.addShared(write, tablerow.RoleShared, w)
			}
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
	d.add(write, rowOf{number: w.number})
}

// addRemovals adds the removals of all members. If one member gives up a row and another gets it, as when two
// entities swap an index key, the row is overwritten and not removed. The transaction also writes the own row
// of the entity that gives up the row, under its ETag, so no concurrent change of that entity is lost.
func (d *draft) addRemovals() {
	for _, x := range d.removals {
		at := slices.IndexFunc(d.Writes, func(w tablerow.Row) bool { return w.Key == x.row.Key })
		if at < 0 {
			d.add(x.row, x.of)
			continue
		}
		if w := &d.Writes[at]; x.row.Role == tablerow.RoleStale && w.Role == tablerow.RoleUnique && w.Pattern == x.row.Pattern {
			w.Verb, w.Role = wire.VerbReplace, tablerow.RoleEntity
			continue
		}
		d.add(x.row, x.of) // CheckWrites returns an error that names the two changes
	}
	d.removals = nil
}

// planRows plans the rows that depend only on the entity.
func (r *Engine) planRows(p *part) error {
	w, merged := p.member, p.member.merged
	c, v := &w.Change, w.Copies()
	stored := c.Stored
	if own := &r.Schema.Own; c.Kind == driver.ChangeMerge && len(own.Properties()) > 0 {
		whole, err := r.Codec.Encode(c.Entity) // for a merge, Stored may hold only the merged properties
		if err != nil {
			return err
		}
		stored = overlay(whole, stored)
	}
	if err := r.Schema.Own.Check(c.Key, stored); err != nil {
		return err
	}
	rows, err := r.rowsOf(v, c.Key, c.Stored)
	if err != nil {
		return err
	}
	known := &prior{rows: note(nil, rows[1:]), outside: r.rememberOutside(v, c.Stored)} // none of these rows can be an orphaned copy
	if err := r.rememberPatterns(known, v.entity, c.Stored); err != nil {
		return err
	}
	p.next.Prior, p.next.Kept = known, p.next.Copies != "" || known.several()
	old := priorOf(w.Old).rows
	if r.Layout != nil {
		merged = nil // replace the first row, since it holds little beside the layout's directory
	}
	for i := range rows {
		if c.Kind == driver.ChangeMerge && unchanged(&rows[i], old) {
			continue
		}
		p.addRow(rows[i], i == 0, old, merged)
	}
	for _, row := range old {
		if !repeats(rows, row.key) {
			p.remove(row)
		}
	}
	p.removeClaimed(rows)
	return nil
}

// addRow plans one row that the entity will have.
func (p *part) addRow(row tablerow.Row, first bool, old []noted, merged entity.Properties) {
	row.Own.Incarnation, row.Own.Copies = p.next.Incarnation, p.next.Copies
	if first {
		row.Own.Later = p.next.Carried
	} else {
		row.Own.IsCopy, row.Own.Primary = true, p.next.Key.Row
	}
	known := first && p.member.Change.Kind != driver.ChangeInsert || lists(old, row.Key.Row)
	switch {
	case known && merged != nil && first:
		row.Verb, row.IfMatch, row.Properties = wire.VerbMerge, p.etag, merged
	case known && first:
		row.Verb, row.IfMatch = wire.VerbReplace, p.etag
	case known || row.Pattern == "" && !first:
		// The entity's row lists the copy, so it is the entity's own; writing it whole also restores a missing row.
		row.Verb = wire.VerbReplace
	case first:
		row.Verb = wire.VerbInsert
	default:
		row.Verb, row.Role = wire.VerbInsert, tablerow.RoleUnique
		if etag, ok := p.member.claimed[row.Key.Row]; ok {
			row.Verb, row.IfMatch, row.Role = wire.VerbReplace, etag, tablerow.RoleClaimed
		}
	}
	p.add(row)
}

func (p *part) add(row tablerow.Row) { p.draft.add(row, rowOf{p.member, p.member.number}) }

// remove plans the removal of a row that the entity no longer has, unless an earlier attempt found that the row
// does not exist.
func (p *part) remove(row noted) {
	if etag, gone := p.draft.set.gone[row.key]; gone && etag == p.etag {
		return
	}
	p.addRemoval(tablerow.Row{Verb: wire.VerbDelete, Key: entity.Key{Partition: p.member.Change.Key.Partition, Row: row.key}, IfMatch: azcore.ETagAny, Pattern: row.pattern, Role: tablerow.RoleStale, Lists: p.etag})
}

// removeClaimed plans the removal of the claimed orphaned copies under keys that the entity will not have.
func (p *part) removeClaimed(rows []tablerow.Row) {
	for _, rowKey := range slices.Sorted(maps.Keys(p.member.claimed)) {
		if !repeats(rows, rowKey) {
			p.addRemoval(tablerow.Row{Verb: wire.VerbDelete, Key: entity.Key{Partition: p.member.Change.Key.Partition, Row: rowKey}, IfMatch: p.member.claimed[rowKey], Role: tablerow.RoleClaimed})
		}
	}
}

func (p *part) addRemoval(row tablerow.Row) {
	if p.member.companionOf != "" {
		accompany(&row, p.member.companionOf)
	}
	p.draft.removals = append(p.draft.removals, removal{rowOf{p.member, p.member.number}, row})
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
