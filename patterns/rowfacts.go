package patterns

import (
	"errors"

	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// rowFacts is what a value remembers of the row it was read from, beside its properties, for writes of that row by
// itself. It is not changed once made, since copies of a value share it.
type rowFacts struct {
	key         Key
	partial     bool       // read through a projection: some properties were not asked for
	kept        bool       // a repository keeps the row together with others
	incarnation string     // of a repository's entity
	carried     Properties // system properties of a later version of the library
}

func (r *storedRow) facts(partial bool) rowFacts {
	return rowFacts{key: r.key, partial: partial, kept: r.isCopy || r.copies != "" || r.layout != "", incarnation: r.incarnation, carried: r.carried}
}

// none reports whether there is nothing to remember.
func (f *rowFacts) none() bool {
	return !f.partial && !f.kept && f.incarnation == "" && len(f.carried) == 0
}

// facts are those of an entity that a repository read or wrote.
func (s *state) facts() *rowFacts {
	return &rowFacts{
		key: Key{s.key.Partition, s.row}, partial: s.partial, incarnation: s.incarnation, carried: s.carried,
		kept: s.copies != "" || s.isCopy() || len(s.remembered(rowMemory))+len(s.remembered(outsideMemory)) > 0,
	}
}

// facts returns what v remembers of its row, nil where there is nothing or no room for it.
func (c *Codec[T]) facts(v *T) *rowFacts {
	if c.plan == nil {
		return &any(v).(*Entity).read
	}
	meta := c.meta(v)
	if meta == nil || meta.state == nil {
		return nil
	}
	if meta.state.owner != nil {
		return meta.state.facts()
	}
	return meta.state.viewed
}

func errPartial() error {
	return errors.New("it was read through a projection, and replacing it would remove what was not read; read it whole, or Merge")
}

// check refuses to write what would do harm: to take the place of a row by what a projection left of it, and to change
// one row of several that are kept in step. merges says that a merge of a partial value does none.
func (f *rowFacts) check(verb wire.Verb, merges bool) error {
	switch {
	case verb == wire.VerbInsert:
		return nil
	case f.kept:
		return errors.New("the row is one of several that a Repository keeps in step; change the entity through the repository")
	case f.partial && verb == wire.VerbReplace:
		return errPartial()
	case f.partial && verb == wire.VerbMerge && !merges:
		return errors.New("it was read through a projection, and merging it would write zero values over what was not read; merge an Entity with what changes")
	}
	return nil
}

// onto hands on to an operation what a write of the row must not lose. Under another key it is another row.
func (f *rowFacts) onto(o *operation) {
	if o.key != f.key {
		return
	}
	if o.verb == wire.VerbReplace || o.verb == wire.VerbMerge {
		o.incarnation = f.incarnation
	}
	if o.verb == wire.VerbReplace {
		o.carried = f.carried
	}
}

// after returns what is left of the facts after a write of the row. What was inserted is a plain row, of which the
// value is the whole; of a row that is deleted the value may still lack some.
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

// after returns what is left of a state after a write of the row by itself. A repository then reads the entity again
// before it changes it.
func (s *state) after(verb wire.Verb) *state {
	switch {
	case verb == wire.VerbDelete && s.partial:
		return &state{partial: true, viewed: &rowFacts{partial: true}}
	case verb == wire.VerbInsert, verb == wire.VerbDelete:
		return nil
	case s.owner == nil:
		return s
	}
	viewed := *s
	viewed.owner, viewed.viewed = nil, s.facts()
	return &viewed
}
