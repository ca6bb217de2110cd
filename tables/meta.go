package tables

import (
	"errors"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/wire"
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

	state *RawState
}

// RawState is what a Repository stores in a Meta about the entity as it was read or written. It never changes, since copies of an
// entity share it.
type RawState struct {
	Key         Key         // of the entity
	Row         string      // row key of the row that Meta.ETag belongs to: a copy's, when read through an index
	Incarnation string      // set by the insert and kept by every update: distinguishes the entity from a later one under the same key
	WriteID     string      // of the entity's last write before it was read
	Copies      string      // names of the patterns whose copies were written with the row
	Carried     Properties  // properties that only a later version of the library knows, written back as they are
	Version     azcore.ETag // for an entity read through a copy in another partition: the ETag of the entity's own row when the copy was made
	Partial     bool        // read through a projection: some properties were not asked for
	Kept        bool        // the row is one of several, so that nothing but the repository may write it
	Prior       any         // the prior state of the repository's patterns
	Owner       any         // the repository that it was read by or written to; nil for Rows

	viewed *rowFacts // set for a value that was read through Rows
}

// Key returns the key with which the entity was read, or written through a Repository, otherwise the zero Key.
func (m *Meta) Key() Key { return m.known().Key }

// ReadRow returns the row key of the row that the entity was read from: a copy's, when it was read through an index.
func (m *Meta) ReadRow() string { return m.known().Row }

// Incarnation returns the ID of the insert that created the entity: an entity that was deleted and inserted again under the same
// key has another one. It is "" for entities that were not written through a Repository.
func (m *Meta) Incarnation() string { return m.known().Incarnation }

// WriteID returns the ID of the last write of the entity when it was read, or of the last Insert, Replace, Merge or Delete of this
// value through a Repository. All rows of one transaction have the same ID. It is "" if it is unknown.
func (m *Meta) WriteID() string { return m.known().WriteID }

// Partial reports whether the entity was read through a projection, so that some of its fields may be zero although the
// stored entity has them.
func (m *Meta) Partial() bool { return m.known().Partial }

// known returns the state, an empty one if there is none.
func (m *Meta) known() *RawState {
	if m.state == nil {
		return &RawState{}
	}
	return m.state
}

// rowFacts is what a value keeps about the row it was read from, beside its properties, for writes without a repository. It never
// changes, since copies of a value share it.
type rowFacts struct {
	key         Key
	partial     bool       // read through a projection: some properties were not asked for
	kept        bool       // a repository keeps the row consistent with others
	incarnation string     // of a repository's entity
	carried     Properties // properties that only a later version of the library knows
}

func (r *RawRow) facts(partial bool) rowFacts {
	f := rowFacts{key: r.Key, partial: partial}
	for _, p := range r.System {
		switch {
		case p.Name == rows.Incarnation:
			f.incarnation, _ = p.Value.Text()
		case !rows.IsKnown(p.Name):
			f.carried = append(f.carried, p)
		case p.Name == rows.Primary, p.Name == rows.Shared:
			f.kept = true
		case p.Name == rows.Copies, p.Name == rows.Layout:
			f.kept = f.kept || p.Value != String("")
		}
	}
	return f
}

// none reports whether f has no facts.
func (f *rowFacts) none() bool {
	return !f.partial && !f.kept && f.incarnation == "" && len(f.carried) == 0
}

// facts returns the rowFacts of an entity that a repository read or wrote.
func (s *RawState) facts() *rowFacts {
	return &rowFacts{key: Key{s.Key.Partition, s.Row}, partial: s.Partial, incarnation: s.Incarnation, carried: s.Carried, kept: s.Kept}
}

// facts returns what v keeps about its row, nil for a struct that keeps nothing or embeds no Meta.
func (c *RawCodec) facts(v any) *rowFacts {
	if c.plan == nil {
		return &v.(*Entity).read
	}
	meta := c.Meta(v)
	if meta == nil || meta.state == nil {
		return nil
	}
	if meta.state.Owner != nil {
		return meta.state.facts()
	}
	return meta.state.viewed
}

// check refuses writes that would lose data: replacing a row with a value read through a projection, changing one
// row of several that a repository keeps consistent, and inserting such a row elsewhere as a bag, which lacks the library's
// own properties. bag says that the value is an Entity, named that a merge names its properties: then a merge of a partial value
// is harmless.
func (f *rowFacts) check(verb wire.Verb, bag, named bool) error {
	switch {
	case verb == wire.VerbInsert && f.kept && bag:
		return errKeptBag
	case verb == wire.VerbInsert:
		return nil
	case f.kept:
		return errors.New("the row is one of several that a Repository keeps consistent; change the entity through the repository")
	case f.partial && verb == wire.VerbReplace:
		return errPartial
	case f.partial && verb == wire.VerbMerge && !bag && !named:
		return errors.New("the value was read through a projection, and a merge would overwrite the properties that were not read with zero values; name the properties to merge")
	}
	return nil
}

// onto adds to w the properties that a write of the row must keep. It adds none if w has another key: then w writes another row.
func (f *rowFacts) onto(w *RawWrite) {
	if w.Key != f.key || w.Verb != wire.VerbReplace && w.Verb != wire.VerbMerge {
		return
	}
	if w.Verb == wire.VerbReplace {
		w.System = slices.Clone(f.carried)
	}
	if f.incarnation == "" {
		return
	}
	w.Marked = true
	w.System = append(w.System, Property{rows.Incarnation, String(f.incarnation)})
	if w.Verb == wire.VerbMerge {
		// A merge does not update the copies, so it clears the list of copies, which would otherwise be wrong.
		w.System = append(w.System, Property{rows.Copies, String("")})
	}
}

// after returns the facts that remain after a write of the row. An insert makes a plain row that has just the value's properties;
// after a delete the value may still be partial.
func (f *rowFacts) after(verb wire.Verb) *rowFacts {
	switch {
	case f.none():
	case verb == wire.VerbInsert:
		return &rowFacts{}
	case verb == wire.VerbDelete:
		return &rowFacts{partial: f.partial}
	}
	return f
}

// after returns the state that remains after a write of the row without a repository. A repository then reads the
// entity again before it changes it.
func (s *RawState) after(verb wire.Verb) *RawState {
	switch {
	case verb == wire.VerbDelete && s.Partial:
		return &RawState{Partial: true, viewed: &rowFacts{partial: true}}
	case verb == wire.VerbInsert, verb == wire.VerbDelete:
		return nil
	case s.Owner == nil:
		return s
	}
	viewed := *s
	viewed.Owner, viewed.viewed = nil, s.facts()
	return &viewed
}
