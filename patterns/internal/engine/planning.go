package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// PlannedRow is one physical row of an entity.
type PlannedRow struct {
	Pattern    string // "" for the entity's own rows
	RowKey     string
	Properties tables.Properties
	Layout     string // as in StoredRow
	version    string // of a further row
}

// rowsOf returns all rows that depend only on the entity: its own row first, then the further rows of its
// layout, then its copies.
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

// NamesCopies reports whether a row's list contains a pattern. If the row does not list a copy, the pattern
// was attached later, or a program without the pattern wrote the row. That copy may be missing or stale, or
// belong to another entity.
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

// Remember returns the prior state that the next change of a stored entity needs: the keys of all of its rows
// but the first, and the results of the patterns' Prior. row has all stored properties. Rows of patterns that
// row does not list may be orphaned copies. A pattern whose key function rejects the entity has no copies of
// it.
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

// rememberPlanned does what Remember does, for an entity whose rows were just planned: none of them can be an
// orphaned copy.
func (r *Engine) rememberPlanned(v EntityCopies, stored tables.Properties, rows []PlannedRow) (*prior, error) {
	if len(r.Patterns) == 0 {
		return &prior{}, nil
	}
	p := &prior{rows: note(nil, rows[1:]), outside: r.rememberOutside(v)}
	return p, r.rememberPatterns(p, v.entity, stored)
}

// rememberPatterns adds the results of the patterns' Prior.
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
