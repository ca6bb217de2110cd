package core

import (
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/carry"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// State is what a Repository stores in a Meta about the entity as it was read or written. It never changes, since copies of an
// entity share it.
type State struct {
	Key         entity.Key        // of the entity
	Row         string            // row key of the row that was read: a copy's, when read through an index
	Incarnation string            // set by the insert and kept by every update: distinguishes the entity from a later one under the same key
	WriteID     string            // of the entity's last write before it was read
	Copies      string            // names of the patterns whose copies were written with the row
	Carried     entity.Properties // properties that only a later version of the library knows, written back as they are
	Version     azcore.ETag       // for an entity read through a copy in another partition that does not say all about the entity's own row: the ETag of that row
	Current     bool              // Row is of such a copy, but Meta.ETag and the state are of the entity's own row
	Seen        entity.Properties // the properties of such a copy if it is a projection, which does not say of which version it is
	Partial     bool              // read through a projection: some properties were not asked for
	Kept        bool              // the row is one of several, so that nothing but the repository may write it
	Prior       any               // the prior state of the repository's patterns
	Owner       any               // the repository that it was read by or written to; nil for Rows

	viewed *rowFacts // set for a value that was read through Rows
}

// Origin returns what a Meta tells about its entity.
func (s *State) Origin() (key entity.Key, row, incarnation, writeID string, partial bool) {
	return s.Key, s.Row, s.Incarnation, s.WriteID, s.Partial
}

// StateOf returns the state that a Meta carries, nil for none.
func StateOf(m *entity.Meta) *State {
	if m == nil {
		return nil
	}
	s, _ := (*carry.Of(m)).(*State)
	return s
}

// SetState makes a Meta carry a state, or none if s is nil.
func SetState(m *entity.Meta, s *State) {
	if s == nil {
		*carry.Of(m) = nil
		return
	}
	*carry.Of(m) = s
}

// rowFacts is what a value keeps about the row it was read from, beside its properties, for writes without a repository. It never
// changes, since copies of a value share it.
type rowFacts struct {
	key         entity.Key
	partial     bool              // read through a projection: some properties were not asked for
	kept        bool              // a repository keeps the row consistent with others
	incarnation string            // of a repository's entity
	carried     entity.Properties // properties that only a later version of the library knows
}

// factsOf returns the facts of a row that was read. The row may be one of several: then an entity's own row lists copies or a layout.
func factsOf(row *tablerow.Row, partial bool) rowFacts {
	o := &row.Own
	return rowFacts{key: row.Key, partial: partial, incarnation: o.Incarnation, carried: slices.Clone(o.Later),
		kept: o.IsCopy || o.Copies != "" || o.Layout != ""}
}

// keep makes a bag carry facts, or none if they say nothing.
func keep(e *entity.Entity, facts *rowFacts) {
	switch carried := carry.Of(e); {
	case facts != nil && !facts.none():
		*carried = facts
	case *carried != nil: // otherwise another goroutine may be reading the same bag for a bulk write
		*carried = nil
	}
}

// none reports whether f has no facts.
func (f *rowFacts) none() bool {
	return !f.partial && !f.kept && f.incarnation == "" && len(f.carried) == 0
}

// facts returns the rowFacts of an entity that a repository read or wrote.
func (s *State) facts() *rowFacts {
	return &rowFacts{key: entity.Key{Partition: s.Key.Partition, Row: s.Row}, partial: s.Partial, incarnation: s.Incarnation, carried: s.Carried, kept: s.Kept}
}

// facts returns what v keeps about its row, nil for a struct that keeps nothing or embeds no Meta.
func (c *Codec) facts(v any) *rowFacts {
	if c.plan == nil {
		facts, _ := (*carry.Of(v)).(*rowFacts)
		return facts
	}
	state := StateOf(c.Meta(v))
	switch {
	case state == nil:
		return nil
	case state.Owner != nil:
		return state.facts()
	}
	return state.viewed
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
		return ErrPartial
	case f.partial && verb == wire.VerbMerge && !bag && !named:
		return errors.New("the value was read through a projection, and a merge would overwrite the properties that were not read with zero values; name the properties to merge")
	}
	return nil
}

// onto adds to w the properties that a write of the row must keep. It adds none if w has another key: then w writes another row. A merge
// does not update the copies, so it clears the list of copies, which would otherwise be wrong.
func (f *rowFacts) onto(w *tablerow.Row) {
	if w.Key != f.key || w.Verb != wire.VerbReplace && w.Verb != wire.VerbMerge {
		return
	}
	if w.Verb == wire.VerbReplace {
		w.Own.Later = f.carried
	}
	w.Own.Incarnation = f.incarnation
}

// after returns the facts that remain after a write of the row. An insert makes a plain row that has just the value's properties;
// after a delete the value may still be partial.
func (f *rowFacts) after(verb wire.Verb) *rowFacts {
	switch {
	case verb == wire.VerbInsert:
		return nil
	case verb == wire.VerbDelete:
		return &rowFacts{partial: f.partial}
	}
	return f
}

// after returns the state that remains after a write of the row without a repository. A repository then reads the
// entity again before it changes it.
func (s *State) after(verb wire.Verb) *State {
	switch {
	case verb == wire.VerbDelete && s.Partial:
		return &State{Partial: true, viewed: &rowFacts{partial: true}}
	case verb == wire.VerbInsert, verb == wire.VerbDelete:
		return nil
	case s.Owner == nil:
		return s
	}
	viewed := *s
	viewed.Owner, viewed.viewed = nil, s.facts()
	return &viewed
}
