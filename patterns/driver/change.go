package driver

import (
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ChangeKind is what happens to an entity.
type ChangeKind uint8

// The kinds of change. What a caller does not know (Upsert, the unconditional forms) is read first and becomes one of
// these.
const (
	ChangeInsert ChangeKind = iota
	ChangeReplace
	ChangeMerge
	ChangeDelete
)

// String returns the verb.
func (k ChangeKind) String() string {
	return [...]string{"Insert", "Replace", "Merge", "Delete"}[k]
}

// Change is one logical change of an entity, as patterns see it.
type Change[T any] struct {
	Kind   ChangeKind
	Key    tables.Key
	ID     string            // unlike that of any other change; names new things outside
	Entity *T                // as it will be, or as it was read for a delete
	Given  *T                // the caller's, whose properties are merged; nil for the other kinds
	Stored tables.Properties // as it will be stored, once the transforms have run; nil for a delete
	Prior  []string          // what Implementation.Prior returned of the entity's old state; nil for an insert
	DryRun bool              // for Explain and Check: nothing may be written

	pattern string
	state   *ChangeState
}

// NewChange is for package patterns: the change as one pattern sees it.
func NewChange[T any](_ rows.Pass, pattern string, state *ChangeState, c Change[T]) *Change[T] {
	c.pattern, c.state = pattern, state
	return &c
}

// MergeWhole is for a Transform.Store that cannot merge into what is stored, since some of it has to go: what Store
// returns is all of the entity then, and takes the place of the row under the ETag of the merge. stored are the properties as
// they are.
func (c *Change[T]) MergeWhole() (stored tables.Properties) {
	c.state.Whole = true
	return slices.Clone(c.state.Base)
}

// Writes reports whether the change writes a property: an insert or a replace writes all, a merge those that it was given.
func (c *Change[T]) Writes(property string) bool {
	return c.Kind != ChangeDelete && (c.Kind != ChangeMerge || c.state != nil && c.state.Given.Has(property))
}

// Note keeps something about the change for later calls of the same pattern.
func (c *Change[T]) Note(v any) {
	if c.state == nil {
		c.state = &ChangeState{}
	}
	if c.state.notes == nil {
		c.state.notes = map[string]any{}
	}
	c.state.notes[c.pattern] = v
}

// Noted returns what the pattern noted last about the change, nil for nothing.
func (c *Change[T]) Noted() any {
	if c.state == nil {
		return nil
	}
	return c.state.notes[c.pattern]
}

// ChangeState is what package patterns and the methods of a Change share.
type ChangeState struct {
	Given, Base tables.Properties // of a merge: what it sends, and the properties as they are stored
	Whole       bool              // of a merge: it writes the row whole

	notes map[string]any // by pattern
}
