// Package keys has the state of models of change sets: entities that have a key each, the members of a set, which a process reads
// one after another, and the rows of unique keys. It does no I/O.
package keys

import (
	"fmt"

	"github.com/tablepatterns/tablepatterns/internal/models/messages"
)

// Special keys and owners.
const (
	NoKey  = -1
	Keep   = -2 // in a change: the member keeps its key
	Out    = -3 // in a change: the entity is no member
	Nobody = -1
)

// Entity is an entity's ETag and its key.
type Entity struct{ Version, Key int8 }

// Entities are the entities of a world, in one partition.
type Entities [3]Entity

// Change is a change of several members, and the keys that they get.
type Change struct {
	Members uint8
	To      [3]int8
}

// Set returns a change that gives the entities keys, in their order. The entities for which it has none are no members.
func Set(to ...int8) (ch Change) {
	ch.To = [3]int8{Out, Out, Out}
	for e, k := range to {
		if ch.To[e] = k; k != Out {
			ch.Members |= 1 << e
		}
	}
	return ch
}

// New returns entities that have the keys.
func New(keys [3]int8) (all Entities) {
	for e, k := range keys {
		all[e] = Entity{1, k}
	}
	return all
}

// Versions returns the ETags.
func (all Entities) Versions() (v [3]int8) {
	for e := range all {
		v[e] = all[e].Version
	}
	return v
}

// Commit makes a change in one transaction. It reports whether the ETags of all its members are those in versions.
func (all *Entities) Commit(ch *Change, versions [3]int8) bool {
	for e := range all {
		if ch.Members&(1<<e) != 0 && all[e].Version != versions[e] {
			return false
		}
	}
	for e := range all {
		if ch.Members&(1<<e) == 0 {
			continue
		}
		all[e].Version++
		if ch.To[e] != Keep {
			all[e].Key = ch.To[e]
		}
	}
	return true
}

// Owner returns the entity that has a key. clash reports whether two entities have it.
func (all *Entities) Owner(k int) (owner int8, clash bool) {
	owner = Nobody
	for e := range all {
		if int(all[e].Key) == k {
			owner, clash = int8(e), owner != Nobody
		}
	}
	return owner, clash
}

// Reader is an actor that reads the members of its change.
type Reader struct {
	messages.Actor
	Seen Entities // the members as the actor has read them
	N    int8     // the next member, key or row
}

// Plan reads the members of a change, and names the keys that they have (before) and that they get (after).
func (p *Reader) Plan(all *Entities, ch *Change) (before, after uint8) {
	p.Members = ch.Members
	for e, to := range ch.To {
		if ch.Members&(1<<e) == 0 {
			continue
		}
		p.Seen[e] = all[e]
		if k := all[e].Key; k != NoKey {
			before |= 1 << k
		}
		if to >= 0 && to != all[e].Key {
			after |= 1 << to
		}
	}
	p.Keys = before | after
	return before, after
}

// Committed takes over the members as the actor has just committed them.
func (p *Reader) Committed(all *Entities) {
	for e := range p.Seen {
		if p.Members&(1<<e) != 0 {
			p.Seen[e] = all[e]
		}
	}
}

// Read reads the next member. It returns the member as it was read before and as it is, and whether it was the last one.
func (p *Reader) Read(all *Entities) (was, is Entity, last bool) {
	e := p.N
	for p.Members&(1<<e) == 0 {
		e++
	}
	was, is = p.Seen[e], all[e]
	p.Seen[e], p.N = is, e+1
	return was, is, p.Members>>p.N == 0
}

// To sets the next step, and discards the members as they were read.
func (p *Reader) To(at messages.Step) { p.At, p.N, p.Seen = at, 0, Entities{} }

// Has returns the member that has a key, as the actor has read it, or Nobody.
func (p *Reader) Has(k int8) int8 {
	has := int8(Nobody)
	for e := range p.Seen {
		if p.Members&(1<<e) != 0 && p.Seen[e].Key == k {
			has = int8(e)
		}
	}
	return has
}

// Row is the row of a unique key: its owner's copy, with a claim that only one entity can have. The claim of a reserved key also names
// a change.
type Row struct {
	Owner, Version int8 // Owner is Nobody if the row does not exist; Version is 0 if it is only reserved
	Reserved       int8 // the change that has reserved the key for Owner, or Nobody
}

// Rows are the rows of all keys.
type Rows [3]Row

// Free is the row of a key that nobody has.
func Free() Row { return Row{Nobody, 0, Nobody} }

// Reserved is the row of a key that a change has reserved for an entity.
func Reserved(owner, change int8) Row { return Row{owner, 0, change} }

// Copy is the row with a copy of an entity.
func (all *Entities) Copy(owner int8) Row {
	if owner == Nobody {
		return Free()
	}
	return Row{owner, all[owner].Version, Nobody}
}

// Copies returns the rows that the entities require.
func (all *Entities) Copies() (rows Rows) {
	for k := range rows {
		owner, _ := all.Owner(k)
		rows[k] = all.Copy(owner)
	}
	return rows
}

// Claimed reports whether two rows have the same claim.
func (r Row) Claimed(o Row) bool {
	return r.Owner == o.Owner && r.Reserved == o.Reserved
}

// Wrong returns the violation in a state, or "": two owners of a key or, in a final state, a row that is not the copy of its owner.
func (rows *Rows) Wrong(all *Entities, final bool) string {
	for k, is := range rows {
		owner, clash := all.Owner(k)
		if clash {
			return "two entities have one unique key"
		}
		if want := all.Copy(owner); final && is != want {
			return fmt.Sprintf("the row of key %d is %v, not %v", k, is, want)
		}
	}
	return ""
}

// Holder is an actor that reconciles the rows of the keys that its message names, one after another.
type Holder struct {
	Reader
	There Row  // the row of the key N as it was read
	Same  bool // the row has not been written since then
	Taken bool // a key belongs to another entity
}

// Next makes the first of the keys from k on the current one, and reports whether there is one.
func (p *Holder) Next(keys uint8, k int8) bool {
	for k < 3 && keys&(1<<k) == 0 {
		k++
	}
	p.N, p.There, p.Same = k, Row{}, false
	return k < 3
}

// Look reads the row of the current key.
func (p *Holder) Look(rows *Rows) { p.There, p.Same = rows[p.N], true }

// Wrote records that the row of a key was written.
func (p *Holder) Wrote(k int8) {
	if p.N == k {
		p.Same = false
	}
}

// Decide returns the row that the holder's message asks for under the current key, and whether there is anything to write: nothing
// if another change has reserved the key. plain says that the holder deletes a filled copy, which it does under the copy's
// ETag after it has read the owner again.
func (p *Holder) Decide() (to Row, does, plain bool) {
	r, has := p.There, p.Has(p.N)
	mine := r.Reserved == Nobody || r.Reserved == p.Change
	switch {
	case has == Nobody:
		return Free(), r.Owner != Nobody && p.Members&(1<<r.Owner) != 0 && mine, r.Reserved == Nobody
	case r.Owner == Nobody || r.Owner == has:
		return p.Seen.Copy(has), r.Owner == Nobody || mine, false
	}
	p.Taken = true
	return r, false, false
}
