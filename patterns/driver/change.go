package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ChangeKind is the kind of a change of an entity.
type ChangeKind uint8

// The kinds of change. Upsert and the unconditional verbs read the entity first, and then make a change of one
// of these kinds.
const (
	ChangeInsert ChangeKind = iota
	ChangeReplace
	ChangeMerge
	ChangeDelete
	// ChangeTouch writes an entity again without changing it; jobs such as Rebuild, Repair and
	// encryption.Reencrypt make this change. Change.Entity and Change.Prior describe the same state: the entity
	// as it was read. A pattern writes the rows that are missing for the entity, and nothing else: it must not
	// add a log entry, count again, send a notification, or rewrite correct rows. An entity may be touched
	// several times in the same state.
	ChangeTouch
)

// String returns the verb.
func (k ChangeKind) String() string {
	return [...]string{"Insert", "Replace", "Merge", "Delete", "Touch"}[k]
}

// Change is one logical change of an entity, as the functions of patterns get it.
type Change struct {
	Kind   ChangeKind // a pattern that reports changes must ignore ChangeTouch
	Key    tables.Key
	ID     string            // unique ID of this change; use it in the names of rows in other partitions
	Entity any               // the new state, or the state that was read for a delete
	Given  any               // for a merge: a pointer to the caller's value, whose properties are merged; nil for other kinds
	Stored tables.Properties // the properties to store, after the transforms; nil for a delete
	Prior  []string          // what Implementation.Prior returned for the entity's old state; nil for an insert
	// PriorWriteID is the Meta.WriteID of the state that the change replaces. While the stored entity has it,
	// the change is not committed. It is "" for an insert, for an entity that a program without this library
	// wrote, and for a companion (see Implementation.Companions).
	PriorWriteID string
	// Rewritten reports that a job stores the entity in a new form, as Upgrade does with a ChangeReplace. As
	// with a ChangeTouch, the entity itself has not changed.
	Rewritten bool
	DryRun    bool // for Explain and Check: write nothing

	pattern string
	state   *ChangeState
}

// NewChange returns c as the Change that a pattern gets, with the state that all patterns of the change share. Package patterns makes
// every Change so, and the tests of a pattern can do the same.
func NewChange(pattern string, state *ChangeState, c Change) *Change {
	c.pattern, c.state = pattern, state
	return &c
}

// MergeWhole is for a Transform.Store that cannot merge because it must remove properties from the stored row.
// After the call, Store must return all properties of the entity, and the change replaces the row under its
// ETag. stored are the properties that the row has now.
func (c *Change) MergeWhole() (stored tables.Properties) {
	c.state.Whole = true
	return slices.Clone(c.state.Base)
}

// Writes reports whether the change writes a property: an insert, a replace or a touch writes every property, a
// merge those that it sends, and a delete none.
func (c *Change) Writes(property string) bool {
	return c.Kind != ChangeDelete && (c.Kind != ChangeMerge || c.state != nil && c.state.Given.Has(property))
}

// StoresOutside is for a Transform.Store, which calls it for each thing that it stores, or with DryRun would store, outside of the partition.
// Explain lists them.
func (c *Change) StoresOutside(name string) {
	if c.state != nil {
		c.state.Outside = append(c.state.Outside, c.pattern+": "+name)
	}
}

// Note stores a value with the change for later calls of the same pattern.
func (c *Change) Note(v any) {
	if c.state == nil {
		c.state = &ChangeState{}
	}
	if c.state.notes == nil {
		c.state.notes = map[string]any{}
	}
	c.state.notes[c.pattern] = v
}

// Noted returns the pattern's last Note about the change, or nil.
func (c *Change) Noted() any {
	if c.state == nil {
		return nil
	}
	return c.state.notes[c.pattern]
}

// ChangeState is shared by package patterns and the methods of a Change.
type ChangeState struct {
	Given, Base tables.Properties // for a merge: the properties that it sends, and the properties that the row has
	Whole       bool              // for a merge: MergeWhole was called, so the change replaces the row
	Outside     []string          // what transforms store outside of the partition

	notes map[string]any // by pattern
}

// Beside are rows that belong to no single entity and to no pattern of a repository, such as the mark that an
// archive.Mover keeps beside a copy while it moves an entity. They are written in the transaction of an
// entity's change (ApplyOptions.Beside), or alone (Write). Queries, indexes and Verify skip them. Their row
// keys begin with U+FFFC and a word of their owner, so they never collide with an entity.
type Beside struct {
	// Owner is the name of the package that keeps the rows, stored in each as _tpShared.
	Owner string
	// Rows are the writes of the rows. In the transaction of an entity, each row gets the entity's partition
	// key, whatever its own Key.Partition is. A write sets Row.ETag to the new ETag, or to "" if the ETag is
	// unknown because the response was lost and another writer has changed the row since.
	Rows []RowOperation
}

// Write writes the rows, all of one partition of the table, in one transaction. It returns ErrConflict,
// ErrExists or ErrNotFound if a row has changed, appeared or disappeared. Requests: 1.
func (b *Beside) Write(ctx context.Context, table *tables.Table) error {
	const op = "Write"
	writes, err := core.Beside(b.Owner, b.Rows, func(r RowOperation) (core.SharedVerb, *tables.Entity) { return core.SharedVerb(r.Verb), r.Row })
	if err != nil {
		return errs.Invalid(op, err)
	}
	etags, _, err := (*core.Table)(table).Commit(ctx, op, writes...)
	if err != nil {
		return err
	}
	for i := range b.Rows {
		b.Rows[i].Row.ETag = etags[i]
	}
	return nil
}

// keySeparator stands between the parts of a joined key; no key contains it.
const keySeparator = "\t"

// JoinKey returns a key as one text, for Fact.Place and the keys of an intent; SplitKey is the inverse.
func JoinKey(key tables.Key) string { return key.Partition + keySeparator + key.Row }

// SplitKey returns the key that JoinKey has joined. It returns an error for any other text: intents come from
// a queue, so the text may be forged.
func SplitKey(text string) (tables.Key, error) {
	partition, row, ok := strings.Cut(text, keySeparator)
	if !ok {
		return tables.Key{}, fmt.Errorf("the text of %d characters is not a key that JoinKey has joined; it must be a partition key, a tab and a row key", len(text))
	}
	return tables.Key{Partition: partition, Row: row}, nil
}
