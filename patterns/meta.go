package patterns

import (
	"reflect"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Meta is what an entity remembers of the row it was read from. Embed it in every type that a Repository keeps:
// Replace, Merge and Delete need it to be conditional, and Replace and Delete to know the entity's other rows.
// A copy of an entity carries a copy of its Meta; after a successful write the Meta of the written value is current
// and that of older copies is stale, so that writing one of them is refused as a conflict.
type Meta struct {
	// ETag is that of the row the entity was read from, or that the last write left.
	ETag azcore.ETag `table:"-"`
	// Timestamp is the service's time of the last change, as read.
	Timestamp time.Time `table:"-"`

	state *state
}

// state is what lies behind a Meta. It is never changed once made, since copies of an entity share it.
type state struct {
	key         Key         // of the entity
	row         string      // row key of the row that ETag belongs to: a copy's, when read through an index
	incarnation string      // set by the insert and kept by every update: tells an entity from its successor
	writeID     string      // of the write that left the state as read
	copies      string      // names of the patterns whose copies were written with the row
	carried     Properties  // system properties of a later version of the library, written back as they are
	version     azcore.ETag // read through a copy outside: the ETag of the entity's own row that the copy was made of
	partial     bool        // read through a projection: some properties were not asked for
	memories    []memory

	owner  any       // the repository that it was read by or written to; nil for a TypedTable
	viewed *rowFacts // read through a TypedTable
}

// memory is what one pattern remembers of the entity as read, such as its index keys.
type memory struct {
	pattern string
	items   []string
}

// Key returns the key the entity was read or written with, the zero Key for one that never was.
func (m *Meta) Key() Key {
	if m.state == nil {
		return Key{}
	}
	return m.state.key
}

// ReadRow returns the row key of the row that the entity was read from: a copy's, when it was read through an index.
func (m *Meta) ReadRow() string {
	if m.state == nil {
		return ""
	}
	return m.state.row
}

// Incarnation identifies this life of the entity: an entity deleted and inserted again under the same key is
// another one. Empty for entities that were not written through a Repository.
func (m *Meta) Incarnation() string {
	if m.state == nil {
		return ""
	}
	return m.state.incarnation
}

// WriteID identifies the write that left the entity as it was read, or as the last Insert, Replace, Merge or Delete of a
// Repository left it. All rows of one transaction have the same. Empty where it is not known.
func (m *Meta) WriteID() string {
	if m.state == nil {
		return ""
	}
	return m.state.writeID
}

// Partial reports whether the entity was read through a projection, so that some of its fields may be zero although the
// stored entity has them.
func (m *Meta) Partial() bool { return m.state != nil && m.state.partial }

// isCopy reports whether the entity was read through a copy.
func (s *state) isCopy() bool { return s.version != "" || s.row != s.key.Row }

func (s *state) remembered(pattern string) []string {
	for _, m := range s.memories {
		if m.pattern == pattern {
			return m.items
		}
	}
	return nil
}

var metaType = reflect.TypeFor[Meta]()

// metaIndex finds the embedded Meta of a struct type, nil when it has none.
func metaIndex(t reflect.Type) []int {
	if f, ok := t.FieldByName(metaType.Name()); ok && f.Type == metaType && f.Anonymous {
		return f.Index
	}
	return nil
}
