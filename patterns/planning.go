package patterns

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// plannedRow is one physical row of an entity.
type plannedRow struct {
	pattern    string // "" for the entity's own rows
	rowKey     string
	properties Properties
}

// rowsOf returns all rows that follow from an entity alone: its own first, its further rows by layout, its copies.
// copies are the names of the patterns whose copies to list.
func (r *Repository[T]) rowsOf(v *T, key Key, stored Properties, copies string) ([]plannedRow, error) {
	rows, err := r.spread(nil, "", key, stored)
	if err != nil {
		return nil, err
	}
	for _, c := range r.copies {
		if !namesCopies(copies, c.PatternName()) {
			continue
		}
		made, err := c.Copies(v)
		if err != nil {
			return nil, patternError(c, err, ErrInvalid)
		}
		for _, copied := range made {
			if copied.RowKey == key.Row {
				return nil, patternError(c, fmt.Errorf("a copy has the entity's own row key"), ErrInvalid)
			}
			before := len(rows)
			rows, err = r.spread(rows, c.PatternName(), Key{key.Partition, copied.RowKey}, project(stored, copied.Keep))
			if err != nil {
				return nil, patternError(c, err, ErrInvalid)
			}
			if repeats(rows[:before], rows[before].rowKey) {
				return nil, patternError(c, fmt.Errorf("two rows of the entity have one row key"), ErrInvalid)
			}
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

// spread appends the physical rows of one logical row.
func (r *Repository[T]) spread(rows []plannedRow, pattern string, key Key, p Properties) ([]plannedRow, error) {
	if err := key.check(); err != nil {
		return nil, err
	}
	if r.layout == nil {
		return append(rows, plannedRow{pattern, key.Row, p}), nil
	}
	parts, properties, err := r.layout.Split(key, p)
	if err != nil {
		return nil, patternError(r.layout, err, ErrInvalid)
	}
	for i := range parts {
		rows = append(rows, plannedRow{pattern, parts[i].RowKey, properties[i]})
	}
	return rows, nil
}

// project keeps the named properties, nil keeping all.
func project(p Properties, keep []string) Properties {
	if keep == nil {
		return p
	}
	kept := make(Properties, 0, len(keep))
	for i := range p {
		if slices.Contains(keep, p[i].Name) {
			kept = append(kept, p[i])
		}
	}
	return kept
}

// remember collects what the patterns must know of an entity when it changes next: the keys of all of its rows but
// the first, copies of the named patterns among them, and what the other patterns ask for.
func (r *Repository[T]) remember(v *T, key Key, stored Properties, copies string) ([]memory, error) {
	if len(r.patterns) == 0 {
		return nil, nil
	}
	var memories []memory
	if len(r.copies) > 0 || r.layout != nil {
		rows, err := r.rowsOf(v, key, stored, copies)
		if err != nil {
			return nil, err
		}
		memories = make([]memory, 1, 1+len(r.rememberers))
		memories[0].pattern = rowMemory
		for _, row := range rows[1:] {
			memories[0].items = append(memories[0].items, row.rowKey, row.pattern)
		}
	}
	for _, p := range r.rememberers {
		items, err := p.Remember(v, stored)
		if err != nil {
			return nil, patternError(p, err, ErrInvalid)
		}
		memories = append(memories, memory{p.PatternName(), items})
	}
	return memories, nil
}

// rowMemory is where the repository itself remembers rows: row key and pattern by turns. No pattern has this name.
const rowMemory = propertyPrefix + "Rows"

// oldRows returns the rows beside the first that the entity had when it was read.
func (s *state) oldRows() []plannedRow {
	if s == nil {
		return nil
	}
	items := s.remembered(rowMemory)
	rows := make([]plannedRow, 0, len(items)/2)
	for i := 0; i+1 < len(items); i += 2 {
		rows = append(rows, plannedRow{rowKey: items[i], pattern: items[i+1]})
	}
	return rows
}

// draft is a change ready to be committed, with what the entity's Meta will be when it is.
type draft struct {
	operations []operation
	next       *state
}

// plan turns a change into the operations of one entity group transaction. merged are the properties that a merge
// sends, nil for the other kinds.
func (r *Repository[T]) plan(ctx context.Context, c *Change, etag azcore.ETag, merged Properties) (*draft, error) {
	d := &draft{next: &state{key: c.Key, row: c.Key.Row, copies: r.copyNames}}
	if c.old != nil {
		d.next.incarnation = c.old.incarnation
	}
	if d.next.incarnation == "" {
		d.next.incarnation = newWriteID() // an insert, or an entity from before it was in a repository
	}
	if c.Kind == ChangeDelete {
		d.add(operation{verb: wire.VerbDelete, key: c.Key, ifMatch: azcore.ETagAny})
		for _, old := range c.old.oldRows() {
			d.remove(c, old)
		}
	} else if err := r.planRows(c, d, merged); err != nil {
		return nil, err
	}
	for _, contributor := range r.rows {
		contributed, err := contributor.ContributeRows(ctx, c)
		if err != nil {
			return nil, patternError(contributor, err, ErrInvalid)
		}
		for _, row := range contributed {
			d.addContributed(c.Key, contributor.PatternName(), row)
		}
	}
	if c.old != nil && !d.require(c.old.row, etag) {
		return nil, invalidf("", "the entity was read from row %q, which its patterns no longer have; read it again", c.old.row)
	}
	return d, nil
}

// planRows plans the rows that follow from the entity alone.
func (r *Repository[T]) planRows(c *Change, d *draft, merged Properties) error {
	v := c.Entity.(*T)
	rows, err := r.rowsOf(v, c.Key, c.Stored, r.copyNames)
	if err != nil {
		return err
	}
	if d.next.memories, err = r.remember(v, c.Key, c.Stored, r.copyNames); err != nil {
		return err
	}
	old := c.old.oldRows()
	for i := range rows {
		d.addRow(c, &rows[i], i == 0, old, merged)
	}
	for _, row := range old {
		if !repeats(rows, row.rowKey) {
			d.remove(c, row)
		}
	}
	return nil
}

// addRow plans one row that the entity will have.
func (d *draft) addRow(c *Change, row *plannedRow, first bool, old []plannedRow, merged Properties) {
	o := operation{key: Key{c.Key.Partition, row.rowKey}, properties: row.properties, incarnation: d.next.incarnation, copies: d.next.copies, pattern: row.pattern}
	if !first {
		o.primary = &d.next.key.Row
	}
	known := first && c.Kind != ChangeInsert || repeats(old, row.rowKey)
	switch {
	case known && c.Kind == ChangeMerge && first:
		o.verb, o.ifMatch, o.properties = wire.VerbMerge, azcore.ETagAny, merged
	case known && first:
		o.verb, o.ifMatch = wire.VerbReplace, azcore.ETagAny
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

func (d *draft) add(o operation) { d.operations = append(d.operations, o) }

// remove plans the removal of a row that the entity no longer has.
func (d *draft) remove(c *Change, row plannedRow) {
	if c.gone[row.rowKey] {
		return
	}
	d.add(operation{verb: wire.VerbDelete, key: Key{c.Key.Partition, row.rowKey}, ifMatch: azcore.ETagAny, pattern: row.pattern, role: roleStale})
}

func (d *draft) addContributed(key Key, pattern string, row RowOperation) {
	o := operation{key: Key{key.Partition, row.Row.Key.Row}, properties: row.Row.Properties, pattern: pattern, role: roleShared, shared: pattern}
	switch row.Verb {
	case InsertRow:
		o.verb = wire.VerbInsert
	case ReplaceRow:
		o.verb, o.ifMatch = wire.VerbReplace, row.Row.ETag
	case DeleteRow:
		o.verb, o.ifMatch = wire.VerbDelete, row.Row.ETag
	}
	d.add(o)
}

// require makes the transaction conditional on the ETag the entity was read with. The row it was read from may be a
// copy: since every write touches every row of an entity, any row's ETag guards all.
func (d *draft) require(row string, etag azcore.ETag) bool {
	for i := range d.operations {
		o := &d.operations[i]
		if o.key.Row == row && o.role != roleShared {
			o.ifMatch = etag
			if o.role == roleStale {
				o.role = roleEntity // here a missing row is news, not drift
			}
			return true
		}
	}
	return false
}
