package engine

import "github.com/tablepatterns/tablepatterns/tables"

// prior is the state of an entity as it was last read or written, for its next change.
type prior struct {
	rows     []PlannedRow  // the entity's rows except the first: keys, patterns and versions
	Orphans  []PlannedRow  // rows of patterns that the entity's row does not list; they may be orphaned copies
	outside  []outsideCopy // copies in other partitions
	patterns map[string][]string
}

// outsideCopy names a copy in another partition.
type outsideCopy struct {
	pattern string
	key     tables.Key
}

// priorOf returns the prior state of an entity, never nil.
func priorOf(s *tables.State) *prior {
	if s == nil {
		return &prior{}
	}
	if p, ok := s.Prior.(*prior); ok {
		return p
	}
	return &prior{}
}

// several reports whether the entity has rows beside its first.
func (p *prior) several() bool { return len(p.rows)+len(p.outside) > 0 }

// note appends rows to list with only what identifies them: row key, pattern and version.
func note(list []PlannedRow, rows []PlannedRow) []PlannedRow {
	for _, row := range rows {
		list = append(list, PlannedRow{RowKey: row.RowKey, Pattern: row.Pattern, version: row.version})
	}
	return list
}

// outsideOf returns the keys of a pattern's copies in other partitions.
func (p *prior) outsideOf(pattern string) []tables.Key {
	var keys []tables.Key
	for _, c := range p.outside {
		if c.pattern == pattern {
			keys = append(keys, c.key)
		}
	}
	return keys
}

// isCopy reports whether the entity was read through a copy.
func isCopy(s *tables.State) bool { return s.Version != "" || s.Row != s.Key.Row }
