package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/rowwriter"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// PlannedRow is one physical row of an entity.
type PlannedRow struct {
	Pattern    string // "" for the entity's own rows
	RowKey     string
	Properties tables.Properties
	Layout     string // as in storedRow
	version    string // of a further row
}

// rowsOf returns all rows that depend only on the entity: its own first, its further rows by layout, its copies.
func (r *Engine) rowsOf(v EntityCopies, key tables.Key, stored tables.Properties) ([]PlannedRow, error) {
	s := r.Spreading(stored)
	rows, err := s.Spread(nil, "", key, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range r.Copies {
		if rows, err = AppendCopies(rows, c, v, key, s); err != nil {
			return nil, PatternError(c, err, tables.ErrInvalid)
		}
	}
	return rows, nil
}

// AppendCopies appends the rows of one pattern's copies.
func AppendCopies(rows []PlannedRow, c *Pattern, v EntityCopies, key tables.Key, s *spreading) ([]PlannedRow, error) {
	made, err := v.Near(c)
	if err != nil {
		return nil, err
	}
	for _, copied := range made {
		if copied.RowKey == key.Row {
			return nil, fmt.Errorf("a copy has the entity's own row key; give it another")
		}
		before := len(rows)
		rows, err = s.Spread(rows, c.Name, tables.Key{Partition: key.Partition, Row: copied.RowKey}, copied.Keep)
		if err != nil {
			return nil, err
		}
		if repeats(rows[:before], rows[before].RowKey) {
			return nil, fmt.Errorf("two rows of the entity have the same row key; give each its own")
		}
	}
	return rows, nil
}

// copyNameSeparator separates the names in a row's list of copies.
const copyNameSeparator = ","

// NamesCopies reports whether a row's list contains a pattern. A copy that the row does not list may be missing, stale
// or another entity's: the pattern was attached later, or a program without it wrote the row.
func NamesCopies(list, pattern string) bool {
	for name := range strings.SplitSeq(list, copyNameSeparator) {
		if name == pattern {
			return true
		}
	}
	return false
}

func repeats(rows []PlannedRow, rowKey string) bool {
	return slices.ContainsFunc(rows, func(row PlannedRow) bool { return row.RowKey == rowKey })
}

// Remember returns the prior state that the next change of a stored entity needs: the keys of all of its rows but the
// first, and what the patterns' Prior returns. row has all stored properties; rows of patterns that it does not list
// may be orphaned copies. If a key function rejects the entity, it never made a copy.
func (r *Engine) Remember(v any, key tables.Key, row *StoredRow) (*prior, error) {
	if len(r.Patterns) == 0 {
		return &prior{}, nil
	}
	copiesOf := CopiesOf(v)
	p := &prior{outside: r.rememberOutside(copiesOf)}
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
		case NamesCopies(row.Copies, c.Name):
			p.rows = note(p.rows, copies)
		default:
			p.Orphans = note(p.Orphans, copies)
		}
	}
	return p, r.rememberPatterns(p, v, row.Properties)
}

// rememberPlanned is Remember for an entity whose rows were just planned: all of them are its own.
func (r *Engine) rememberPlanned(v EntityCopies, stored tables.Properties, rows []PlannedRow) (*prior, error) {
	if len(r.Patterns) == 0 {
		return &prior{}, nil
	}
	p := &prior{rows: note(nil, rows[1:]), outside: r.rememberOutside(v)}
	return p, r.rememberPatterns(p, v.entity, stored)
}

// rememberPatterns adds what the patterns' Prior returns.
func (r *Engine) rememberPatterns(p *prior, v any, stored tables.Properties) error {
	for _, x := range r.rememberers {
		items, err := x.Prior(v, stored)
		if err != nil {
			return PatternError(x, err, tables.ErrInvalid)
		}
		if p.patterns == nil {
			p.patterns = map[string][]string{}
		}
		p.patterns[x.Name] = items
	}
	return nil
}

