package marks

import (
	"cmp"
	"slices"
)

// Verb is what is to be done with a row.
type Verb uint8

// The verbs. A refusal of Merge, Insert or Replace means that another row than expected is there, or none.
const (
	None    Verb = iota
	Read         // read the row, then the entities that Place.Asks returns, and call Place.Decide
	Merge        // merge the mark, under any ETag
	Insert       // insert the row
	Replace      // replace the row under an ETag
	Delete       // delete the row under an ETag
)

// Member is an entity of a change set.
type Member struct {
	Entity Key
	Base   string // the ETag from which its change starts; "" for an insert
	// Had and Has are the sites of the entity's copies before and after the change. Both leave out a copy that the change does
	// not alter: its key stays, it does not store the entity's ETag, and no property that it stores changes.
	Had, Has []Site
}

// Place is a row that a change set marks before it commits.
type Place struct {
	Site
	Giver *Member // has the key before; nil if no member has it
	Taker *Member // has the key afterwards; nil if no member has it

	Verb  Verb   // how to mark the row next; None if that is done
	Under string // the ETag for Replace
	Fresh bool   // nobody else relies on the row that the change writes
	Mark  string // the ETag of the mark; "" if it is not known

	id      string
	without Rules
}

// Plan returns the places of the change set with an ID, in the order of their keys. twice is a site that two members would have, or nil.
func Plan(id string, members []Member, without Rules) (places []Place, twice *Site) {
	index := map[Site]int{}
	at := func(s Site) *Place {
		i, known := index[s]
		if !known {
			i = len(places)
			index[s], places = i, append(places, Place{Site: s, id: id, without: without})
		}
		return &places[i]
	}
	for i := range members {
		for _, s := range members[i].Has {
			p := at(s)
			if p.Taker != nil && p.Taker != &members[i] {
				return nil, &s
			}
			p.Taker = &members[i]
		}
	}
	for i := range members {
		for _, s := range members[i].Had {
			if p := at(s); p.Giver == nil || p.Taker == &members[i] {
				p.Giver = &members[i]
			}
		}
	}
	for i := range places {
		places[i].begin()
	}
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Row, b.Row))
	})
	return places, nil
}

func (p *Place) begin() {
	switch {
	case p.Giver == nil:
		p.Verb, p.Fresh = Insert, true
	case p.Taker != nil && p.Taker != p.Giver && !p.without.Has(WriteNext):
		p.Verb = Read
	case !p.without.Has(Hold):
		p.Verb = Merge
	}
}

// maxTogether is the number of rows of a transaction of the service.
const maxTogether = 100

// Groups splits places, in the order of Plan, into those of one transaction each.
func Groups(places []Place) (groups [][]Place) {
	for from, to := 0, 1; to <= len(places); to++ {
		if to == len(places) || to-from == maxTogether || places[to].Table != places[from].Table || places[to].Partition != places[from].Partition {
			groups, from = append(groups, places[from:to:to]), to
		}
	}
	return groups
}

// Acquirer is the member that the row names as the one that takes the key or, if no member takes it, the one that has it.
func (p *Place) Acquirer() *Member {
	if p.Taker != nil {
		return p.Taker
	}
	return p.Giver
}

// member returns the giver or the taker if it is the entity, otherwise nil.
func (p *Place) member(entity Key) *Member {
	for _, m := range [...]*Member{p.Taker, p.Giver} {
		if m != nil && m.Entity == entity {
			return m
		}
	}
	return nil
}

// Content returns the row that Merge, Insert or Replace writes. For Merge it has only the mark.
func (p *Place) Content() Row {
	if p.Verb == Merge {
		return Row{Mark: p.id}
	}
	m := p.Acquirer()
	r := Row{Names: []Key{m.Entity}, Mark: p.id, Acquirer: p.id, Base: m.Base}
	if p.Giver != nil && p.Giver != m {
		r.Names = []Key{p.Giver.Entity, m.Entity}
	}
	return r
}

// Wrote records that the mark was written, and the ETag of the answer.
func (p *Place) Wrote(etag string) { p.Verb, p.Mark = None, etag }

// Refused records that the mark was refused because of what is there.
func (p *Place) Refused() {
	if p.Verb != Merge {
		p.Verb = Read
		return
	}
	// The row of a key that the member has is missing: the index is being built, the row was deleted by somebody, or the base is outdated.
	if p.Verb = Insert; p.without.Has(InsertMissing) {
		p.Verb = None
	}
}

// Lost records that the answer to the mark was lost. A merge can be repeated; whether the row was written otherwise, it shows itself.
func (p *Place) Lost() {
	if p.Verb != Merge {
		p.Verb = Read
	}
}

// Found records the mark if the row, which was read because the answer to the mark was lost, has it.
func (p *Place) Found(r *Row) bool {
	if p.wrote(r) {
		p.Wrote(r.ETag)
	}
	return p.Mark != ""
}

// Outcome is the outcome of a commit.
type Outcome uint8

// The outcomes. A commit that was not sent is Refused.
const (
	Committed Outcome = iota
	Refused
	Unknown
)

// After returns what to do with the row after the commit, under Mark: Replace it by the settled copy of the taker, Delete it, or None. If that
// is refused, somebody else has marked the row, and settles it. Read means to read the entity of Acquirer, and to call Release.
func (p *Place) After(o Outcome) Verb {
	switch {
	case p.Mark == "" || o == Unknown && !p.without.Has(LeaveUnknown):
		return None
	case o == Committed || o == Refused && p.without.Has(SettleCommitted):
		if p.Taker != nil {
			return Replace
		}
		return Delete
	case !p.Fresh && !p.without.Has(ReleaseFresh):
		return None
	case p.without.Has(LookBeforeRelease):
		return Delete
	}
	return Read
}

// Release returns what to do with a fresh row after a refusal. now is the entity of Acquirer, as read after the refusal. It may have the key all the
// same: a proxy has sent the commit twice and returned the second answer, or somebody had deleted the row of a key that it has.
func (p *Place) Release(now Seen) Verb {
	if now.Has {
		return None
	}
	return Delete
}
