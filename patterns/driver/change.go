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
	// ChangeTouch writes an entity again that has not changed: a job such as Rebuild, Repair or encryption.Reencrypt makes it.
	// Change.Entity is the entity as it was read, and Change.Prior is of the same state. A pattern fills what it lacks for the
	// entity, and otherwise does nothing: it adds no log entry, counts nothing again, notifies nobody, and leaves what is
	// already right unwritten. A later touch of the same entity may repeat an earlier one.
	ChangeTouch
)

// String returns the verb.
func (k ChangeKind) String() string {
	return [...]string{"Insert", "Replace", "Merge", "Delete", "Touch"}[k]
}

// Change is one logical change of an entity, as patterns see it.
type Change[T any] struct {
	Kind   ChangeKind // a pattern that reports changes must ignore ChangeTouch
	Key    tables.Key
	ID     string            // unique ID of this change; use it in the names of new objects outside
	Entity *T                // the new state, or the state that was read for a delete
	Given  *T                // of a merge: the caller's value, whose properties are merged; nil for other kinds
	Stored tables.Properties // the properties to store, after the transforms; nil for a delete
	Prior  []string          // what Implementation.Prior returned for the entity's old state; nil for an insert
	// PriorWriteID is the Meta.WriteID of the state that the change replaces. While the stored entity has it, the change is not
	// committed. It is "" for an insert, for an entity that another program wrote, and for a companion, which may be planned again.
	PriorWriteID string
	// Rewritten reports that a job stores the entity in a new form, as Upgrade does by a ChangeReplace whose properties differ. Like a
	// ChangeTouch it is no news of the entity.
	Rewritten bool
	DryRun    bool // for Explain and Check: write nothing

	pattern string
	state   *ChangeState
}

// NewChange is for package patterns. It returns the change as one pattern sees it.
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
	Given, Base tables.Properties // of a merge: the properties it sends, and those that are stored
	Whole       bool              // of a merge: it replaces the row

	notes map[string]any // by pattern
}