// draft is a change that is ready to commit, with the entity's new Meta.
type draft struct {
	Writes   []tables.RawWrite
	etag     azcore.ETag // of the entity's own row: guards all rows
	next     *tables.State
	staged   []stagedDraft // of other repositories
	besideAt int           // index of the first operation of Change.beside
}

// stagedDraft is a change of another repository that Pattern.Companions has staged.
type stagedDraft struct {
	at     int // index of its first operation
	staged tables.Staged
}

// plan turns a change into the operations of one entity group transaction. merged are the properties that a merge
// sends, nil for the other kinds.
func (r *Engine) plan(ctx context.Context, c *Change, etag azcore.ETag, merged tables.Properties) (*draft, error) {
	d := &draft{etag: etag, next: &tables.State{Key: c.Key, Row: c.Key.Row, Copies: r.copyNames, Owner: r}}
	if c.Old != nil {
		d.next.Incarnation, d.next.Carried = c.Old.Incarnation, c.Old.Carried
	}
	if c.incarnation != "" {
		d.next.Incarnation = c.incarnation
	}
	if d.next.Incarnation == "" {
		d.next.Incarnation = rowwriter.NewWriteID() // an insert, or an entity that was not written by a repository
	}
	if c.Kind == driver.ChangeDelete {
		d.add(Operation{Verb: wire.VerbDelete, Key: c.Key, IfMatch: etag})
		for _, old := range priorOf(c.Old).rows {
			d.remove(c, old)
		}
		d.removeClaimed(c, nil)
	} else if err := r.planRows(c, d, merged); err != nil {
		return nil, err
	}
	for _, contributor := range r.companions {
		x := tables.NewStaging(pass, r.Table, c.gone)
		if err := contributor.Companions(ctx, c, x); err != nil {
			return nil, PatternError(contributor, err, tables.ErrInvalid)
		}
		staged, err := tables.TakeStaged(pass, x)
		if err != nil {
			return nil, PatternError(contributor, err, tables.ErrInvalid)
		}
		d.addStaged(contributor.Name, staged)
	}
	for _, contributor := range r.rows {
		rows, err := contributor.Rows(ctx, c)
		if err != nil {
			return nil, PatternError(contributor, err, tables.ErrInvalid)
		}
		for i := range rows {
			write, err := driver.WriteOf(pass, &rows[i], contributor.Name)
			if err != nil {
				return nil, PatternError(contributor, err, tables.ErrInvalid)
			}
			d.addShared(c, write, Meaning{Pattern: contributor.Name, role: roleShared})
		}
	}
	return d, d.addBeside(c)
}

// planRows plans the rows that depend only on the entity.
func (r *Engine) planRows(c *Change, d *draft, merged tables.Properties) error {
	v := c.Copies()
	if r.Schema.RowPrefix != "" && !r.Primary.Span.Contains(c.Key.Row) {
		if err := rows.CheckKeys(c.Key.Partition, c.Key.Row); err != nil {
			return tables.Invalid("", err) // report the error of compoundkey rather than the missing prefix
		}
		return tables.Invalidf("", "the row key from Schema.Key does not begin with Schema.RowPrefix, so no query would find the entity")
	}
	rows, err := r.rowsOf(v, c.Key, c.Stored)
	if err != nil {
		return err
	}
	known, err := r.rememberPlanned(v, c.Stored, rows)
	if err != nil {
		return err
	}
	d.next.Prior, d.next.Kept = known, d.next.Copies != "" || known.several()
	old := priorOf(c.Old).rows
	if r.Layout != nil {
		merged = nil // the first row is replaced, since it holds little beside its directory
	}
	for i := range rows {
		if c.Kind == driver.ChangeMerge && rows[i].unchanged(old) {
			continue
		}
		d.addRow(c, &rows[i], i == 0, old, merged)
	}
	for _, row := range old {
		if !repeats(rows, row.RowKey) {
			d.remove(c, row)
		}
	}
	d.removeClaimed(c, rows)
	return nil
}

