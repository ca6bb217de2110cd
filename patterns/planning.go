package patterns

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/patterns/driver"

	"github.com/tablepatterns/tablepatterns/tables"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// plannedRow is one physical row of an entity.
type plannedRow struct {
	pattern    string // "" for the entity's own rows
	rowKey     string
	properties tables.Properties
	layout     string // as in storedRow
	version    string // of a further row
}

// rowsOf returns all rows that follow from an entity alone: its own first, its further rows by layout, its copies.
func (r *engine) rowsOf(v any, key tables.Key, stored tables.Properties) ([]plannedRow, error) {
	s := r.spreading(stored)
	rows, err := s.spread(nil, "", key, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range r.copies {
		if rows, err = appendCopies(rows, c, v, key, s); err != nil {
			return nil, patternError(c, err, tables.ErrInvalid)
		}
	}
	return rows, nil
}

// appendCopies appends the rows of one pattern's copies.
func appendCopies(rows []plannedRow, c driver.CopyContributor, v any, key tables.Key, s *spreading) ([]plannedRow, error) {
	made, err := c.Copies(v)
	if err != nil {
		return nil, err
	}
	for _, copied := range made {
		if copied.RowKey == key.Row {
			return nil, fmt.Errorf("a copy has the entity's own row key")
		}
		before := len(rows)
		rows, err = s.spread(rows, c.PatternName(), tables.Key{Partition: key.Partition, Row: copied.RowKey}, copied.Keep)
		if err != nil {
			return nil, err
		}
		if repeats(rows[:before], rows[before].rowKey) {
			return nil, fmt.Errorf("two rows of the entity have one row key")
		}
	}
	return rows, nil
}

// copyNameSeparator stands between the names in a row's list of copies.
const copyNameSeparator = ","

// namesCopies reports whether a row's list holds a pattern. A copy that the row does not list may be missing, stale or
// another entity's: the pattern was attached later, or a program without it wrote the row.
func namesCopies(list, pattern string) bool {
	for name := range strings.SplitSeq(list, copyNameSeparator) {
		if name == pattern {
			return true
		}
	}
	return false
}

func repeats(rows []plannedRow, rowKey string) bool {
	return slices.ContainsFunc(rows, func(row plannedRow) bool { return row.rowKey == rowKey })
}

// remember collects what the next change of a stored entity must know: the keys of all of its rows but the first, and what the
// patterns ask for. row has all properties as stored; rows of patterns that it does not list are orphans. A key function that
// refuses the entity never made a copy.
func (r *engine) remember(v any, key tables.Key, row *storedRow) (*prior, error) {
	if len(r.patterns) == 0 {
		return &prior{}, nil
	}
	p := &prior{outside: r.rememberOutside(v)}
	s, err := r.spreadAsRead(row)
	if err != nil {
		return nil, err
	}
	rows, err := s.spread(nil, "", key, nil)
	if err != nil {
		return nil, err
	}
	p.rows = note(p.rows, rows[1:])
	for _, c := range r.copies {
		copies, err := appendCopies(nil, c, v, key, s)
		switch {
		case err != nil:
		case namesCopies(row.copies, c.PatternName()):
			p.rows = note(p.rows, copies)
		default:
			p.orphans = note(p.orphans, copies)
		}
	}
	return p, r.rememberPatterns(p, v, row.Properties)
}

// rememberPlanned is remember for an entity whose rows were just planned: all of them are its own.
func (r *engine) rememberPlanned(v any, stored tables.Properties, rows []plannedRow) (*prior, error) {
	if len(r.patterns) == 0 {
		return &prior{}, nil
	}
	p := &prior{rows: note(nil, rows[1:]), outside: r.rememberOutside(v)}
	return p, r.rememberPatterns(p, v, stored)
}

// rememberPatterns adds what the patterns ask for.
func (r *engine) rememberPatterns(p *prior, v any, stored tables.Properties) error {
	for _, x := range r.rememberers {
		items, err := x.Remember(v, stored)
		if err != nil {
			return patternError(x, err, tables.ErrInvalid)
		}
		if p.patterns == nil {
			p.patterns = map[string][]string{}
		}
		p.patterns[x.PatternName()] = items
	}
	return nil
}

// draft is a change ready to be committed, with what the entity's Meta will be when it is.
type draft struct {
	writes   []tables.RawWrite
	etag     azcore.ETag // of the entity's own row: guards the whole
	next     *tables.State
	staged   []stagedDraft // of other repositories
	besideAt int           // index of the first operation of Change.beside
}

// stagedDraft is what a CompanionContributor has staged.
type stagedDraft struct {
	at     int // index of its first operation
	staged tables.Staged
}

// plan turns a change into the operations of one entity group transaction. merged are the properties that a merge
// sends, nil for the other kinds.
func (r *engine) plan(ctx context.Context, c *change, etag azcore.ETag, merged tables.Properties) (*draft, error) {
	d := &draft{etag: etag, next: &tables.State{Key: c.Key, Row: c.Key.Row, Copies: r.copyNames, Owner: r}}
	if c.old != nil {
		d.next.Incarnation, d.next.Carried = c.old.Incarnation, c.old.Carried
	}
	if c.incarnation != "" {
		d.next.Incarnation = c.incarnation
	}
	if d.next.Incarnation == "" {
		d.next.Incarnation = newWriteID() // an insert, or an entity from before it was in a repository
	}
	if c.Kind == driver.ChangeDelete {
		d.add(operation{verb: wire.VerbDelete, key: c.Key, ifMatch: etag})
		for _, old := range priorOf(c.old).rows {
			d.remove(c, old)
		}
		d.removeAdopted(c, nil)
	} else if err := r.planRows(c, d, merged); err != nil {
		return nil, err
	}
	for _, contributor := range r.companions {
		x := tables.NewStaging(pass, r.table, c.gone)
		if err := contributor.Companions(ctx, &c.Change, x); err != nil {
			return nil, patternError(contributor, err, tables.ErrInvalid)
		}
		staged, err := tables.TakeStaged(pass, x)
		if err != nil {
			return nil, patternError(contributor, err, tables.ErrInvalid)
		}
		d.addStaged(contributor.PatternName(), staged)
	}
	for _, contributor := range r.rows {
		rows, err := contributor.ContributeRows(ctx, &c.Change)
		if err != nil {
			return nil, patternError(contributor, err, tables.ErrInvalid)
		}
		for i := range rows {
			write, err := rows[i].Write(contributor.PatternName())
			if err != nil {
				return nil, patternError(contributor, err, tables.ErrInvalid)
			}
			d.addShared(c, write, meaning{pattern: contributor.PatternName(), role: roleShared})
		}
	}
	return d, d.addBeside(c)
}

// planRows plans the rows that follow from the entity alone.
func (r *engine) planRows(c *change, d *draft, merged tables.Properties) error {
	v := c.Entity
	if r.schema.RowPrefix != "" && !r.primary.Span.Contains(c.Key.Row) {
		if err := tables.CheckKey(pass, c.Key); err != nil {
			return tables.Invalid("", err) // a key that compoundkey could not make has no prefix either; say why it could not
		}
		return tables.Invalidf("", "its row key does not begin with Schema.RowPrefix, so no query would find it")
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
	old := priorOf(c.old).rows
	if r.layout != nil {
		merged = nil // the first row is written whole: what it holds beside its directory is little
	}
	for i := range rows {
		if c.Kind == driver.ChangeMerge && rows[i].unchanged(old) {
			continue
		}
		d.addRow(c, &rows[i], i == 0, old, merged)
	}
	for _, row := range old {
		if !repeats(rows, row.rowKey) {
			d.remove(c, row)
		}
	}
	d.removeAdopted(c, rows)
	return nil
}

// addRow plans one row that the entity will have.
func (d *draft) addRow(c *change, row *plannedRow, first bool, old []plannedRow, merged tables.Properties) {
	o := operation{key: tables.Key{Partition: c.Key.Partition, Row: row.rowKey}, properties: row.properties, incarnation: d.next.Incarnation, copies: d.next.Copies, layout: row.layout, meaning: meaning{pattern: row.pattern}}
	if first {
		o.carried = d.next.Carried
	} else {
		o.primary = &d.next.Key.Row
	}
	known := first && c.Kind != driver.ChangeInsert || repeats(old, row.rowKey)
	switch {
	case known && merged != nil && first:
		o.verb, o.ifMatch, o.properties = wire.VerbMerge, d.etag, merged
	case known && first:
		o.verb, o.ifMatch = wire.VerbReplace, d.etag
	case known || row.pattern == "" && !first:
		// Ours, since the entity's row lists it, so writing it whole also mends a row that is missing.
		o.verb = wire.VerbReplace
	case first:
		o.verb = wire.VerbInsert
	default:
		o.verb, o.role = wire.VerbInsert, roleUnique
		if etag, ok := c.adopted[row.rowKey]; ok {
			o.verb, o.ifMatch, o.role = wire.VerbReplace, etag, roleAdopted
		}
	}
	d.add(o)
}

// addBeside plans the rows of Apply's caller.
func (d *draft) addBeside(c *change) error {
	if c.beside == nil {
		return nil
	}
	d.besideAt = len(d.writes)
	writes, err := c.beside.Writes(pass)
	for _, write := range writes {
		d.addShared(c, write, meaning{role: roleBeside})
	}
	return err
}

// addShared adds a row that belongs to several entities, or to none.
func (d *draft) addShared(c *change, write tables.RawWrite, m meaning) {
	write.Key.Partition, write.Meaning = c.Key.Partition, &m
	d.writes = append(d.writes, write)
}

func (d *draft) add(o operation) { d.writes = append(d.writes, o.write()) }

// remove plans the removal of a row that the entity no longer has.
func (d *draft) remove(c *change, row plannedRow) {
	if etag, gone := c.gone[row.rowKey]; gone && etag == d.etag {
		return
	}
	d.add(operation{verb: wire.VerbDelete, key: tables.Key{Partition: c.Key.Partition, Row: row.rowKey}, ifMatch: azcore.ETagAny, meaning: meaning{pattern: row.pattern, role: roleStale, owner: d.etag}})
}

// isStaged reports whether an operation is another repository's.
func (d *draft) isStaged(index int) bool {
	return slices.ContainsFunc(d.staged, func(s stagedDraft) bool { return index >= s.at && index < s.at+len(s.staged.Writes) })
}

// addStaged adds other repositories' rows. A conflict of theirs starts the change over.
func (d *draft) addStaged(pattern string, staged tables.Staged) {
	d.staged = append(d.staged, stagedDraft{len(d.writes), staged})
	for _, w := range staged.Writes {
		m := meaningOf(&w)
		m.pattern = pattern
		if m.role == roleEntity {
			m.role = roleShared
		}
		w.Meaning = &m
		d.writes = append(d.writes, w)
	}
}

// removeAdopted plans the removal of copies that were left behind and that the entity will not have.
func (d *draft) removeAdopted(c *change, rows []plannedRow) {
	for _, rowKey := range slices.Sorted(maps.Keys(c.adopted)) {
		if !repeats(rows, rowKey) {
			d.add(operation{verb: wire.VerbDelete, key: tables.Key{Partition: c.Key.Partition, Row: rowKey}, ifMatch: c.adopted[rowKey], meaning: meaning{role: roleAdopted}})
		}
	}
}
