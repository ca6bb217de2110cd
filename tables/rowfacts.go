package tables

import (
	"errors"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// rowFacts is what a value keeps about the row it was read from, beside its properties, for writes without a
// repository. It is not changed after it was made, since copies of a value share it.
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
func (s *State) facts() *rowFacts {
	return &rowFacts{key: Key{s.Key.Partition, s.Row}, partial: s.Partial, incarnation: s.Incarnation, carried: s.Carried, kept: s.Kept}
}

// facts returns what v keeps about its row, nil if there is nothing or T has no room for it.
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
// own properties. bag says that the value is an Entity: then a merge of a partial value is harmless, too.
func (f *rowFacts) check(verb wire.Verb, bag bool) error {
	switch {
	case verb == wire.VerbInsert && f.kept && bag:
		return errKeptBag
	case verb == wire.VerbInsert:
		return nil
	case f.kept:
		return errors.New("the row is one of several that a Repository keeps consistent; change the entity through the repository")
	case f.partial && verb == wire.VerbReplace:
		return errPartial
	case f.partial && verb == wire.VerbMerge && !bag:
		return errors.New("the value was read through a projection, and a merge would overwrite the properties that were not read with zero values; merge an Entity with the changed properties")
	}
	return nil
}

// onto adds to w the properties that a write of the row must keep. It adds none if w has another key, since that is
// another row.
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
		// A merge does not update the copies, so it clears the list of copies, which would be wrong.
		w.System = append(w.System, Property{rows.Copies, String("")})
	}
}

// after returns the facts that remain after a write of the row. An inserted row is a plain row and the value holds
// all of it; after a delete the value may still be partial.
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
