package tables

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Meta records from which row an entity was read. Embed it in every type that a Repository stores: the conditional Replace,
// Merge and Delete send its ETag, and Replace and Delete use it to find the entity's other rows. A write updates the Meta of
// the value that was written. Copies of the value that were made before are then outdated, and writing one of them returns
// ErrConflict.
type Meta struct {
	// ETag is the ETag of the row as it was read, or after the last write of this value.
	ETag azcore.ETag `table:"-"`
	// Timestamp is the service's time of the last change of the row, as read.
	Timestamp time.Time `table:"-"`
	// Lossy reports that a text of the row has half of a surrogate pair, as programs in JavaScript can store it. No Go string can
	// hold that, so it was read as U+FFFD. Writes of the value, except Delete, return ErrInvalid until the program has corrected the text and
	// set Lossy to false.
	Lossy bool `table:"-"`

	state *State
}

// State is what a Repository stores in a Meta about the entity as it was read or written. It is never changed after
// it was made, since copies of an entity share it.
type State struct {
	Key         Key         // of the entity
	Row         string      // row key of the row that Meta.ETag belongs to: a copy's, when read through an index
	Incarnation string      // set by the insert and kept by every update: distinguishes the entity from a later one under the same key
	WriteID     string      // of the write that left the entity as read
	Copies      string      // names of the patterns whose copies were written with the row
	Carried     Properties  // properties that only a later version of the library knows, written back as they are
	Version     azcore.ETag // for an entity read through a copy in another partition: the ETag of the entity's own row when the copy was made
	Partial     bool        // read through a projection: some properties were not asked for
	Kept        bool        // the row is one of several, so that nothing but the repository may write it
	Prior       any         // the prior state of the repository's patterns
	Owner       any         // the repository that it was read by or written to; nil for Rows

	viewed *rowFacts // read through Rows
}

// Key returns the key with which the entity was read or written, the zero Key if it never was.
func (m *Meta) Key() Key {
	if m.state == nil {
		return Key{}
	}
	return m.state.Key
}

// ReadRow returns the row key of the row that the entity was read from: a copy's, when it was read through an index.
func (m *Meta) ReadRow() string {
	if m.state == nil {
		return ""
	}
	return m.state.Row
}

// Incarnation identifies the insert that created the entity: an entity deleted and inserted again under the same key
// has another one. Empty for entities that were not written through a Repository.
func (m *Meta) Incarnation() string {
	if m.state == nil {
		return ""
	}
	return m.state.Incarnation
}

// WriteID identifies the write that left the entity as it was read, or as the last Insert, Replace, Merge or Delete of a
// Repository left it. All rows of one transaction have the same. Empty where it is not known.
func (m *Meta) WriteID() string {
	if m.state == nil {
		return ""
	}
	return m.state.WriteID
}

// Partial reports whether the entity was read through a projection, so that some of its fields may be zero although the
// stored entity has them.
func (m *Meta) Partial() bool { return m.state != nil && m.state.Partial }