// addRow plans one row that the entity will have.
func (d *draft) addRow(c *Change, row *PlannedRow, first bool, old []PlannedRow, merged tables.Properties) {
	o := Operation{Key: tables.Key{Partition: c.Key.Partition, Row: row.RowKey}, properties: row.Properties, incarnation: d.next.Incarnation, copies: d.next.Copies, layout: row.Layout, Meaning: Meaning{Pattern: row.Pattern}}
	if first {
		o.carried = d.next.Carried
	} else {
		o.primary = &d.next.Key.Row
	}
	known := first && c.Kind != driver.ChangeInsert || repeats(old, row.RowKey)
	switch {
	case known && merged != nil && first:
		o.Verb, o.IfMatch, o.properties = wire.VerbMerge, d.etag, merged
	case known && first:
		o.Verb, o.IfMatch = wire.VerbReplace, d.etag
	case known || row.Pattern == "" && !first:
		// The entity's row lists the copy, so it is the entity's own; writing it whole also restores a missing row.
		o.Verb = wire.VerbReplace
	case first:
		o.Verb = wire.VerbInsert
	default:
		o.Verb, o.role = wire.VerbInsert, roleUnique
		if etag, ok := c.claimed[row.RowKey]; ok {
			o.Verb, o.IfMatch, o.role = wire.VerbReplace, etag, roleClaimed
		}
	}
	d.add(o)
}

// addBeside plans the rows of Apply's caller.
func (d *draft) addBeside(c *Change) error {
	if c.beside == nil {
		return nil
	}
	d.besideAt = len(d.Writes)
	writes, err := c.beside.Writes(pass)
	for _, write := range writes {
		d.addShared(c, write, Meaning{role: roleBeside})
	}
	return err
}

// addShared adds a row that belongs to several entities, or to none.
func (d *draft) addShared(c *Change, write tables.RawWrite, m Meaning) {
	write.Key.Partition, write.Meaning = c.Key.Partition, &m
	d.Writes = append(d.Writes, write)
}

func (d *draft) add(o Operation) { d.Writes = append(d.Writes, o.write()) }

// remove plans the removal of a row that the entity no longer has.
func (d *draft) remove(c *Change, row PlannedRow) {
	if etag, gone := c.gone[row.RowKey]; gone && etag == d.etag {
		return
	}
	d.add(Operation{Verb: wire.VerbDelete, Key: tables.Key{Partition: c.Key.Partition, Row: row.RowKey}, IfMatch: azcore.ETagAny, Meaning: Meaning{Pattern: row.Pattern, role: roleStale, owner: d.etag}})
}

// isStaged reports whether an operation belongs to another repository.
func (d *draft) isStaged(index int) bool {
	return slices.ContainsFunc(d.staged, func(s stagedDraft) bool { return index >= s.at && index < s.at+len(s.staged.Writes) })
}

// addStaged adds other repositories' rows. A conflict on one of them makes the change retry.
func (d *draft) addStaged(pattern string, staged tables.Staged) {
	d.staged = append(d.staged, stagedDraft{len(d.Writes), staged})
	for _, w := range staged.Writes {
		m := MeaningOf(&w)
		m.Pattern = pattern
		if m.role == roleEntity {
			m.role = roleShared
		}
		w.Meaning = &m
		d.Writes = append(d.Writes, w)
	}
}

// removeClaimed plans the removal of orphaned copies that the entity will not have.
func (d *draft) removeClaimed(c *Change, rows []PlannedRow) {
	for _, rowKey := range slices.Sorted(maps.Keys(c.claimed)) {
		if !repeats(rows, rowKey) {
			d.add(Operation{Verb: wire.VerbDelete, Key: tables.Key{Partition: c.Key.Partition, Row: rowKey}, IfMatch: c.claimed[rowKey], Meaning: Meaning{role: roleClaimed}})
		}
	}
}
