package marks

import "slices"

// Holder is an entity that has the key of a row, and the ETag with which it was read.
type Holder struct {
	Entity Key
	ETag   string
}

// Finding is what a job finds at a row.
type Finding uint8

// The findings. Old is no fault: a reader needs one request more.
const (
	Right     Finding = iota
	Old               // marked for longer than term and grace
	Missing           // an entity has the key, and there is no row
	Spurious          // settled, and no entity has the key
	Different         // settled, and not the copy of the entity that has the key
	Twice             // two entities have the key; the row is right for one of them
	InTheWay          // an entity has the key, and the row is no copy
)

// Agreement is a finding, and what Repair does about it: write Row as Verb says, under the ETag of the row that was read.
type Agreement struct {
	Finding Finding
	Confirm bool // first read the row again, and the entities after it if the row is missing, and call Confirmed
	Verb    Verb
	Row     Row // settled: the caller adds the content
}

// Owners returns the entities to read before Agree, after the row: those that the row names, and the one for which the job has come.
func (r *Row) Owners(entity Key) []Key {
	if slices.Contains(r.Names, entity) {
		return r.Names
	}
	return append(slices.Clone(r.Names), entity)
}

// Agree compares a row with the entities that have its key, in the order of Owners. same says that the row is the copy of the first of them. id names
// the job. What is damaged is marked, since a change that is under way may have relied on the row before the damage: Repair comes again after term and
// grace, finds it Old, and settles it.
func Agree(r *Row, has []Holder, same bool, id string, without Rules) Agreement {
	switch {
	case r.ETag != "" && len(r.Names) == 0:
		if len(has) > 0 {
			return Agreement{Finding: InTheWay}
		}
	case r.ETag == "" && len(has) > 0:
		return damaged(Agreement{Finding: Missing, Verb: Insert}, has[0], id, without)
	case r.ETag != "" && r.Mark != "":
		if r.Expired() || without.Has(TidyAfterTerm) {
			return tidy(Old, has)
		}
	case r.ETag != "" && len(has) == 0:
		return damaged(Agreement{Finding: Spurious, Verb: Replace}, Holder{Entity: r.Names[0]}, id, without)
	case r.ETag != "" && (!same || has[0].Entity != r.Names[0]):
		return damaged(Agreement{Finding: Different, Verb: Replace}, has[0], id, without)
	case len(has) > 1:
		return Agreement{Finding: Twice, Confirm: true}
	}
	return Agreement{}
}

// tidy settles a row.
func tidy(f Finding, has []Holder) Agreement {
	if len(has) == 0 {
		return Agreement{Finding: f, Verb: Delete}
	}
	return Agreement{Finding: f, Verb: Replace, Row: Settled(has[0].Entity, has[0].ETag)}
}

func damaged(a Agreement, owner Holder, id string, without Rules) Agreement {
	a.Confirm, a.Row = true, Marked(owner.Entity, id)
	if without.Has(MarkDamage) {
		a.Row = Settled(owner.Entity, owner.ETag)
	}
	return a
}

// Confirmed reports whether a finding holds: the row is the same as before and, if it is missing, so are the entities, which were read again after
// it. Otherwise the row may be missing because its entity has had the key for a moment between two reads of the row.
func Confirmed(was, again *Row, had, has []Holder, without Rules) bool {
	return was.ETag == again.ETag && (was.ETag != "" || without.Has(ConfirmMissing) || slices.Equal(had, has))
}
