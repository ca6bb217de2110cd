package marks

import "slices"

// Seen is what the read of an entity has shown.
type Seen struct {
	ETag string // "" if the entity does not exist
	Has  bool   // it has the key of the row
}

// Verdict is whether a change may write its mark over a row.
type Verdict uint8

// The verdicts.
const (
	Allowed   Verdict = iota // write as Place.Verb says; None if the row has the mark already, since only the answer was lost
	Conflict                 // a member has changed since it was read
	Exists                   // the entity that a member inserts exists
	Inserting                // an insert of the member is under way, or its process has died: the change can be repeated after Term and Grace
	Duplicate                // another entity has the key
	Taking                   // a change that may still commit is taking the key for another entity
	Foreign                  // the row is no copy of an entity
)

// Asks returns the entities to read before Decide, after the row. For a settled row it returns none: it answers for its owner, unless that is a member
// that no longer seems to have its base.
func (p *Place) Asks(r *Row) []Key {
	switch {
	case len(r.Names) == 0 || p.wrote(r):
		return nil
	case r.Mark == "":
		if m := p.member(r.Names[0]); m == nil || r.Version != "" && r.Version == m.Base {
			return nil
		}
	}
	return r.Names
}

// wrote reports whether an earlier attempt of the change, whose answer was lost, has written the row.
func (p *Place) wrote(r *Row) bool { return r.Acquirer == p.id }

// Decide decides whether the change may write its mark over the row that was read, and sets Verb accordingly. seen are the entities that Asks has
// returned.
func (p *Place) Decide(r *Row, seen []Seen) Verdict {
	switch {
	case r.ETag == "":
		p.Verb = Insert
		return Allowed
	case len(r.Names) == 0:
		return Foreign
	case p.wrote(r):
		if p.without.Has(FreshOnce) {
			p.Fresh = p.Giver == nil
		}
		p.Wrote(r.ETag)
		return Allowed
	case len(seen) == 0:
		seen = []Seen{{r.Version, true}}
	}
	last := len(r.Names) - 1
	over := r.over(seen[last], p.without)
	for i, key := range r.Names {
		if v := p.decideOne(key, seen[i], r.Base == "" && !over); v != Allowed {
			return v
		}
	}
	if !over && p.member(r.Names[last]) == nil && !p.without.Has(StaysNamed) {
		return Taking
	}
	p.Verb, p.Under = Replace, r.ETag
	if slices.Contains(r.Names, p.Acquirer().Entity) {
		p.Fresh = false // another change of the entity may rely on the row
	}
	return Allowed
}

// decideOne decides by one of the entities that the row names. inserting says that an insert takes the key.
func (p *Place) decideOne(key Key, now Seen, inserting bool) Verdict {
	switch m := p.member(key); {
	case m == nil && now.Has:
		return Duplicate
	case m == nil:
		return Allowed
	case now.ETag != m.Base && m.Base == "" && !p.without.Has(AtBase):
		return Exists
	case now.ETag != m.Base && !p.without.Has(AtBase):
		return Conflict
	case m == p.Acquirer() && inserting && !p.without.Has(InsertUnderWay):
		return Inserting
	}
	return Allowed
}
