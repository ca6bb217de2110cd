package entity

import (
	"fmt"
	"strings"
)

// FindingKind says how a stored row or fact differs from what the entities require.
type FindingKind uint8

// The kinds of finding.
const (
	// Missing: an entity requires a row or fact that is absent, or that belongs to another entity.
	Missing FindingKind = iota
	// Spurious: a row or fact is stored that no entity requires.
	Spurious
	// Different: a row or fact is stored with other content than its entity requires.
	Different
	// Undecodable: an entity, or what a pattern stores, cannot be read, so the correct state is unknown.
	Undecodable
)

// String returns the kind's name.
func (k FindingKind) String() string {
	return [...]string{"missing", "spurious", "different", "undecodable"}[k]
}

// Finding is one difference between what is stored and what the entities require, or one entity that a job could not
// process. Err says why.
type Finding struct {
	Kind     FindingKind
	Pattern  string // "" for the entity's own rows, and if unknown
	Table    string // table of the row; "" if only the pattern knows, as for lists and blobs
	Location string // a row key in the entity's partition; or a partition key, a tab and a row key; or the pattern's own notation; "" for a whole entity
	Entity   Key    // the entity that requires the row or fact, or to which it says that it belongs
	Err      error  // details, or nil

	// Repaired reports that Repair has repaired the finding, or that RemoveUnattached has removed the row.
	Repaired bool
	// NotRepaired is why Repair has not repaired the finding: for example ErrDuplicate if two entities require
	// one key, ErrConflict if concurrent writers changed the rows at every attempt, or the decoding error of a
	// row that cannot be decoded. It is nil in a dry run and in other jobs.
	NotRepaired error
}

// String formats the finding in one line.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", f.Kind)
	if f.Pattern != "" {
		fmt.Fprintf(&b, "%s ", f.Pattern)
	}
	if f.Location != "" {
		fmt.Fprintf(&b, "%q ", f.Location)
	}
	if f.Table != "" {
		fmt.Fprintf(&b, "in %s ", f.Table)
	}
	fmt.Fprintf(&b, "of (%q, %q)", f.Entity.Partition, f.Entity.Row)
	if f.Err != nil {
		fmt.Fprintf(&b, ": %v", f.Err)
	}
	switch {
	case f.Repaired:
		b.WriteString("; repaired")
	case f.NotRepaired != nil:
		fmt.Fprintf(&b, "; not repaired: %v", f.NotRepaired)
	}
	return b.String()
}
