package entity

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/carry"
)

// Meta records from which row an entity was read. Embed it in every type that a Repository stores: the conditional Replace,
// Merge and Delete send its ETag, and Replace and Delete use it to find the entity's other rows. A write updates the Meta of
// the value that was written. Copies of the value that were made before are then outdated, and writing one of them returns
// ErrConflict. Package encoding/json neither writes nor reads a Meta, so an entity's JSON has only T's own fields.
type Meta struct {
	// ETag is the ETag of the row as it was read, or after the last write of this value.
	ETag azcore.ETag `table:"-" json:"-"`
	// Timestamp is the service's time of the last change of the row, as read.
	Timestamp time.Time `table:"-" json:"-"`
	// Lossy reports that a text of the row has half of a surrogate pair, as programs in JavaScript can store it. No Go string can
	// hold that, so it was read as U+FFFD. Writes of the value, except Delete, return ErrInvalid until the program has corrected the text and
	// set Lossy to false.
	Lossy bool `table:"-" json:"-"`

	carried any // what the library knows about the entity, for the next write: see package internal/carry
}

// Key returns the key with which the entity was read, or written through a Repository, otherwise the zero Key.
func (m *Meta) Key() (key Key) {
	if o, ok := m.carried.(origin); ok {
		key, _, _, _, _ = o.Origin()
	}
	return key
}

// ReadRow returns the row key of the row that the entity was read from: a copy's, when it was read through an index.
func (m *Meta) ReadRow() (row string) {
	if o, ok := m.carried.(origin); ok {
		_, row, _, _, _ = o.Origin()
	}
	return row
}

// Incarnation returns the ID of the insert that created the entity: an entity that was deleted and inserted again under the same
// key has another one. It is "" for entities that were not written through a Repository.
func (m *Meta) Incarnation() (id string) {
	if o, ok := m.carried.(origin); ok {
		_, _, id, _, _ = o.Origin()
	}
	return id
}

// WriteID returns the ID of the last write of the entity when it was read, or of the last Insert, Replace, Merge or Delete of this
// value through a Repository. All rows of one transaction have the same ID. It is "" if it is unknown.
func (m *Meta) WriteID() (id string) {
	if o, ok := m.carried.(origin); ok {
		_, _, _, id, _ = o.Origin()
	}
	return id
}

// Partial reports whether the entity was read through a projection, so that some of its fields may be zero although the
// stored entity has them.
func (m *Meta) Partial() (partial bool) {
	if o, ok := m.carried.(origin); ok {
		_, _, _, _, partial = o.Origin()
	}
	return partial
}

// origin is what a Meta carries.
type origin interface {
	// Origin returns the entity's key, the row key of the row that was read, the IDs of the entity's insert and last write, and whether
	// some properties were not asked for.
	Origin() (key Key, row, incarnation, writeID string, partial bool)
}

var _ = carry.Define(func(holder any) *any {
	if meta, ok := holder.(*Meta); ok {
		return &meta.carried
	}
	return &holder.(*Entity).carried
})
