package driver

import (
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ChangeKind is the kind of a change of an entity.
type ChangeKind uint8

// The kinds of change. Upsert and the unconditional forms read the entity first and become one of these.
const (
	ChangeInsert ChangeKind = iota
	ChangeReplace
	ChangeMerge
	ChangeDelete
	// ChangeTouch writes an entity again without changing it; jobs such as Rebuild, Repair and
	// encryption.Reencrypt make this change. Change.Entity and Change.Prior describe the same state: the
	// entity as it was read. A pattern writes the rows that it lacks for the entity, and nothing else: it
	// must not add a log entry, count again, send a notification, or rewrite correct rows. A later touch of
	// the same entity may repeat an earlier one.
	ChangeTouch
)

// String returns the verb.
func (k ChangeKind) String() string {
	return [...]string{"Insert", "Replace", "Merge", "Delete", "Touch"}[k]
}

// Change is one logical change of an entity, as the functions of patterns get it.
type Change[T any] struct {
	Kind   ChangeKind // a pattern that reports changes must ignore ChangeTouch
	Key    tables.Key
	ID     string            // unique ID of this change; use it in the names of new blobs and of rows in other partitions
	Entity *T                // the new state, or the state that was read for a delete
	Given  *T                // for a merge: the caller's value, whose properties are merged; nil for other kinds
	Stored tables.Properties // the properties to store, after the transforms; nil for a delete
	Prior  []string          // what Implementation.Prior returned for the entity's old state; nil for an insert
	// PriorWriteID is the Meta.WriteID of the state that the change replaces. While the stored entity has it,
	// the change is not committed. It is "" for an insert, for an entity that another program wrote, and for
	// a companion (see Implementation.Companions).
	PriorWriteID string
	// Rewritten reports that a job stores the entity in a new form, as Upgrade does by a ChangeReplace whose
	// properties differ. As with a ChangeTouch, the entity itself has not changed.
	Rewritten bool
	DryRun    bool // for Explain and Check: write nothing

	pattern string
	state   *ChangeState
}

// NewChange is for package patterns. It returns the Change that one pattern gets.
func NewChange[T any](_ rows.Pass, pattern string, state *ChangeState, c Change[T]) *Change[T] {
	c.pattern, c.state = pattern, state
	return &c
}

// MergeWhole is for a Transform.Store that cannot merge into the stored row because it must remove some of its
// properties. Store then returns all properties of the entity, and the merge replaces the row under its ETag. stored
// are the currently stored properties.
func (c *Change[T]) MergeWhole() (stored tables.Properties) {
	c.state.Whole = true
	return slices.Clone(c.state.Base)
}

// Writes reports whether the change writes a property: an insert, a replace or a touch writes all, a merge only those named.
func (c *Change[T]) Writes(property string) bool {
	return c.Kind != ChangeDelete && (c.Kind != ChangeMerge || c.state != nil && c.state.Given.Has(property))
}

// Note stores a value with the change for later calls of the same pattern.
func (c *Change[T]) Note(v any) {
	if c.state == nil {
		c.state = &ChangeState{}
	}
	if c.state.notes == nil {
		c.state.notes = map[string]any{}
	}
	c.state.notes[c.pattern] = v
}

// Noted returns the pattern's last Note about the change, or nil.
func (c *Change[T]) Noted() any {
	if c.state == nil {
		return nil
	}
	return c.state.notes[c.pattern]
}

// ChangeState is shared by package patterns and the methods of a Change.
type ChangeState struct {
	Given, Base tables.Properties // for a merge: the properties that it sends, and the properties that are stored
	Whole       bool              // for a merge: it replaces the row

	notes map[string]any // by pattern
}
