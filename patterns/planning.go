package patterns

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	layout     string // as in storedRow
	version    string // of a further row
}

// rowsOf returns all rows that follow from an entity alone: its own first, its further rows by layout, its copies.
func (r *Repository[T]) rowsOf(v *T, key Key, stored Properties) ([]plannedRow, error) {
	s := r.spreading(stored)
	rows, err := s.spread(nil, "", key, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range r.copies {
		if rows, err = appendCopies(rows, c, v, key, s); err != nil {
			return nil, patternError(c, err, ErrInvalid)
		}
	}
	return rows, nil
}

// appendCopies appends the rows of one pattern's copies.
func appendCopies(rows []plannedRow, c CopyContributor, v any, key Key, s *spreading) ([]plannedRow, error) {
	made, err := c.Copies(v)
	if err != nil {
		return nil, err
	}
	for _, copied := range made {
		if copied.RowKey == key.Row {
			return nil, fmt.Errorf("a copy has the entity's own row key")
		}
		before := len(rows)
		rows, err = s.spread(rows, c.PatternName(), Key{key.Partition, copied.RowKey}, copied.Keep)
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

// remember collects what the patterns must know of a stored entity when it changes next: the keys of all of its rows
// but the first, and what the other patterns ask for. row has all properties as stored; the rows of patterns whose copies it
// does not list are remembered as strays. A key function that refuses the entity never made a copy.
func (r *Repository[T]) remember(v *T, key Key, row *storedRow) ([]memory, error) {
	if len(r.patterns) == 0 {
		return nil, nil
	}
	own, strays := memory{pattern: rowMemory}, memory{pattern: strayMemory}
	s, err := r.spreadAsRead(row)
	if err != nil {
		return nil, err
	}
	rows, err := s.spread(nil, "", key, nil)
	if err != nil {
		return nil, err
	}
	own.note(rows[1:])
	for _, c := range r.copies {
		copies, err := appendCopies(nil, c, v, key, s)
		switch {
		case err != nil:
		case namesCopies(row.copies, c.PatternName()):
			own.note(copies)
		default:
			strays.note(copies)
		}
	}
	return r.rememberBeside(v, row.properties, own, strays, r.rememberOutside(v))
}

// rememberPlanned is remember for an entity whose rows were just planned: all of them are its own.
func (r *Repository[T]) rememberPlanned(v *T, stored Properties, rows []plannedRow) ([]memory, error) {
	if len(r.patterns) == 0 {
		return nil, nil
	}
	own := memory{pattern: rowMemory}
	own.note(rows[1:])
	return r.rememberBeside(v, stored, own, r.rememberOutside(v))
}

// rememberBeside adds to the repository's own memories what the other patterns ask for.
func (r *Repository[T]) rememberBeside(v *T, stored Properties, memories ...memory) ([]memory, error) {
	for _, p := range r.rememberers {
		items, err := p.Remember(v, stored)
		if err != nil {
			return nil, patternError(p, err, ErrInvalid)
		}
		memories = append(memories, memory{p.PatternName(), items})
	}
	return memories, nil
}

// Where the repository itself remembers rows: row key, pattern and version by turns. No pattern has these names.
const (
	rowMemory     = propertyPrefix + "Rows"
	strayMemory   = propertyPrefix + "Strays"
	outsideMemory = propertyPrefix + "Outside" // pattern, partition and row key by turns
)

// note adds rows to a memory.
func (m *memory) note(rows []plannedRow) {
	for _, row := range rows {
		m.items = append(m.items, row.rowKey, row.pattern, row.version)
	}
}

// rows returns the rows beside the first that the entity had when it was read (rowMemory), or that may have been left
// behind where indexes not listed would have them (strayMemory).
func (s *state) rows(memory string) []plannedRow {
	if s == nil {
		return nil
	}
	items := s.remembered(memory)
	rows := make([]plannedRow, 0, len(items)/3)
	for i := 0; i+2 < len(items); i += 3 {
		rows = append(rows, plannedRow{rowKey: items[i], pattern: items[i+1], version: items[i+2]})
	}
	return rows
}

// draft is a change ready to be committed, with what the entity's Meta will be when it is.
type draft struct {
	operations []operation
	etag       azcore.ETag // of the entity's own row: guards the whole
	next       *state
	staged     []stagedDraft // of other repositories
	besideAt   int           // index of the first operation of Change.beside
}

// stagedDraft is what a CompanionContributor has staged.
type stagedDraft struct {
	at int // index of its first operation
	x  *Transaction
}

// plan turns a change into the operations of one entity group transaction. merged are the properties that a merge
// sends, nil for the other kinds.
func (r *Repository[T]) plan(ctx context.Context, c *Change, etag azcore.ETag, merged Properties) (*draft, error) {
	d := &draft{etag: etag, next: &state{key: c.Key, row: c.Key.Row, copies: r.copyNames, owner: r}}
	if c.old != nil {
		d.next.incarnation, d.next.carried = c.old.incarnation, c.old.carried
	}
	if c.incarnation != "" {
		d.next.incarnation = c.incarnation
	}
	if d.next.incarnation == "" {
		d.next.incarnation = newWriteID() // an insert, or an entity from before it was in a repository
	}
	if c.Kind == ChangeDelete {
		d.add(operation{verb: wire.VerbDelete, key: c.Key, ifMatch: etag})
		for _, old := range c.old.rows(rowMemory) {
			d.remove(c, old)
		}
		d.removeAdopted(c, nil)
	} else if err := r.planRows(c, d, merged); err != nil {
		return nil, err
	}
	for _, contributor := range r.companions {
		x := r.table.NewTransaction()
		x.gone = c.gone
		if err := contributor.Companions(ctx, c, x); err != nil {
			return nil, patternError(contributor, err, ErrInvalid)
		}
		if err := x.usable(); err != nil {
			return nil, patternError(contributor, err, ErrInvalid)
		}
		d.addStaged(contributor.PatternName(), x)
	}
	for _, contributor := range r.rows {
		rows, err := contributor.ContributeRows(ctx, c)
		if err != nil {
			return nil, patternError(contributor, err, ErrInvalid)
		}
		for i := range rows {
			o, err := contributed(contributor.PatternName(), &rows[i])
			if err != nil {
				return nil, patternError(contributor, err, ErrInvalid)
			}
			o.key.Partition = c.Key.Partition
			d.add(o)
		}
	}
	return d, d.addBeside(c)
}

// planRows plans the rows that follow from the entity alone.
func (r *Repository[T]) planRows(c *Change, d *draft, merged Properties) error {
	v := c.Entity.(*T)
	if r.schema.RowPrefix != "" && !r.primary.span.Contains(c.Key.Row) {
		if err := c.Key.check(); err != nil {
			return invalid("", err) // a key that compoundkey could not make has no prefix either; say why it could not
		}
		return invalidf("", "its row key does not begin with Schema.RowPrefix, so no query would find it")
	}
	rows, err := r.rowsOf(v, c.Key, c.Stored)
	if err != nil {
		return err
	}
	if d.next.memories, err = r.rememberPlanned(v, c.Stored, rows); err != nil {
		return err
	}
	old := c.old.rows(rowMemory)
	if r.layout != nil {
		merged = nil // the first row is written whole: what it holds beside its directory is little
	}
	for i := range rows {
		if c.Kind == ChangeMerge && rows[i].unchanged(old) {
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
func (d *draft) addRow(c *Change, row *plannedRow, first bool, old []plannedRow, merged Properties) {
	o := operation{key: Key{c.Key.Partition, row.rowKey}, properties: row.properties, incarnation: d.next.incarnation, copies: d.next.copies, layout: row.layout, pattern: row.pattern}
	if first {
		o.carried = d.next.carried
	} else {
		o.primary = &d.next.key.Row
	}
	known := first && c.Kind != ChangeInsert || repeats(old, row.rowKey)
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
func (d *draft) addBeside(c *Change) error {
	if c.beside == nil {
		return nil
	}
	d.besideAt = len(d.operations)
	operations, err := c.beside.operations()
	for _, o := range operations {
		o.key.Partition = c.Key.Partition
		d.add(o)
	}
	return err
}

func (d *draft) add(o operation) { d.operations = append(d.operations, o) }

// remove plans the removal of a row that the entity no longer has.
func (d *draft) remove(c *Change, row plannedRow) {
	if etag, gone := c.gone[row.rowKey]; gone && etag == d.etag {
		return
	}
	d.add(operation{verb: wire.VerbDelete, key: Key{c.Key.Partition, row.rowKey}, ifMatch: azcore.ETagAny, pattern: row.pattern, role: roleStale, owner: d.etag})
}

// isStaged reports whether an operation is another repository's.
func (d *draft) isStaged(index int) bool {
	return slices.ContainsFunc(d.staged, func(s stagedDraft) bool { return index >= s.at && index < s.at+len(s.x.operations) })
}

// addStaged adds other repositories' rows. A conflict of theirs starts the change over.
func (d *draft) addStaged(pattern string, x *Transaction) {
	d.staged = append(d.staged, stagedDraft{len(d.operations), x})
	for _, o := range x.operations {
		o.pattern = pattern
		if o.role == roleEntity {
			o.role = roleShared
		}
		d.add(o)
	}
}

// contributed is a row that belongs to no one entity. Without an ETag, a replacement would be of whatever is there.
func contributed(pattern string, row *RowOperation) (operation, error) {
	if row.Row == nil {
		return operation{}, errors.New("a RowOperation without a Row")
	}
	o := operation{key: row.Row.Key, properties: row.Row.Properties, ifMatch: row.Row.ETag, pattern: pattern, role: roleShared, shared: pattern}
	switch row.Verb {
	case InsertRow:
		o.verb, o.ifMatch = wire.VerbInsert, ""
		return o, nil
	case ReplaceRow:
		o.verb = wire.VerbReplace
	case DeleteRow:
		o.verb = wire.VerbDelete
	default:
		return o, fmt.Errorf("a RowOperation of verb %d", row.Verb)
	}
	if o.ifMatch == "" {
		return o, fmt.Errorf("a RowOperation on row %q without the ETag that it was read with", loggable(o.key).Row)
	}
	return o, nil
}

// removeAdopted plans the removal of copies that were left behind and that the entity will not have.
func (d *draft) removeAdopted(c *Change, rows []plannedRow) {
	for _, rowKey := range slices.Sorted(maps.Keys(c.adopted)) {
		if !repeats(rows, rowKey) {
			d.add(operation{verb: wire.VerbDelete, key: Key{c.Key.Partition, rowKey}, ifMatch: c.adopted[rowKey], role: roleAdopted})
		}
	}
}
